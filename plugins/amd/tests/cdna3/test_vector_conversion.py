"""Conversions between integers and floats against exact fractions: ranges, roundings, NaN, infinities, subnormals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cdna3.exact import FORMATS, UNSIGNED, crossed, flush, pattern, same, samples, value
from cdna3.test_vector_integer import M, column, limited, signed
from cdna3.vector import run
from tilefw_amd.isa.row import Mode

ROUNDINGS = ("rn", "rz", "rp", "rm")


def rounded(x: float | Fraction, mode: str) -> int:
    return {"rn": round, "rz": math.trunc, "rp": math.ceil, "rm": math.floor}[mode](Fraction(x))


def to_integer(x: float, bits: int, with_sign: bool, mode: str = "rz", scale: int = 1) -> int:
    """Rounded and clamped; NaN is 0."""
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return limited((1 << 70) * (1 if x > 0 else -1), bits, with_sign) & M[bits]
    return limited(rounded(Fraction(x) * scale, mode), bits, with_sign) & M[bits]


@pytest.mark.parametrize("name", ["i32_f64", "u32_f32", "i32_f32", "u32_f64", "u16_f16", "i16_f16"])
def test_floats_to_integers(name: str) -> None:
    kind, fmt = name.split("_")
    bits, with_sign = int(kind[1:]), kind[0] == "i"
    edges = [2.0**31, 2.0**31 - 1, 2.0**32, -(2.0**31), -0.5, 0.99, 65504.0, 32768.0, -32769.0]
    patterns = np.concatenate([samples(fmt, 1000), np.array([pattern(e, fmt) for e in edges], UNSIGNED[FORMATS[fmt][0]])])
    found = run(f"v_cvt_{name}", patterns).tolist()
    assert found == [to_integer(value(p, fmt), bits, with_sign) for p in patterns.tolist()]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ["f64_i32", "f32_i32", "f32_u32", "f64_u32", "f16_u16", "f16_i16"])
def test_integers_to_floats(name: str, rounding: str) -> None:
    fmt, kind = name.split("_")
    bits = int(kind[1:])
    given = np.concatenate([column(bits, 1), column(bits, 2)])
    found = run(f"v_cvt_{name}", given, mode=Mode(rounding, rounding)).tolist()
    numbers = [signed(x, bits) if kind[0] == "i" else x for x in given.tolist()]
    assert found == [pattern(Fraction(n), fmt, rounding) for n in numbers]


@pytest.mark.parametrize("index", range(4))
def test_bytes_to_floats(index: int) -> None:
    given = column(32, index)
    found = run(f"v_cvt_f32_ubyte{index}", given).tolist()
    assert found == [pattern(float(x >> (8 * index) & 255), "f32") for x in given.tolist()]


@pytest.mark.parametrize("flushes", [False, True])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ["f16_f32", "f32_f16", "f32_f64", "f64_f32"])
def test_floats_to_floats(name: str, rounding: str, flushes: bool) -> None:
    to, source = name.split("_")
    patterns = samples(source, 600)
    near = samples(to, 300, 5)  # numbers that the other format knows, and their neighbours
    if FORMATS[source][0] > FORMATS[to][0]:
        known = [pattern(value(p, to), source) for p in near.tolist() if math.isfinite(value(p, to))]
        around = [max(0, k + step) for k in known for step in (-1, 0, 1)]
        patterns = np.concatenate([patterns, np.array(around, patterns.dtype)])
    found = run(f"v_cvt_{name}", patterns, mode=Mode(rounding, rounding, flushes, flushes)).tolist()
    for p, got in zip(patterns.tolist(), found, strict=True):
        x = value(flush(p, "f32") if flushes and source == "f32" else p, source)
        wanted = pattern(x if not math.isfinite(x) or x == 0 else Fraction(x), to, rounding)
        wanted = flush(wanted, to) if flushes and source != "f16" else wanted
        assert same(got, to) == wanted, hex(p)


def test_rounding_to_integers_by_floor() -> None:
    patterns = samples("f32", 1000)
    down, half = run("v_cvt_flr_i32_f32", patterns).tolist(), run("v_cvt_rpi_i32_f32", patterns).tolist()
    for p, floor, nearest in zip(patterns.tolist(), down, half, strict=True):
        x = value(p, "f32")
        assert floor == to_integer(x, 32, True, "rm"), hex(p)
        total = float(np.float32(x) + np.float32(0.5)) if abs(x) < 1e30 else x
        assert nearest == to_integer(total, 32, True, "rm"), hex(p)


def test_four_bit_offsets() -> None:
    found = run("v_cvt_off_f32_i4", np.arange(32, dtype=np.uint32)).view(np.float32).tolist()
    assert found == 2 * [n / 16 for n in (*range(8), *range(-8, 0))]


def normalised(x: float, kind: str, mode: str = "rn") -> int:
    top, with_sign = {"i16": (32767, True), "u16": (65535, False)}[kind]
    if math.isnan(x):
        return 0
    clamped = max(min(x, 1.0), -1.0 if with_sign else 0.0)
    return rounded(Fraction(clamped) * top, mode) & M[16]


@pytest.mark.parametrize("kind", ["i16", "u16"])
def test_normalised_integers(kind: str) -> None:
    for rounding in ROUNDINGS:
        patterns = samples("f16", 600)
        found = run(f"v_cvt_norm_{kind}_f16", patterns, mode=Mode(round64=rounding)).tolist()
        assert found == [normalised(value(p, "f16"), kind, rounding) for p in patterns.tolist()]
    for fmt in ("f16", "f32"):
        a, b = crossed(samples(fmt, 80), samples(fmt, 80, 3))
        found = run(f"v_cvt_pknorm_{kind}_{fmt}", a, b).tolist()
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        assert found == [normalised(value(x, fmt), kind) | normalised(value(y, fmt), kind) << 16 for x, y in pairs]


def test_pairs_of_halves_are_cut_whatever_the_mode() -> None:
    a, b = crossed(samples("f32", 200), samples("f32", 200, 4))
    for mode in (Mode(), Mode("rp", "rp")):
        found = run("v_cvt_pkrtz_f16_f32", a, b, mode=mode).tolist()
        for x, y, got in zip(a.tolist(), b.tolist(), found, strict=True):
            for p, half in ((x, got & M[16]), (y, got >> 16)):
                number = value(p, "f32")
                wanted = pattern(Fraction(number) if math.isfinite(number) and number else number, "f16", "rz")
                assert same(half, "f16") == wanted, hex(p)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_bytes_into_words(rounding: str) -> None:
    a, place, word = crossed(samples("f32", 120), np.arange(6, dtype=np.uint32), column(32, 2), limit=2000)
    expected = []
    for p, index, old in zip(a.tolist(), place.tolist(), word.tolist(), strict=True):
        shift = 8 * (index & 3)
        expected.append(old & ~(255 << shift) | to_integer(value(p, "f32"), 8, False, rounding) << shift)
    for name in ("v_cvt_pk_u8_f32", "v_cvt_pkaccum_u8_f32"):
        assert run(name, a, place, word, mode=Mode(rounding)).tolist() == expected
