"""Exponentials, logarithms and hyperbolic functions, to less than an ulp: the leading terms are computed in pairs."""

from __future__ import annotations

import math
from fractions import Fraction

import tilefw.language as tl
from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.pairs import Pair, exact_product, ordered_sum, two_sum, where
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, fraction_and_exponent, power_of_two, scaled, with_sign_of

define = Functions()

_ONE = floats(1)


# Cores ---------------------------------------------------------------------------------------------------------------------


def _whole_multiple(x: Term, per_unit: float, unit: Pair) -> tuple[Term, Pair]:
    """n = the whole number nearest to x * per_unit, and x - n * unit; the first part of `unit` has few bits."""
    n = (x * per_unit).row("round_even")
    return n, Pair(*two_sum((-n).fma(unit.high, x), -(n * unit.low)))


def _few_bits(x: Term) -> int:
    """So many bits of a constant leave room for a factor as large as the exponent."""
    return x.format.fraction + 1 - (x.format.bias + 1).bit_length()


def _clamped(x: Term, limit: float) -> Term:
    """x within ±limit; a NaN stays."""
    return (x > limit).where(limit, (x < -limit).where(-limit, x))


def _power(r: Pair) -> Pair:
    """e**r for |r| <= ln(2) / 2."""
    tail = (r.high * r.high) * series.polynomial(series.exponential(series.lengths(r.high).exponential), r.high)
    minus_one = ordered_sum(r.high, tail + r.low.fma(r.high, r.low))
    one = ordered_sum(r.high.constant(1.0), minus_one.high)
    return ordered_sum(one.high, one.low + minus_one.low)


def exponential(x: Term, low: Term | None = None) -> tuple[Pair, Term]:
    """e**(x + low) as a pair near 1 and the int32 power of two that it is multiplied with."""
    kind = x.format
    x = _clamped(x, (kind.bias + kind.fraction + 8) * math.log(2))
    ln2 = series.exact("ln 2")
    n, r = _whole_multiple(x, float(1 / ln2), series.pair(ln2, x, _few_bits(x)))
    if low is not None:
        r = Pair(r.high, r.low + low)
    return _power(r), n.to(tl.int32)


