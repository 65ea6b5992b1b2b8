"""Rows that the processor computes in its own way keep what the table promises of them: exponentials and quotients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw_cpu import processor as at_hand
from tilefw_cpu.processor import processor

EXPONENTS = np.concatenate([np.linspace(-160, 130, 247), [np.inf, -np.inf, np.nan, 0.0, -0.0, 88.8, -87.4, -103.5, -104.5]])

NANS = {
    np.float32: np.array([0x7FC00001, 0xFFC00123, 0x7F800001], np.uint32),
    np.float64: np.array([0x7FF8000000000001, 0xFFF8000000000123, 0x7FF0000000000001], np.uint64),
}


@tilefw.jit
def exponentials(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at)))
    tl.store(out + BLOCK + at, tl.exp2(tl.load(x + at)))
    for i in range(n):
        tl.store(out + 2 * BLOCK + i, tl.exp(tl.load(x + i)))


@tilefw.jit
def quotients(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for i in range(n):
        tl.store(out + i * BLOCK + at, value / tl.load(y + i))


def _apart(found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    """The largest distance in units of the last place, where the exact number is normal; what is none is equal."""
    rounded = exact.astype(found.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.finfo(found.dtype).tiny)).astype(exact.dtype)
    return float(np.max(np.abs(found[finite].astype(exact.dtype) - exact[finite]) / unit))


@pytest.fixture
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor without AVX-512, where it has that and is asked to do without."""
    if request.param:
        here = processor()
        wide = frozenset(name for name in here.features if name.startswith(("avx512", "amx")))
        older = replace(here, features=here.features - wide, absent=here.absent | wide)
        monkeypatch.setattr(at_hand, "processor", lambda: older)


@pytest.mark.parametrize("narrow", [False, True], indirect=True)
@pytest.mark.parametrize(("dtype", "block"), [(np.float32, 256), (np.float64, 256), (np.float32, 4)])
def test_exponentials_are_within_3_units(dtype: Any, block: int, narrow: None) -> None:
    """From where the result is 0 to where it is infinite, of NaNs of any code too, in vectors of every length and in single
    elements: by VSCALEF, and by codes, of which most vectors are of normal numbers alone."""
    x = EXPONENTS.astype(dtype) * (8 if dtype is np.float64 else 1)
    x[:3] = NANS[dtype].view(dtype)
    out = np.empty(3 * x.size, dtype)
    for first in range(0, x.size, block):
        part = np.empty(3 * block, dtype)
        exponentials[(1,)](x[first : first + block], part, block, BLOCK=block, target="cpu")
        for row in range(3):
            out[row * x.size + first :][:block] = part[row * block :][:block]
    with np.errstate(all="ignore"):
        wide = x.astype(np.longdouble)
        assert _apart(out, np.concatenate([np.exp(wide), np.exp2(wide), np.exp(wide)])) <= 3


def test_quotients_by_one_number_are_within_2_and_a_half_units() -> None:
    x = np.concatenate([np.geomspace(1e-37, 1e38, 250), [0.0, -0.0, np.inf, -np.inf, np.nan, 3.0]]).astype(np.float32)
    y = np.array([3, -7e-38, 8e37, 0.0, -0.0, np.inf, np.nan, 1.0, 0.1], np.float32)
    out = np.empty((y.size, x.size), np.float32)
    quotients[(1,)](x, y, out, y.size, BLOCK=x.size, target="cpu")
    with np.errstate(all="ignore"):
        assert _apart(out, x.astype(np.float64) / y[:, None].astype(np.float64)) <= 2.5


@tilefw.jit
def extremes(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.maximum(a, b))
    tl.store(out + BLOCK + at, tl.minimum(a, b))
    for i in range(n):
        tl.store(out + 2 * BLOCK + i, tl.maximum(tl.load(x + i), tl.load(y + i)))
    tl.store(out + 3 * BLOCK + at, tl.max(a, axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_take_the_number_and_order_zeros(dtype: Any) -> None:
    """Of quiet and of signalling NaNs, whose first bit of the mantissa is 0."""
    bits, signalling = (np.uint32, 0x7F800001) if dtype is np.float32 else (np.uint64, 0x7FF0000000000001)
    values = np.array([0.0, -0.0, np.nan, 1.0, -2.0, np.inf, -np.inf, 0.0], dtype)
    values[-1:] = np.array([signalling], bits).view(dtype)
    x, y = (np.ascontiguousarray(side.reshape(-1)) for side in np.meshgrid(values, values))
    found, expected = (np.empty(4 * x.size, dtype) for _ in range(2))
    extremes[(1,)](x, y, found, x.size, BLOCK=x.size, target="cpu")
    extremes[(1,)](x, y, expected, x.size, BLOCK=x.size, target="reference")
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@tilefw.jit
def extremes_of_tile(x, out, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out, tl.max(values, axis=0))
    tl.store(out + 1, tl.min(values, axis=0))
    tl.store(out + 2, tl.max(values * 2.0, axis=0))
    both = tl.maximum(tl.max(values, axis=0), values)
    tl.store(out + 3, tl.min(both, axis=0))


def test_extremes_pass_signalling_nans_over_wherever_they_stand() -> None:
    for places in ([0], [5], [17, 100, 255], range(1, 256)):
        x = np.linspace(-3, 4, 256, dtype=np.float32)
        x.view(np.uint32)[list(places)] = 0x7FA00000
        out = np.empty(4, np.float32)
        extremes_of_tile[(1,)](x, out, BLOCK=256, target="cpu")
        numbers = x[~np.isnan(x)]
        top = numbers.max()
        np.testing.assert_array_equal(out, [top, numbers.min(), 2 * top, top])
