"""Kernels of every kind by way of C: loops, products, atomics, small formats, assertions."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.expand import missing
from tilefw.cli.main import main
from tilefw_cee.writer import CWriter

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")

KERNELS = (
    "vector_add", "cast", "softmax rows=5 columns=300", "argmax rows=6 columns=300", "histogram", "chained_sum wait=timed n=300",
    "matmul m=32 n=32 k=40 block_m=32 block_n=32 block_k=16", "attention queries=40 keys=50", "scan_tile", "sort_tile columns=16",
)


@tilefw.jit(debug=True)
def below(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_assert(tl.load(x + at) < n, "too large")


def test_every_row_is_served_at_every_type() -> None:
    assert missing(CWriter()) == {}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *parameters = kernel.split()
    given = [word for p in parameters for word in ("--param", p)]
    assert main(["run", name, "--target", "cee-host", *given]) == 0, capsys.readouterr()


def test_a_failed_assertion_is_told_with_its_line() -> None:
    with pytest.raises(tilefw.KernelError, match="too large") as told:
        below[(1,)](np.arange(8, dtype=np.int32), 4, BLOCK=8, target="cee-host")
    assert "test_kernels.py" in str(told.value.place)
