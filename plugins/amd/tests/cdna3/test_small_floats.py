"""Conversions of fp4, fp6 and bf6 with a scale, against the values that OCP MX 1.0 gives their codes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from cdna3.vector import run as on_columns
from tilefw_amd.chips import gfx950

CHIP = gfx950.CHIP
RNG = np.random.default_rng(7)
SHAPES = {"fp4": (2, 1, 1), "fp6": (2, 3, 1), "bf6": (3, 2, 3)}  # exponent bits, mantissa bits, bias
HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def value_of(code: int, name: str) -> float:
    """A code by the format's definition (OCP MX 1.0, section 5.3): no NaN, no infinities."""
    bits, mantissa, bias = SHAPES[name]
    sign, field, part = code >> bits + mantissa, code >> mantissa & (1 << bits) - 1, code & (1 << mantissa) - 1
    return (-1.0) ** sign * (part + (1 << mantissa if field else 0)) * 2.0 ** (max(field, 1) - bias - mantissa)


def values(name: str) -> np.ndarray:
    """All codes' values, the magnitudes in ascending order first."""
    bits, mantissa, _ = SHAPES[name]
    return np.array([value_of(code, name) for code in range(1 << bits + mantissa + 1)])


def nearest(x: float, name: str) -> int:
    """The code of the nearest magnitude with x's sign, ties to the even code."""
    magnitudes = values(name)[: len(values(name)) // 2]
    near = Fraction(min(abs(x), 2 * magnitudes[-1]))  # infinity is nearest to the largest
    best = min(range(len(magnitudes)), key=lambda code: (abs(near - Fraction(magnitudes[code])), code % 2))
    return best + (len(magnitudes) if np.signbit(x) else 0)


def patterns(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def scales(power: int, count: int) -> np.ndarray:
    return np.full(count, patterns(np.array([1.75 * 2.0**power]))[0], np.uint32)  # the mantissa does not count


def packed(codes: np.ndarray, bits: int) -> tuple[np.ndarray, ...]:
    """[elements, lanes] of codes side by side, as registers of 32 bits."""
    whole = [sum(int(code) << bits * i for i, code in enumerate(column)) for column in codes.T]
    return tuple(np.array([x >> 32 * w & 0xFFFFFFFF for x in whole], np.uint32) for w in range(len(codes) * bits // 32))


def unpacked(words: tuple[np.ndarray, ...], bits: int) -> np.ndarray:
    whole = [sum(int(word[lane]) << 32 * i for i, word in enumerate(words)) for lane in range(len(words[0]))]
    return np.array([[x >> bits * i & (1 << bits) - 1 for x in whole] for i in range(len(words) * 32 // bits)])


def halves(x: np.ndarray, half: str) -> tuple[np.ndarray, ...]:
    """[elements, lanes] of numbers as registers with two halves each."""
    return packed(x.astype(HALVES[half]).view(np.uint16), 16)


def sources(name: str, count: int) -> np.ndarray:
    """[count, 64] of numbers that bf16 holds: all values, the middles between them, beyond the largest, and others."""
    of = values(name)[: len(values(name)) // 2]
    special = np.concatenate([of, (of[1:] + of[:-1]) / 2, [of[-1] * 1.0625, of[-1] * 4, np.inf, of[1] / 4]])
    found = np.concatenate([special, -special, RNG.normal(size=64 * count) * of[-1] / 2])[: 64 * count]
    assert len(found) == 64 * count
    return RNG.permutation(found).astype(ml_dtypes.bfloat16).astype(np.float64).reshape(count, 64)


@pytest.mark.parametrize("power", [-30, 0, 5])
@pytest.mark.parametrize("to", ["f32", "f16", "bf16"])
def test_two_fp4_become_wider_times_the_scale(to: str, power: int) -> None:
    bytes_ = np.arange(256, dtype=np.uint32)
    want = [np.array([value_of(int(b) >> 4 * i & 15, "fp4") for b in bytes_]) * 2.0**power for i in range(2)]
    for index in range(4):
        got = on_columns(f"v_cvt_scalef32_pk_{to}_fp4", bytes_ << np.uint32(8 * index), scales(power, 256), chip=CHIP,
                         op_sel=(index & 1, index >> 1, 0))
        kind = np.float32 if to == "f32" else HALVES[to]
        found = np.stack([(got >> (i * got.dtype.itemsize * 4)) for i in range(2)]).astype(np.uint32 if to == "f32" else np.uint16)
        assert np.array_equal(found.view(kind).astype(np.float64), np.stack(want).astype(kind).astype(np.float64))


@pytest.mark.parametrize("power", [-4, 0, 7])
@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
def test_two_floats_over_the_scale_become_the_nearest_fp4_of_one_byte(source: str, power: int) -> None:
    x = sources("fp4", 2)
    want = np.array([[nearest(v, "fp4") for v in row] for row in x])
    old, scale = np.full(64, 0x11223344, np.uint32), scales(power, 64)
    x = x * 2.0**power
    for index in range(4):
        chosen = (0, 0, index & 1, index >> 1)
        given = tuple(patterns(row) for row in x) if source == "f32" else halves(x, source)
        got = on_columns(f"v_cvt_scalef32_pk_fp4_{source}", *given, scale, old, chip=CHIP, op_sel=chosen)
        shown = np.uint32(0xFF << 8 * index)
        assert (got & ~shown == old & ~shown).all()
        assert (got >> np.uint32(8 * index) & 0xFF == want[0] | want[1] << 4).all()


@pytest.mark.parametrize("name", ["fp6", "bf6"])
@pytest.mark.parametrize("half", ["f32", "f16", "bf16"])
def test_32_numbers_of_6_bits_become_wider_times_the_scale(name: str, half: str) -> None:
    codes = RNG.integers(0, 64, (32, 64))
    want = values(name)[codes] * 2.0**-3
    got = on_columns(f"v_cvt_scalef32_pk32_{half}_{name}", packed(codes, 6), scales(-3, 64), chip=CHIP)
    bits = 32 if half == "f32" else 16
    kind = np.float32 if half == "f32" else HALVES[half]
    found = unpacked(got, bits).astype(f"u{bits // 8}").view(kind)
    assert np.array_equal(found.astype(np.float64), want.astype(kind).astype(np.float64))


@pytest.mark.parametrize("name", ["fp6", "bf6"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_32_halves_over_the_scale_become_the_nearest_numbers(name: str, half: str) -> None:
    x = sources(name, 32)
    got = on_columns(f"v_cvt_scalef32_pk32_{name}_{half}", halves(x * 4, half), scales(2, 64), chip=CHIP)
    assert np.array_equal(unpacked(got, 6), [[nearest(v, name) for v in row] for row in x])


@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_two_times_16_floats_alternate_in_the_result(name: str) -> None:
    x = sources(name, 32)
    words = [patterns(row / 8) for row in x]
    got = on_columns(f"v_cvt_scalef32_2xpk16_{name}_f32", tuple(words[0::2]), tuple(words[1::2]), scales(-3, 64), chip=CHIP)
    assert np.array_equal(unpacked(got, 6), [[nearest(v, name) for v in row] for row in x])


def following(chance: np.ndarray) -> np.ndarray:
    """V_PRNG_B32 by its pseudocode."""
    moved = (chance.astype(np.uint64) << 1 & 0xFFFFFFFF).astype(np.uint32)
    return np.where(chance >> 31 == 1, moved ^ np.uint32(0xC5), moved)


@pytest.mark.parametrize("name, source", [(n, s) for n in ("fp4", "fp6", "bf6") for s in ("f32", "f16", "bf16")])
def test_rounding_by_chance_goes_up_as_often_as_the_rest_says(name: str, source: str) -> None:
    """Each element has the next random number; also below the least normal number the share of those rounded up is the rest."""
    count = 2 if name == "fp4" else 32
    of = values(name)[: len(values(name)) // 2]
    below = RNG.integers(0, len(of) - 1, (count, 64))
    rest = RNG.integers(0, 4, (count, 64)) / 4
    x = (of[below] + (of[below + 1] - of[below]) * rest) * np.where(RNG.integers(0, 2, (count, 64)), 1.0, -1.0)
    chance = RNG.integers(0, 1 << 32, 64, dtype=np.uint32)
    given = tuple(patterns(row) for row in x * 2) if source == "f32" else halves(x * 2, source)
    if name == "fp4":
        whole = given[0].astype(np.uint64) | given[1].astype(np.uint64) << np.uint64(32) if source == "f32" else given[0]
        got = on_columns(f"v_cvt_scalef32_sr_pk_fp4_{source}", whole, chance, scales(1, 64), np.zeros(64, np.uint32), chip=CHIP)
        found = np.stack([got >> np.uint32(4 * i) & 15 for i in range(2)])
    else:
        found = unpacked(on_columns(f"v_cvt_scalef32_sr_pk32_{name}_{source}", given, chance, scales(1, 64), chip=CHIP), 6)
    for i in range(count):
        up = chance.astype(np.float64) / 2.0**32 + rest[i] >= 1
        assert np.array_equal(found[i], below[i] + up + np.where(np.signbit(x[i]), len(of), 0))
        chance = following(chance)


@pytest.mark.parametrize("name, largest", [("fp4", 7), ("fp6", 31), ("bf6", 31)])
def test_what_is_no_number_becomes_the_largest(name: str, largest: int) -> None:
    x = np.ones((32, 64))
    x[::2] = np.nan
    lost = np.full(64, 0x7F800000, np.uint32)
    if name == "fp4":
        got = on_columns("v_cvt_scalef32_pk_fp4_f16", *halves(x[:2], "f16"), scales(0, 64), np.zeros(64, np.uint32), chip=CHIP)
        assert (got == (largest | 2 << 4)).all()
        got = on_columns("v_cvt_scalef32_sr_pk_fp4_f16", *halves(x[:2], "f16"), lost, lost, np.zeros(64, np.uint32), chip=CHIP)
        assert (got == (largest | largest << 4)).all()
        return
    got = on_columns(f"v_cvt_scalef32_pk32_{name}_f16", halves(x, "f16"), scales(0, 64), chip=CHIP)
    assert (unpacked(got, 6)[::2] == largest).all() and (unpacked(got, 6)[1::2] == nearest(1.0, name)).all()
    got = on_columns(f"v_cvt_scalef32_sr_pk32_{name}_f16", halves(x, "f16"), lost, lost, chip=CHIP)
    assert (unpacked(got, 6) == largest).all()