def _logarithm_near_one(f: Pair) -> Pair:
    """ln(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    s = f / (f + 2.0)
    z = s.high * s.high
    tail = (s.high * z) * series.polynomial(series.logarithm(series.lengths(z).logarithm), z)
    return ordered_sum(s.high + s.high, (s.low + s.low) + tail)


def balanced(x: Term) -> tuple[Term, Term]:
    """A positive x as m * 2**e with sqrt(1/2) <= m < sqrt(2)."""
    m, e = fraction_and_exponent(x)
    large = m > math.sqrt(2)
    return large.where(m * 0.5, m), large.where(e + 1, e)


def _with_exponent(near_one: Pair, e: Term) -> Pair:
    n = e.to(near_one.high.dtype)
    ln2 = series.pair(series.exact("ln 2"), n, _few_bits(n))
    return ordered_sum(n * ln2.high, n * ln2.low) + near_one


def logarithm(x: Term) -> Pair:
    """ln x for a positive finite x."""
    m, e = balanced(x)
    return _with_exponent(_logarithm_near_one(Pair(m - 1.0, m.constant(0.0))), e)


def precise_logarithm(x: Term) -> Pair:
    """ln x for a positive finite x, to nearly the precision of a pair: the whole series is summed in pairs."""
    m, e = balanced(x)
    s = Pair(m - 1.0, m.constant(0.0)) / (Pair(m, m.constant(0.0)) + 1.0)
    z = s * s
    terms = 2 * series.lengths(x).logarithm
    total = series.pair(Fraction(2, 2 * terms + 1), x)
    for k in reversed(range(terms)):
        total = total * z + series.pair(Fraction(2, 2 * k + 1), x)
    return _with_exponent(total * s, e)


def logarithm_of_one_plus(u: Pair) -> Pair:
    """ln(1 + u) for a finite u above -1."""
    y = u + 1.0
    m, e = balanced(y.high)
    f = Pair(*two_sum(m - 1.0, scaled(y.low, -e)))
    same = e.equals(0)
    return _with_exponent(_logarithm_near_one(where(same, u, f)), e)


# Functions -----------------------------------------------------------------------------------------------------------------


def _exp10(x: Term) -> Term:
    kind = x.format
    ln2, ln10 = series.exact("ln 2"), series.exact("ln 10")
    limited = _clamped(x, (kind.bias + kind.fraction + 8) * math.log10(2))
    n, r = _whole_multiple(limited, float(ln10 / ln2), series.pair(ln2 / ln10, x, _few_bits(x)))
    return scaled(_power(r * series.pair(ln10, x)).value, n.to(tl.int32))


def _log10(x: Term) -> Term:
    result = (logarithm(x) * series.pair(1 / series.exact("ln 10"), x)).value
    result = (x < math.inf).where(result, x)
    result = x.equals(0.0).where(-math.inf, result)
    return (x < 0.0).where(math.nan, result)


define.define("exp10", _ONE, _exp10)
define.define("log10", _ONE, _log10)
define.define("fast_exp10f", (("fp32",),), _exp10)
define.define("fast_log10f", (("fp32",),), _log10)


def _both_exponentials(x: Term) -> tuple[Pair, Pair, Term]:
    """e**|x| = a * 2**n and e**-|x| = b * 2**n: (a, b, n)."""
    a, n = exponential(abs(x))
    far = n > 60  # what is smaller by this cannot be seen in a pair
    down = power_of_two(far.where(-120, -(n + n)).to(x.format.bits), x.format)
    return a, (1.0 / a).times(down), n


@define(_ONE)
def cosh(x: Term) -> Term:
    a, b, n = _both_exponentials(x)
    return scaled((a + b).value, n - 1)


@define(_ONE)
def sinh(x: Term) -> Term:
    a, b, n = _both_exponentials(x)
    large = with_sign_of(scaled((a - b).value, n - 1), x)
    square = x * x
    small = x + (x * square) * series.polynomial(series.hyperbolic(series.lengths(x).hyperbolic), square)
    return (abs(x) < 1.0).where(small, large)


def _tiny(x: Term) -> Term:
    """Where a function that is x + O(x³) is x."""
    return abs(x) < 2.0 ** -(x.format.fraction // 2 + 2)


@define(_ONE)
def asinh(x: Term) -> Term:
    """ln(a + sqrt(a² + 1)) as ln(1 + a + a² / (1 + sqrt(a² + 1))), and ln(2a) where the 1 cannot be seen."""
    size = abs(x)
    far = size > 2.0 ** (x.format.fraction // 2 + 4)
    a = far.where(1.0, size)
    square = exact_product(a, a)
    near = logarithm_of_one_plus(square / ((square + 1.0).root() + 1.0) + a)
    result = _far_or(far, size, near)
    return (_tiny(x) | ~(size < math.inf)).where(x, with_sign_of(result, x))


@define(_ONE)
def acosh(x: Term) -> Term:
    """ln(1 + t + sqrt(t * (t + 2))) with t = x - 1, and ln(2x) where the 1 cannot be seen."""
    far = x > 2.0 ** (x.format.fraction // 2 + 4)
    t = Pair(*two_sum(far.where(1.0, x), x.constant(-1.0)))
    near = logarithm_of_one_plus((t * (t + 2.0)).root() + t)
    result = _far_or(far, x, near)
    return (x < 1.0).where(math.nan, (x < math.inf).where(result, x))


def _far_or(far: Term, x: Term, near: Pair) -> Term:
    """ln(2x), or what is computed near."""
    doubled = logarithm(x) + series.pair(series.exact("ln 2"), x)
    return where(far, doubled, near).value


@define(_ONE)
def atanh(x: Term) -> Term:
    """ln(1 + 2a / (1 - a)) / 2."""
    a = abs(x)
    rest = Pair(*two_sum(a.constant(1.0), -a))
    result = logarithm_of_one_plus(Pair(a + a, a.constant(0.0)) / rest).value * 0.5
    result = with_sign_of(a.equals(1.0).where(math.inf, result), x)
    return (a > 1.0).where(math.nan, (_tiny(x) | x.is_nan()).where(x, result))
