"""What checks of programs find, and what an integer division by zero gives, is the same on every registered target."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError, UnsupportedError

TARGETS = [listed.info.name for listed in tilefw.targets() if listed.status == "ok" and "simulate" in listed.provides]


@tilefw.jit
def divide(a, b, quotients, remainders):
    i = tl.arange(0, 8)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(quotients + i, x // y)
    tl.store(remainders + i, x % y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_quotient_by_zero_is_all_ones_and_the_remainder_the_dividend(target: str, dtype: str) -> None:
    x = np.array([7, -7, 0, 1, -128, 127, 5, -6]).astype(dtype)
    y = np.array([0, 0, 0, 0, 0, 0, 2, 3]).astype(dtype)
    quotients, remainders = np.zeros(8, dtype), np.zeros(8, dtype)
    divide[(1,)](x, y, quotients, remainders, target=target)
    zero = y == 0
    assert (quotients[zero] == ~np.zeros(1, dtype)[0]).all() and (remainders[zero] == x[zero]).all()
    assert (quotients[~zero] * y[~zero] + remainders[~zero] == x[~zero]).all()


@tilefw.jit
def everything(a, b, out, n):
    i = tl.arange(0, 16)
    x = tl.load(a + i, i < n)
    tl.store(out + i // 2, tl.exp(x))
    tl.store(out + 8, tl.sum(x, 0))
    tl.store(out + 9 + tl.arange(0, 1), tl.load(b + tl.arange(0, 1)) // (n - 12))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_reports_the_same(target: str) -> None:
    a, b, out = np.linspace(1, 200, 16).astype(np.float32), np.ones(1, np.int32), np.zeros(16, np.float32)
    try:
        with pytest.raises(CheckError) as raised:
            everything[(1,)](a, b, out, 12, target=target, checks="program")
    except UnsupportedError:
        pytest.skip(f"{target} refuses the kernel")
    found = {finding.code for finding in raised.value.findings}
    assert found == {"TFW0452", "TFW0453", "TFW0454", "TFW0455"}
    assert not out.any(), "nothing is copied back"
