"""Conversions of 8-bit floats against exact fractions, in the formats of each chip: nearest, overflow, stochastic rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from served import CHIPS, on_each

from cdna3.exact import pattern, same, samples, value
from cdna3.test_vector_integer import M
from cdna3.vector import run
from tilefw_amd.chips import Chip
from tilefw_amd.isa.row import Mode


class Byte(NamedTuple):
    """A format of 8 bits as the test knows it: NumPy's type, the code of the largest number, of what overflows and of NaN without
    their signs, and whether zero, what overflows and NaN have signs."""

    numpy: Any
    largest: int
    overflow: int
    nan: int
    signed: bool


BYTES = {
    "f8E4M3FNUZ": Byte(ml_dtypes.float8_e4m3fnuz, 0x7F, 0x80, 0x80, False),
    "f8E5M2FNUZ": Byte(ml_dtypes.float8_e5m2fnuz, 0x7F, 0x80, 0x80, False),
    "f8E4M3FN": Byte(ml_dtypes.float8_e4m3fn, 0x7E, 0x7F, 0x7F, True),
    "f8E5M2": Byte(ml_dtypes.float8_e5m2, 0x7B, 0x7C, 0x7E, True),
}
NAMES = on_each(lambda chip: chip.float8)


def form_of(chip: Chip, name: str) -> Byte:
    return BYTES[chip.float8[name]]


def numbers(form: Byte) -> list[float]:
    return np.arange(256, dtype=np.uint8).view(form.numpy).astype(np.float64).tolist()


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_all_bytes_to_floats(chip: Chip, name: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    wanted = [pattern(x, "f32") for x in numbers(form_of(chip, name))]
    assert [same(p, "f32") for p in run(f"v_cvt_f32_{name}", codes | np.uint32(0xABCD00), chip=chip).tolist()] == wanted
    pairs = run(f"v_cvt_pk_f32_{name}", codes | codes[::-1] << np.uint32(8) | np.uint32(0x77770000), chip=chip).tolist()
    assert [same(p & M[32], "f32") for p in pairs] == wanted
    assert [same(p >> 32, "f32") for p in pairs] == wanted[::-1]


def nearest_byte(x: float, form: Byte) -> int:
    """To nearest even among the finite numbers; halfway to what would be next and beyond, what overflows, as infinities do."""
    sign = 0x80 if form.signed and math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return form.nan
    table = numbers(form)[: form.largest + 1]
    size = abs(Fraction(x)) if math.isfinite(x) else Fraction(2) ** 200
    codes = sorted(range(len(table)), key=lambda code: (abs(Fraction(table[code]) - size), code & 1))
    middle = Fraction(table[-1]) + (Fraction(table[-1]) - Fraction(table[-2])) / 2
    if size > middle or (size == middle and form.largest & 1):
        return same_byte(form.overflow | sign, form)
    return codes[0] | (sign if form.signed else 0x80 if x < 0 and codes[0] else 0)


def same_byte(code: int, form: Byte) -> int:
    """NaN as one pattern: its payload and sign are not specified."""
    return form.nan if math.isnan(numbers(form)[code]) else code


def same_pair(codes: int, form: Byte) -> int:
    return same_byte(codes & 255, form) | same_byte(codes >> 8, form) << 8


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_floats_to_pairs_of_bytes(chip: Chip, name: str) -> None:
    form = form_of(chip, name)
    finite = numbers(form)[: form.largest + 1]
    edges = [finite[-1] * f for f in (1.0, 1.02, 1.0333333, 1.0333334, 1.0357142, 1.0357144, 1.07, 1.0714285, 1.0714287, 1.2)]
    edges += [0.0, -0.0, 2.0**-11, 2.0**-10 * 1.5, 2.0**-17]
    middles = [(x + y) / 2 for x, y in pairwise(finite)]
    chosen = [pattern(x, "f32") for x in edges + middles + finite + [-x for x in finite]]
    a = np.concatenate([samples("f32", 100), np.array(chosen, np.uint32)])
    b = a[::-1].copy()
    old = np.full(len(a), 0x12345678, np.uint32)
    bytes_of = {p: nearest_byte(value(p, "f32"), form) for p in a.tolist()}
    pairs = [bytes_of[x] | bytes_of[y] << 8 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    low = [same_pair(word & 0xFFFF, form) | word & ~0xFFFF for word in run(f"v_cvt_pk_{name}_f32", a, b, old, chip=chip).tolist()]
    assert low == [0x12340000 | pair for pair in pairs]
    high = run(f"v_cvt_pk_{name}_f32", a, b, old, op_sel=(0, 0, 1), chip=chip).tolist()
    assert [same_pair(word >> 16, form) << 16 | word & 0xFFFF for word in high] == [pair << 16 | 0x5678 for pair in pairs]


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_overflow_saturates_when_mode_says_so(chip: Chip, name: str) -> None:
    """MODE.FP16_OVFL: the largest number instead of what overflows, for numbers; NaN stays."""
    form, limit = form_of(chip, name), Mode(fp16_overflow=True)
    given = np.array([pattern(x, "f32") for x in (1e6, -1e6, numbers(form)[form.largest], 1.0)] + [0x7FC00000], np.uint32)
    zero = np.zeros(5, np.uint32)
    for conversion in ("pk", "sr"):
        found = run(f"v_cvt_{conversion}_{name}_f32", given, zero, zero, mode=limit, chip=chip) & np.uint32(0xFF)
        expected = [form.largest, form.largest | 0x80, form.largest, nearest_byte(1.0, form), form.nan]
        assert [same_byte(code, form) for code in found.tolist()] == expected


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_stochastic_rounding_goes_up_as_often_as_the_distance_says(chip: Chip, name: str) -> None:
    """A number at 3/8 of the way between two neighbours goes up for 3 of 8 evenly spread chances; one that is exact never moves."""
    table = numbers(form_of(chip, name))
    chances = (np.arange(1024, dtype=np.uint64) << np.uint64(22)).astype(np.uint32)
    old = np.full(1024, 0xAABBCCDD, np.uint32)
    low, high = table[0x45], table[0x46]
    for sign in (1.0, -1.0):
        between = np.full(1024, pattern(sign * (low + (high - low) * 0.375), "f32"), np.uint32)
        found = run(f"v_cvt_sr_{name}_f32", between, chances, old, chip=chip) & np.uint32(0xFF)
        code = 0x45 | (0x80 if sign < 0 else 0)
        assert set(found.tolist()) == {code, code + 1}
        assert int((found == code + 1).sum()) == 384
        exact = np.full(1024, pattern(sign * low, "f32"), np.uint32)
        assert set((run(f"v_cvt_sr_{name}_f32", exact, chances, old, chip=chip) & np.uint32(0xFF)).tolist()) == {code}


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_stochastic_rounding_carries_and_overflows(chip: Chip, name: str) -> None:
    form = form_of(chip, name)
    largest = numbers(form)[form.largest]
    given = [pattern(x, "f32") for x in (1.9375, 0.999 * largest, 1.01 * largest, -1.01 * largest, math.inf, -math.inf)]
    top, old = np.full(7, 0xFFFFFFFF, np.uint32), np.zeros(7, np.uint32)
    found = run(f"v_cvt_sr_{name}_f32", np.array([*given, 0x7FC00000], np.uint32), top, old, chip=chip).tolist()
    far = [nearest_byte(sign * math.inf, form) for sign in (1, -1)]
    assert [same_byte(code, form) for code in found] == [nearest_byte(2.0, form), form.largest, *far, *far, form.nan]


@pytest.mark.parametrize(("chip", "name"), NAMES)
def test_stochastic_rounding_stays_in_range_without_luck(chip: Chip, name: str) -> None:
    """What is less than a step above the largest number is cut to it."""
    form = form_of(chip, name)
    largest, before = (numbers(form)[form.largest - i] for i in range(2))
    above = np.array([pattern(largest + 0.99 * (largest - before), "f32")], np.uint32)
    zero = np.zeros(1, np.uint32)
    assert run(f"v_cvt_sr_{name}_f32", above, zero, zero, chip=chip).tolist() == [form.largest]


@pytest.mark.parametrize(("op_sel", "place"), [((0, 0, 0, 0), 0), ((0, 0, 1, 0), 1), ((0, 0, 0, 1), 2), ((0, 0, 1, 1), 3)])
def test_stochastic_rounding_writes_one_byte(op_sel: tuple[int, ...], place: int) -> None:
    one, none, old = (np.array([x], np.uint32) for x in (0x3F800000, 0, 0x11223344))
    for chip in CHIPS:
        for name in chip.float8:
            found = int(run(f"v_cvt_sr_{name}_f32", one, none, old, op_sel=op_sel, chip=chip)[0])
            assert found == 0x11223344 & ~(255 << 8 * place) | nearest_byte(1.0, form_of(chip, name)) << 8 * place
