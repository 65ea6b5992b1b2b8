"""Arithmetic of f32 takes f16 as they are: what converts them and computes with them is one V_FMA_MIX, rounded as before."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl

N = 1024


@tilefw.jit
def compute(x_ptr, y_ptr, z_ptr, out_ptr, ROW: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x, y, z = tl.load(x_ptr + at).to(tl.float32), tl.load(y_ptr + at).to(tl.float32), tl.load(z_ptr + at)
    if ROW == "x + z":
        found = x + z
    elif ROW == "x - z":
        found = x - z
    elif ROW == "z - x":
        found = z - x
    elif ROW == "x * z":
        found = x * z
    elif ROW == "x * y":
        found = x * y
    elif ROW == "x - y":
        found = x - y
    elif ROW == "x * y + z":
        found = x * y + z
    elif ROW == "x * y - z":
        found = x * y - z
    elif ROW == "z - x * y":
        found = z - x * y
    elif ROW == "x * z * y":
        found = x * z * y
    elif ROW == "x * z - y * z":
        found = x * z - y * z
    else:
        found = tl.fma(x, y, z)
    tl.store(out_ptr + at, found)


def halves(rng: np.random.Generator) -> np.ndarray:
    """f16 of every kind, zeros of both signs, subnormals, infinities and NaN among them."""
    found = rng.integers(0, 1 << 16, N, np.uint16)
    found[:8] = [0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7E00, 0x3C00]
    return rng.permutation(found).view(np.float16)


ROWS = ("x + z", "x - z", "z - x", "x * z", "x * y", "x - y", "x * y + z", "x * y - z", "z - x * y", "fma")


# The rules are each chip's own, of one table: a second chip tries every other pair.
PAIRS = [
    pytest.param(chip.target, row, packed, id=f"{chip.name}-{row}-{'packed' if packed else 'alone'}")
    for chip in CHIPS for number, row in enumerate(ROWS) for packed in (False, True) if chip is CHIPS[0] or packed == number % 2
]


@pytest.mark.parametrize(("target", "row", "packed"), PAIRS)
def test_results_are_those_of_conversions_and_single_precision(target: str, row: str, packed: bool) -> None:
    rng = np.random.default_rng(N)
    x, y = halves(rng), halves(rng)
    z = np.where(rng.random(N) < 0.5, rng.standard_normal(N).astype(np.float32), y[::-1].astype(np.float32))
    out, warps = np.zeros(N, np.float32), 4 if packed else 16
    result = compute[(1,)](x, y, z, out, ROW=row, SIZE=N, target=target, checks="all", num_warps=warps)
    with np.errstate(all="ignore"):
        names = {"x": x.astype(np.float32), "y": y.astype(np.float32), "z": z}
        expected = eval("x * y + z" if row == "fma" else row, names)  # a product of two f16 is exact in f32
    assert np.array_equal(out, expected, equal_nan=True)
    zeros = expected == 0
    assert np.array_equal(np.signbit(out[zeros]), np.signbit(expected[zeros]))
    opcodes = [line.split()[0] for line in result.artifact.text.splitlines() if line.strip()]
    arithmetic = [o for o in opcodes if o.startswith(("v_fma", "v_add_f32", "v_sub", "v_mul_f32", "v_pk"))]
    each = N // (64 * warps)
    if not packed:
        assert arithmetic == ["v_fma_mix_f32"] * (each + (row == "x - y"))
    else:
        assert set(arithmetic) <= {"v_fma_mix_f32"} and len(arithmetic) <= 2 * each


@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
@pytest.mark.parametrize("row", ["x * z * y", "x * z - y * z"])
def test_products_are_not_taken_for_conversions(row: str, target: str) -> None:
    """With numbers whose products are exact, whatever is contracted."""
    rng = np.random.default_rng(N)
    x, y, z = (rng.integers(-64, 65, N).astype(t) for t in (np.float16, np.float16, np.float32))
    out = np.zeros(N, np.float32)
    compute[(1,)](x, y, z, out, ROW=row, SIZE=N, target=target, checks="all", num_warps=16)
    assert np.array_equal(out, eval(row, {k: v.astype(np.float32) for k, v in (("x", x), ("y", y), ("z", z))}))
