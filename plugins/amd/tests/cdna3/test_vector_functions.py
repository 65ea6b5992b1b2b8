"""Functions, rounding to integers, exponents and mantissas, scaling: within an ulp of the truth, or exactly it; special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from cdna3.exact import FORMATS, NAN, UNSIGNED, crossed, flush, pattern, same, samples, value
from cdna3.vector import run
from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.rows.vector_trigonometry import BITS, two_over_pi

INF = math.inf


def guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    """With the values that IEEE 754 gives where Python raises."""

    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return INF

    return call


def reciprocal(x: float) -> float:
    return math.copysign(INF, x) if x == 0 else 1 / x


def inverse_root(x: float) -> float:
    return math.copysign(INF, x) if x == 0 else 0.0 if x == INF else 1 / math.sqrt(x)


def logarithm(x: float) -> float:
    return -INF if x == 0 else math.log2(x)


TRUTH = {
    "rcp": guarded(reciprocal), "rcp_iflag": guarded(reciprocal), "rsq": guarded(inverse_root), "sqrt": guarded(math.sqrt),
    "exp": guarded(lambda x: 2.0**x), "exp_legacy": guarded(lambda x: 2.0**x),
    "log": guarded(logarithm), "log_legacy": guarded(logarithm),
}
NAMES = [
    f"v_{name}_{fmt}"
    for name, formats in (
        ("rcp", "f16 f32 f64"), ("rsq", "f16 f32 f64"), ("sqrt", "f16 f32 f64"), ("exp", "f16 f32"), ("log", "f16 f32"),
        ("rcp_iflag", "f32"), ("exp_legacy", "f32"), ("log_legacy", "f32"),
    )
    for fmt in formats.split()
]


def ulps(found: int, wanted: int, fmt: str) -> int:
    """Patterns between two numbers of one sign; different NaN-ness or sign is far."""
    if found == wanted:
        return 0
    sign = 1 << (FORMATS[fmt][0] - 1)
    return abs(found - wanted) if NAN not in (found, wanted) and (found ^ wanted) < sign else 1 << 60


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_an_ulp(name: str) -> None:
    fmt, truth = name[-3:], TRUTH[name[2:-4]]
    patterns = samples(fmt, 1500)
    found = run(name, patterns)
    for p, got in zip(patterns.tolist(), found.tolist(), strict=True):
        # f32 functions do not know subnormals, in or out.
        wanted = pattern(truth(value(flush(p, fmt) if fmt == "f32" else p, fmt)), fmt)
        wanted = flush(wanted, fmt) if fmt == "f32" else wanted
        assert ulps(same(got, fmt), wanted, fmt) <= 1, (hex(p), hex(got))


@pytest.mark.parametrize("name", ["v_rcp_f16", "v_sqrt_f64"])
def test_other_formats_flush_as_mode_says(name: str) -> None:
    fmt = name[-3:]
    tiny = np.array([1], UNSIGNED[FORMATS[fmt][0]])
    assert math.isfinite(value(int(run("v_sqrt_" + fmt, tiny)[0]), fmt)) and int(run("v_sqrt_" + fmt, tiny)[0]) != 0
    found = int(run(name, tiny, mode=Mode(flush64=True))[0])
    assert value(found, fmt) == (INF if "rcp" in name else 0.0)


@pytest.mark.parametrize("fmt", ["f32", "f16"])
def test_sine_and_cosine_of_revolutions(fmt: str) -> None:
    turns = [n / 8 for n in range(-40, 41)] + [255.75, 256.0, -256.0, 0.1, 1e-3, -3.3, 17.77, 100.01]
    given = [value(pattern(x, fmt), fmt) for x in turns]
    words = np.array([pattern(x, fmt) for x in turns], UNSIGNED[FORMATS[fmt][0]])
    for name, shift in (("sin", 0.0), ("cos", 0.25)):
        for x, got in zip(given, run(f"v_{name}_{fmt}", words).tolist(), strict=True):
            rest = math.fmod(abs(x), 1.0)
            angle = 2 * math.pi * rest
            wanted = math.copysign(1, x) * math.sin(angle) if name == "sin" else math.cos(angle)
            found = value(got, fmt)
            if (rest + shift) * 4 % 1 == 0:
                assert found == round(wanted), (name, x)  # quarters of a turn are exact
            assert found == pytest.approx(wanted, abs=2.0**-23 if fmt == "f32" else 2.0**-10), (name, x)


@pytest.mark.parametrize("fmt", ["f32", "f16"])
def test_sine_and_cosine_outside_their_domain(fmt: str) -> None:
    numbers = [257.0, -300.0, INF, -INF, math.nan, 0.0, -0.0]
    words = np.array([pattern(x, fmt) if x == x else pattern(INF, fmt) + 1 for x in numbers], UNSIGNED[FORMATS[fmt][0]])
    sines, cosines = ([same(p, fmt) for p in run(f"v_{name}_{fmt}", words).tolist()] for name in ("sin", "cos"))
    one = pattern(1.0, fmt)
    assert sines == [0, 0, NAN, NAN, NAN, 0, pattern(-0.0, fmt)]
    assert cosines == [one, one, NAN, NAN, NAN, one, one]


ROUND = {"trunc": math.trunc, "ceil": math.ceil, "floor": math.floor, "rndne": round}


@pytest.mark.parametrize("fmt", FORMATS)
def test_integral_values(fmt: str) -> None:
    halves = np.array([pattern(n / 2, fmt) for n in range(-9, 10)], UNSIGNED[FORMATS[fmt][0]])
    patterns = np.concatenate([samples(fmt, 1000), halves])
    for name, function in ROUND.items():
        for p, got in zip(patterns.tolist(), run(f"v_{name}_{fmt}", patterns).tolist(), strict=True):
            x = value(p, fmt)
            wanted = pattern(x, fmt) if not math.isfinite(x) else pattern(math.copysign(float(function(x)), x), fmt)
            assert same(got, fmt) == wanted, (name, hex(p))


@pytest.mark.parametrize("rounding", ["rn", "rz", "rp", "rm"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_fractions_lie_below_one(fmt: str, rounding: str) -> None:
    patterns = samples(fmt, 600 if fmt != "f64" else 200)
    top = pattern(1.0, fmt) - 1
    for p, got in zip(patterns.tolist(), run(f"v_fract_{fmt}", patterns, mode=Mode(rounding, rounding)).tolist(), strict=True):
        x = value(p, fmt)
        if not math.isfinite(x):
            assert same(got, fmt) == NAN
            continue
        exact = Fraction(x) - math.floor(x)
        assert got == min(pattern(exact, fmt, rounding), top) or (exact == 0 and value(got, fmt) == 0), hex(p)


@pytest.mark.parametrize("fmt", FORMATS)
def test_exponents_and_mantissas(fmt: str) -> None:
    patterns = samples(fmt, 800)
    exponents = run(f"v_frexp_exp_{'i16' if fmt == 'f16' else 'i32'}_{fmt}", patterns).tolist()
    mantissas = run(f"v_frexp_mant_{fmt}", patterns).tolist()
    bits = 16 if fmt == "f16" else 32
    for p, exponent, mantissa in zip(patterns.tolist(), exponents, mantissas, strict=True):
        x = value(p, fmt)
        wanted = math.frexp(x) if math.isfinite(x) else (x, 0)
        assert exponent == wanted[1] % (1 << bits), hex(p)
        assert same(mantissa, fmt) == pattern(wanted[0], fmt), hex(p)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rp", "rm"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_scaling_rounds_once(fmt: str, rounding: str) -> None:
    amounts = [0, 1, -1, 5, -9, -14, -24, -25, 16, 127, -126, -149, -150, 300, -300, 1023, 1024, -969, -970, -1022, -1023, -1074,
               -1075, 2046, -2100, 32767, -32768]
    amounts += [] if fmt == "f16" else [2**31 - 1, -(2**31), 70000, -70000]
    bits = 16 if fmt == "f16" else 32
    powers = np.array([a % (1 << bits) for a in amounts], UNSIGNED[bits])
    given, by = crossed(samples(fmt, 60), powers, limit=2500 if fmt != "f64" else 700)
    found = run(f"v_ldexp_{fmt}", given, by, mode=Mode(rounding, rounding))
    for p, amount, got in zip(given.tolist(), by.tolist(), found, strict=True):
        x = value(p, fmt)
        signed = amount - (1 << bits) if amount >> (bits - 1) else amount
        near = max(-5000, min(5000, signed))
        exact = Fraction(x) * Fraction(2) ** near if math.isfinite(x) else x
        wanted = pattern(exact, fmt, rounding, math.copysign(1, x) < 0)
        assert same(int(got), fmt) == wanted, (hex(p), signed)


# --- pieces of 2/pi ----------------------------------------------------------------------------------------------------------


def test_two_over_pi_begins_as_known() -> None:
    # 2/pi = 0.A2F9836E 4E441529 FC2757D1 F534DDC0 … in hexadecimal (D. H. Bailey's tables of pi; also fdlibm's `two_over_pi`).
    assert two_over_pi() >> (BITS - 96) == 0xA2F9836E4E441529FC2757D1


def test_pieces_of_two_over_pi_join_without_gaps() -> None:
    one = np.full(32, pattern(1.0, "f64"), np.uint64)
    pieces = run("v_trig_preop_f64", one, np.arange(32, dtype=np.uint32)).tolist()
    total = sum(Fraction(value(p, "f64")) for p in pieces[:18])
    # Eighteen pieces of 53 bits; the later ones lie below the least f64.
    assert total == Fraction(two_over_pi() >> (BITS - 18 * 53), 1 << (18 * 53))


def test_large_arguments_take_later_bits() -> None:
    exponents = [1077, 1078, 1100, 1967, 1968, 2046]
    words = np.array([e << 52 for e in exponents], np.uint64)
    for e, got in zip(exponents, run("v_trig_preop_f64", words, np.zeros(len(words), np.uint32)).tolist(), strict=True):
        first = max(e - 1077, 0)
        bits = two_over_pi() >> (BITS - first - 53) & (1 << 53) - 1
        wanted = Fraction(bits) * Fraction(2) ** (-53 - first + (128 if e >= 1968 else 0))
        assert got == pattern(wanted, "f64"), e
