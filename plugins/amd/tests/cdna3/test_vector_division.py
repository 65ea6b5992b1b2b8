"""Division as LLVM expands it is rounded correctly: div_scale, Newton steps, div_fmas and div_fixup together.

The sequences are those of SITargetLowering::LowerFDIV32 and LowerFDIV64 (SIISelLowering.cpp).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cdna3.exact import FORMATS, NAN, NUMPY, UNSIGNED, crossed, pattern, same, samples, specials, value
from cdna3.lanes import WAVE, lanes, meaning
from cdna3.vector import run
from tilefw.api.integers import round_up
from tilefw_amd.isa.row import Mode


class Machine:
    """Rows of one format as functions on arrays [1, waves, 64]."""

    def __init__(self, fmt: str, waves: int) -> None:
        self.fmt, self.lanes = fmt, lanes(waves)

    def __getattr__(self, name: str) -> Any:
        function = meaning(f"v_{name}_{self.fmt}", Mode())
        return lambda *sources: function(self.lanes, *sources)

    def negated(self, a: np.ndarray) -> np.ndarray:
        return self.lanes.fneg(a, self.fmt)

    def word(self, mask: np.ndarray) -> np.ndarray:
        return self.lanes.join(self.lanes.ballot(mask))


def divide_f32(m: Machine, n: np.ndarray, d: np.ndarray) -> np.ndarray:
    one = np.full((1, 1, 1), 0x3F800000, np.uint32)
    scaled_d, _ = m.div_scale(d, d, n)
    scaled_n, flag = m.div_scale(n, d, n)
    r, minus = m.rcp(scaled_d), m.negated(scaled_d)
    r = m.fma(m.fma(minus, r, one), r, r)
    q = m.mul(scaled_n, r)
    q = m.fma(m.fma(minus, q, scaled_n), r, q)
    rest = m.fma(minus, q, scaled_n)
    return m.div_fixup(m.div_fmas(rest, r, q, m.word(flag)), d, n)


def divide_f64(m: Machine, n: np.ndarray, d: np.ndarray) -> np.ndarray:
    one = np.full((1, 1, 1), 0x3FF0000000000000, np.uint64)
    scaled_d, _ = m.div_scale(d, d, n)
    r, minus = m.rcp(scaled_d), m.negated(scaled_d)
    r = m.fma(r, m.fma(minus, r, one), r)
    r = m.fma(r, m.fma(minus, r, one), r)
    scaled_n, flag = m.div_scale(n, d, n)
    q = m.mul(scaled_n, r)
    rest = m.fma(minus, q, scaled_n)
    return m.div_fixup(m.div_fmas(rest, r, q, m.word(flag)), d, n)


DIVIDE = {"f32": divide_f32, "f64": divide_f64}


def quotient(n: float, d: float, fmt: str) -> int:
    negative = math.copysign(1, n) * math.copysign(1, d) < 0
    if math.isnan(n) or math.isnan(d) or (n == d == 0) or (math.isinf(n) and math.isinf(d)):
        return NAN
    if d == 0 or math.isinf(n):
        return pattern(-math.inf if negative else math.inf, fmt)
    return pattern(Fraction(0) if math.isinf(d) else Fraction(n) / Fraction(d), fmt, "rn", negative)


def divide(fmt: str, n: np.ndarray, d: np.ndarray) -> np.ndarray:
    count = round_up(len(n), WAVE)
    n, d = (np.resize(x, count).reshape(1, -1, WAVE) for x in (n, d))
    with np.errstate(all="ignore"):
        found = DIVIDE[fmt](Machine(fmt, count // WAVE), n, d)
    return np.broadcast_to(found, n.shape).reshape(-1)


def check(fmt: str, n: np.ndarray, d: np.ndarray) -> None:
    found = divide(fmt, n, d)
    for index, (x, y) in enumerate(zip(n.tolist(), d.tolist(), strict=True)):
        assert same(int(found[index]), fmt) == quotient(value(x, fmt), value(y, fmt), fmt), (hex(x), hex(y))


@pytest.mark.parametrize("fmt", DIVIDE)
def test_special_operands(fmt: str) -> None:
    edges = np.array(specials(fmt), UNSIGNED[FORMATS[fmt][0]])
    check(fmt, *crossed(edges, edges))


@pytest.mark.parametrize("fmt", DIVIDE)
def test_random_operands(fmt: str) -> None:
    check(fmt, *crossed(samples(fmt, 900, 3), samples(fmt, 900, 4), limit=6000))


@pytest.mark.parametrize("fmt", DIVIDE)
def test_quotients_about_the_ends_of_the_range(fmt: str) -> None:
    """Exponents such that quotients are subnormal, barely normal, or barely finite, with full mantissas."""
    bits, mantissa, bias = FORMATS[fmt]
    rng = np.random.default_rng(5)
    count = 3000
    target = rng.choice([-bias - mantissa, -bias - mantissa // 2, -bias - 2, -bias - 1, 1 - bias, bias - 1, bias, bias + 1], count)
    low = np.maximum(1, 1 - target)
    high = np.minimum(2 * bias, 2 * bias - target)
    denominator = rng.integers(low, high + 1)
    numerator = denominator + target
    fields = [e.astype(np.uint64) << np.uint64(mantissa) for e in (numerator, denominator)]
    check(fmt, *((field | rng.integers(0, 1 << mantissa, count, np.uint64)).astype(UNSIGNED[bits]) for field in fields))


@pytest.mark.parametrize("fmt", DIVIDE)
def test_subnormal_operands(fmt: str) -> None:
    bits, mantissa, _ = FORMATS[fmt]
    rng = np.random.default_rng(6)
    shifts = rng.integers(0, mantissa, 400).astype(np.uint64)
    tiny = (rng.integers(1, 1 << mantissa, 400, np.uint64) >> shifts).astype(UNSIGNED[bits])
    usual = samples(fmt, 200, 7)
    check(fmt, *crossed(tiny, np.concatenate([usual, tiny]), limit=3000))
    check(fmt, *crossed(usual, tiny, limit=3000))


@pytest.mark.parametrize("fmt", FORMATS)
def test_fix_up_gives_the_special_quotients(fmt: str) -> None:
    """A quotient of 1.5 stands where none of the operands is special; -1.5 keeps no sign of its own."""
    edges = np.array(specials(fmt), UNSIGNED[FORMATS[fmt][0]])
    d, n = crossed(edges, edges)
    for given in (1.5, -1.5):
        q = np.full(len(n), pattern(given, fmt), n.dtype)
        for name in (f"v_div_fixup_{fmt}",) if fmt != "f16" else ("v_div_fixup_f16", "v_div_fixup_legacy_f16"):
            found = run(name, q, d, n)
            for index, (x, y) in enumerate(zip(n.tolist(), d.tolist(), strict=True)):
                a, b = value(x, fmt), value(y, fmt)
                if math.isfinite(a) and math.isfinite(b) and a and b:
                    apart = (x >> FORMATS[fmt][1] & FORMATS[fmt][2] * 2 + 1) - (y >> FORMATS[fmt][1] & FORMATS[fmt][2] * 2 + 1)
                    vanishes = fmt != "f16" and apart < {"f32": -150, "f64": -1075}[fmt]
                    wanted = pattern(math.copysign(0.0 if vanishes else 1.5, a * b if a * b else math.copysign(1, a) * b), fmt)
                else:
                    wanted = quotient(a, b, fmt)
                assert same(int(found[index]), fmt) == wanted, (name, hex(x), hex(y))


def test_scale_follows_the_manuals_cases() -> None:
    """(a, b, c) to (d, flag): as the pseudocode of V_DIV_SCALE_F32 lists them."""
    big, tiny = 2.0**100, 2.0**-140
    cases = [
        ((1.0, 1.0, 0.0), (math.nan, False)), ((1.0, 0.0, 1.0), (math.nan, False)),
        ((3.0, 3.0, big), (3.0 * 2.0**64, True)), ((big, 3.0, big), (big, True)),
        ((tiny, tiny, 2.0**-100), (tiny * 2.0**64, False)), ((2.0**-100, tiny, 2.0**-100), (2.0**-36, False)),
        ((1.5 * 2.0**126, 1.5 * 2.0**126, 2.0**120), (1.5 * 2.0**62, False)),
        ((2.0**120, 1.5 * 2.0**126, 2.0**120), (2.0**56, False)),
        ((1.5 * 2.0**126, 1.5 * 2.0**126, 1.0), (1.5 * 2.0**62, True)),
        ((1.0, 1.5 * 2.0**126, 1.0), (1.0, True)),
        ((2.0**60, 2.0**60, 2.0**-80), (2.0**60, True)), ((2.0**-80, 2.0**60, 2.0**-80), (2.0**-16, True)),
        ((2.0**-110, 2.0**-110, 2.0**-110), (2.0**-46, False)), ((5.0, 5.0, 7.0), (5.0, False)), ((7.0, 5.0, 7.0), (7.0, False)),
    ]
    given = [np.array([c[0][i] for c in cases], np.float32).view(np.uint32) for i in range(3)]
    found, flags = run("v_div_scale_f32", *given)
    for index, (sources, (wanted, flag)) in enumerate(cases):
        assert same(int(found[index]), "f32") == pattern(wanted, "f32"), sources
        assert bool(flags[index]) == flag, sources


def test_numpys_formats_are_those_of_the_oracle() -> None:
    for fmt, kind in NUMPY.items():
        for p in specials(fmt):
            assert pattern(value(p, fmt), fmt) in (p, NAN)
            assert np.array(p, UNSIGNED[FORMATS[fmt][0]]).view(kind).dtype == kind
