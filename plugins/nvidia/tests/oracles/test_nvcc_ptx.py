"""nvcc's PTX for sm_80 runs right and clean on the simulator: divergence, local memory, votes, calls."""

from __future__ import annotations

import pytest

from oracles import cuda, execute


@pytest.mark.skipif(cuda.nvcc() is None, reason="nvcc is not installed")
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("name", cuda.CASES)
def test_runs_right_and_clean(name: str, seed: int) -> None:
    item = cuda.item(name)
    outcome = execute.run(item, seed=seed)
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []
