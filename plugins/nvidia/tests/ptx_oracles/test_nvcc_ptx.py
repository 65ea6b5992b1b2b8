"""nvcc's PTX runs right and clean on the simulator: divergence, local memory, votes, calls for sm_80; engines, barriers that count
bytes, products of warpgroups, roles and clusters for sm_90a."""

from __future__ import annotations

import pytest

from oracles import execute
from oracles.chips import SM80
from ptx_oracles import cuda, hopper
from tilefw.api import CodeError, LaunchOptions

pytestmark = pytest.mark.skipif(cuda.nvcc() is None, reason="nvcc is not installed")


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("name", cuda.CASES)
def test_runs_right_and_clean(name: str, seed: int) -> None:
    item = cuda.item(name)
    outcome = execute.run(item, seed=seed)
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("name", hopper.KERNELS)
def test_runs_right_and_clean_for_hopper(name: str, seed: int) -> None:
    item = hopper.item(name)
    outcome = execute.run(item, seed=seed)
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []


def test_a_function_that_is_called_that_calls_itself_is_refused() -> None:
    artifact = execute.parse(cuda.ptx("kernels.cu", "sm_80", "-DCALLS"), "recursive", SM80)
    device = execute.backend(SM80.target).simulator()
    with pytest.raises(CodeError, match="recursion is not served"):
        device.launch(device.load(artifact), "recursive", (1, 1, 1), (), LaunchOptions(block=(32, 1, 1)))
