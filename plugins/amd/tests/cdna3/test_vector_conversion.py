"""Conversions between integers and floats against exact fractions: ranges, roundings, NaN, infinities, subnormals."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
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


# --- 8-bit floats --------------------------------------------------------------------------------------------------------------

TINY = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
LARGEST = {"fp8": 240.0, "bf8": 57344.0}


def numbers(name: str) -> list[float]:
    return np.arange(256, dtype=np.uint8).view(TINY[name]).astype(np.float64).tolist()


@pytest.mark.parametrize("name", TINY)
def test_all_bytes_to_floats(name: str) -> None:
    codes = np.arange(256, dtype=np.uint32)
    wanted = [pattern(x, "f32") for x in numbers(name)]
    assert [same(p, "f32") for p in run(f"v_cvt_f32_{name}", codes | np.uint32(0xABCD00)).tolist()] == wanted
    pairs = run(f"v_cvt_pk_f32_{name}", codes | codes[::-1] << np.uint32(8) | np.uint32(0x77770000)).tolist()
    assert [same(p & M[32], "f32") for p in pairs] == wanted
    assert [same(p >> 32, "f32") for p in pairs] == wanted[::-1]


def nearest_byte(x: float, name: str) -> int:
    """To nearest even among the finite numbers; beyond halfway to what would be next, NaN, which is also what infinities give."""
    table = numbers(name)
    if not math.isfinite(x):
        return 0x80
    size = abs(Fraction(x))
    codes = sorted(range(128), key=lambda code: (abs(Fraction(table[code]) - size), code & 1))
    step = Fraction(LARGEST[name]) - Fraction(table[126])
    if size >= Fraction(LARGEST[name]) + step / 2:
        return 0x80
    return codes[0] | (0x80 if x < 0 and codes[0] else 0)


@pytest.mark.parametrize("name", TINY)
def test_floats_to_pairs_of_bytes(name: str) -> None:
    edges = [LARGEST[name] * f for f in (1.0, 1.02, 1.0333333, 1.0333334, 1.07, 1.2)]
    edges += [0.0, -0.0, 2.0**-11, 2.0**-10 * 1.5, 2.0**-17]
    middles = [(x + y) / 2 for x, y in zip(numbers(name)[:126], numbers(name)[1:127], strict=True)]
    chosen = [pattern(x, "f32") for x in edges + middles + numbers(name)[:128]]
    a = np.concatenate([samples("f32", 100), np.array(chosen, np.uint32)])
    b = a[::-1].copy()
    old = np.full(len(a), 0x12345678, np.uint32)
    bytes_of = {p: nearest_byte(value(p, "f32"), name) for p in a.tolist()}
    pairs = [bytes_of[x] | bytes_of[y] << 8 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert run(f"v_cvt_pk_{name}_f32", a, b, old).tolist() == [0x12340000 | pair for pair in pairs]
    assert run(f"v_cvt_pk_{name}_f32", a, b, old, op_sel=(0, 0, 1)).tolist() == [pair << 16 | 0x5678 for pair in pairs]


@pytest.mark.parametrize("name", TINY)
def test_overflow_saturates_when_mode_says_so(name: str) -> None:
    """MODE.FP16_OVFL: the largest number instead of NaN, for numbers; NaN stays."""
    given = np.array([pattern(x, "f32") for x in (1e6, -1e6, LARGEST[name], 1.0)] + [0x7FC00000], np.uint32)
    zero = np.zeros(5, np.uint32)
    found = run(f"v_cvt_pk_{name}_f32", given, zero, zero, mode=Mode(fp16_overflow=True)) & np.uint32(0xFF)
    assert found.tolist() == [0x7F, 0xFF, 0x7F, nearest_byte(1.0, name), 0x80]
    chance = run(f"v_cvt_sr_{name}_f32", given, zero, zero, mode=Mode(fp16_overflow=True)) & np.uint32(0xFF)
    assert chance.tolist() == found.tolist()


@pytest.mark.parametrize("name", TINY)
def test_stochastic_rounding_goes_up_as_often_as_the_distance_says(name: str) -> None:
    """A number at 3/8 of the way between two neighbours goes up for 3 of 8 evenly spread chances; one that is exact never moves."""
    table = numbers(name)
    chances = (np.arange(1024, dtype=np.uint64) << np.uint64(22)).astype(np.uint32)
    old = np.full(1024, 0xAABBCCDD, np.uint32)
    low, high = table[0x45], table[0x46]
    for sign in (1.0, -1.0):
        between = np.full(1024, pattern(sign * (low + (high - low) * 0.375), "f32"), np.uint32)
        found = run(f"v_cvt_sr_{name}_f32", between, chances, old) & np.uint32(0xFF)
        code = 0x45 | (0x80 if sign < 0 else 0)
        assert set(found.tolist()) == {code, code + 1}
        assert int((found == code + 1).sum()) == 384
        exact = np.full(1024, pattern(sign * low, "f32"), np.uint32)
        assert set((run(f"v_cvt_sr_{name}_f32", exact, chances, old) & np.uint32(0xFF)).tolist()) == {code}


def test_stochastic_rounding_carries_and_overflows() -> None:
    top = np.array([0xFFFFFFFF] * 5, np.uint32)
    old = np.zeros(5, np.uint32)
    given = np.array([pattern(x, "f32") for x in (1.9375, 239.9, 241.0, math.inf)] + [0x7FC00000], np.uint32)
    found = run("v_cvt_sr_fp8_f32", given, top, old).tolist()
    assert found == [nearest_byte(2.0, "fp8"), nearest_byte(240.0, "fp8"), 0x80, 0x80, 0x80]


@pytest.mark.parametrize(("op_sel", "place"), [((0, 0, 0, 0), 0), ((0, 0, 1, 0), 1), ((0, 0, 0, 1), 2), ((0, 0, 1, 1), 3)])
def test_stochastic_rounding_writes_one_byte(op_sel: tuple[int, ...], place: int) -> None:
    one, none, old = (np.array([x], np.uint32) for x in (0x3F800000, 0, 0x11223344))
    for name in TINY:
        found = int(run(f"v_cvt_sr_{name}_f32", one, none, old, op_sel=op_sel)[0])
        assert found == 0x11223344 & ~(255 << 8 * place) | nearest_byte(1.0, name) << 8 * place
