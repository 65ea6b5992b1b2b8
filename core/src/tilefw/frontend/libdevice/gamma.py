"""The gamma function and the logarithm of its size, in float64: Stirling's series in pairs after steps to large arguments.

NIST DLMF 5.11.1 (Stirling's series), 5.5.1 (steps), 5.5.3 (reflection), 5.7.3 (power series at 2, for the zeros at 1 and 2).
"""

from __future__ import annotations

import math

import tilefw.language as tl
from tilefw.frontend.libdevice import pairs, series
from tilefw.frontend.libdevice.angles import sine_of_half_turns
from tilefw.frontend.libdevice.error_function import exponential_of_pair
from tilefw.frontend.libdevice.exponentials import logarithm, logarithm_of_one_plus, precise_logarithm
from tilefw.frontend.libdevice.log_gamma import log_gamma, stirling, taylor
from tilefw.frontend.libdevice.pairs import Pair, two_sum
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, scaled

define = Functions()

# From here on so many terms of Stirling's series leave less than 1e-19, and so many steps lead here.
_LARGE, _STIRLING_TERMS, _STEPS = 10.0, 10, 10
_TAYLOR_TERMS = 27  # of the power series at 2, within 1/2 of it
_TINY = 2.0**-60  # gamma(x) is 1 / x
_HUGE = 2.0**900  # the logarithm of gamma(x) is x * (ln x - 1)


def _alone(x: Term) -> Pair:
    return Pair(x, x.constant(0.0))


def _logarithm(z: Pair) -> Pair:
    return precise_logarithm(z.high) + z.low / z.high


def _at_large(z: Pair) -> Pair:
    """ln(gamma(z)) for z >= _LARGE."""
    inverse = 1.0 / z.high
    rest = inverse * series.polynomial(stirling(_STIRLING_TERMS), inverse * inverse)
    constant = series.pair((series.exact("ln 2") + series.exact("ln pi") - 1) / 2, z.high)
    return (z - 0.5) * (_logarithm(z) - 1.0) + constant + rest


def _stepped(x: Pair) -> tuple[Pair, Pair]:
    """A z = x + n that is large, and the product of the n numbers from x to z - 1."""
    z, product = x, _alone(x.high.constant(1.0))
    for _ in range(_STEPS):
        small = z.high < _LARGE
        product = pairs.where(small, product * z, product)
        z = pairs.where(small, z + 1.0, z)
    return z, product


def _gamma(x: Pair) -> tuple[Pair, Term]:
    """gamma(x) for 0 < x as a pair and the power of two that it is multiplied with; half of a logarithm is in exp's range."""
    z, product = _stepped(x)
    root, exponent = exponential_of_pair(_at_large(z).times(0.5))
    return root * root / product, exponent + exponent


def _tgamma(x: Term) -> Term:
    whole = x.row("floor").equals(x)
    tiny = abs(x) < _TINY
    # Beyond -200 all results are zeros; whole numbers of turns keep their signs.
    limited = (abs(x) < 200.0).where(x, (x < 0.0).where(x.row("remf", 2.0) - 200.0, 200.0))
    limited = tiny.where(1.5, limited)
    mirrored = limited < 0.5
    value, exponent = _gamma(pairs.where(mirrored, Pair(*two_sum(limited.constant(1.0), -limited)), _alone(limited)))
    sine = sine_of_half_turns(mirrored.where(limited, 0.5))
    sine = pairs.where(sine.high.equals(0.0), _alone(x.constant(1.0)), sine)
    other = series.pair(series.exact("pi"), x) / (sine * value)
    result = scaled(mirrored.where(other.value, value.value), mirrored.where(-exponent, exponent))
    result = tiny.where(1.0 / x, result)
    result = (whole & (x < 0.0)).where(math.nan, result)
    return x.equals(math.inf).where(math.inf, x.is_nan().where(x, result))


def _by_power_series(x: Pair) -> Pair:
    """ln(gamma(x)) for 0 < x < 2.5: near 1 ln(gamma(x + 1)) - ln(x), near 0 that of x + 2 less two logarithms."""
    at_zero, at_one = x.high < 0.5, x.high < 1.5
    zero = _alone(x.high.constant(0.0))
    distance = pairs.where(at_zero, x, pairs.where(at_one, x - 1.0, x - 2.0))
    slope, *rest = taylor(_TAYLOR_TERMS + 1)
    at_two = (series.pair(slope, x.high) + distance.high * series.polynomial(rest, distance.high)) * distance
    first = pairs.where(at_one, logarithm_of_one_plus(pairs.where(at_one, distance, zero)), zero)
    second = pairs.where(at_zero, logarithm(at_zero.where(x.high, 1.0)), zero)
    return at_two - first - second


def _logarithm_of_gamma(x: Pair) -> Pair:
    """ln(gamma(x)) for 0 < x < _HUGE, with a small relative error near its zeros 1 and 2 too."""
    near = x.high < 2.5
    z, product = _stepped(pairs.where(near, _alone(x.high.constant(3.0)), x))
    far = _at_large(z) - _logarithm_of_pair(product)
    return pairs.where(near, _by_power_series(pairs.where(near, x, _alone(x.high.constant(1.5)))), far)


def _logarithm_of_pair(x: Pair) -> Pair:
    return logarithm(x.high) + x.low / x.high


def _reflected(x: Term, value: Pair) -> Pair:
    """ln|gamma(x)| of an x that is no whole number, from the value of 1 - x."""
    sine = sine_of_half_turns(x)
    size = pairs.where(sine.high < 0.0, -sine, sine)
    size = pairs.where(size.high.equals(0.0), _alone(x.constant(1.0)), size)
    return series.pair(series.exact("ln pi"), x) - _logarithm_of_pair(size) - value


def _lgamma(x: Term) -> Term:
    size = abs(x)
    tiny, huge = size < _TINY, x > _HUGE
    pole = x.row("floor").equals(x) & (x <= 0.0)
    inside = (tiny | ~(size < _HUGE)).where(1.5, x)
    mirrored = inside < 0.0
    value = _logarithm_of_gamma(pairs.where(mirrored, Pair(*two_sum(inside.constant(1.0), -inside)), _alone(inside)))
    result = pairs.where(mirrored, _reflected(mirrored.where(inside, 0.5), value), value).value + 0.0
    result = tiny.where(-logarithm((size > 0.0).where(tiny.where(size, 1.0), 1.0)).value, result)
    beyond = (huge & (size < math.inf)).where(x, _HUGE)
    grown = ((logarithm(beyond) - 1.0) * (beyond * 2.0**-64)).value * 2.0**64
    result = huge.where(grown, result)
    result = (pole | size.equals(math.inf)).where(math.inf, result)
    return x.is_nan().where(x, result)


define.define("tgamma", floats(1), lambda x: _tgamma(x.to(tl.float64)).to(x.dtype))
define.define("lgamma", floats(1), lambda x: (_lgamma(x) if x.dtype == tl.float64 else log_gamma(x.to(tl.float64))).to(x.dtype))
