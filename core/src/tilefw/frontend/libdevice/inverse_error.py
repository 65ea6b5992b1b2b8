"""The inverses of erf, erfc and normcdf, in float64: an approximation, then one step of Halley's iteration in pairs.

The first approximation is Winitzki's, "A handy approximation for the error function and its inverse", 2008, which is off by less
than 1/300. Where erfc is small its logarithm, nearly a parabola, is solved by Newton's iteration; elsewhere erf by Halley's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tilefw.language as tl
from tilefw.frontend.libdevice import pairs, series
from tilefw.frontend.libdevice.error_function import NEAR, beyond, exponential_of_pair, near_zero
from tilefw.frontend.libdevice.pairs import Pair, exact_product, two_sum
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import FORMATS, Term, fraction_and_exponent, power_of_two, with_sign_of

define = Functions()

_WINITZKI = 0.147
_ROOT_OF_PI = math.sqrt(math.pi)
_NEWTON_STEPS = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be found: the y >= 0 with erf(y) = `inside` and erfc(y) = `outside`, which is exact where it is small."""

    inside: Pair
    outside: Term


def _first(wanted: Wanted) -> Term:
    inside = wanted.inside.high
    central = inside < 0.5
    logarithm = central.where((-(inside * inside)).row("log1p"), (wanted.outside * (1.0 + inside)).row("log"))
    middle = logarithm * 0.5 + 2 / (math.pi * _WINITZKI)
    rest = -(logarithm * (1 / _WINITZKI))
    root = (middle * middle + rest).row("sqrt_rn")
    return (middle > 0.0).where(rest / (root + middle), root - middle).row("sqrt_rn")


def _halley(y: Term, newton: Term) -> Term:
    """What is taken from y where Newton's step would take `newton`: the second derivative of erf is -2y times the first."""
    return newton / (y * newton + 1.0)


def _near(y: Term, wanted: Wanted) -> tuple[Term, Term]:
    """The approximation where the power series of erf holds, and what is to be taken from it."""
    inside = wanted.inside.high
    y = y - _halley(y, (y.row("erf") - inside) * (y * y).row("exp") * (_ROOT_OF_PI / 2))
    square = exact_product(y, y)
    wrong = (near_zero(Pair(y, y.constant(0.0)), square) - wanted.inside).value
    return y, _halley(y, wrong * square.high.row("exp") * (_ROOT_OF_PI / 2))


def _far(y: Term, outside: Term) -> tuple[Term, Term]:
    """The same where erfc(y) is exp(-y²) times a smooth factor."""
    fraction, exponent = fraction_and_exponent(outside)
    logarithm = fraction.row("log") + exponent.to(tl.float64) * math.log(2)
    for _ in range(_NEWTON_STEPS):
        y = (y > NEAR).where(y, NEAR)
        factor = beyond(y)
        y = y + (factor.row("log") - y * y - logarithm) * factor * (_ROOT_OF_PI / 2)
    y = (y > NEAR).where(y, NEAR)
    factor = beyond(y)
    power, power_exponent = exponential_of_pair(-exact_product(y, y))
    ratio = (Pair(fraction, fraction.constant(0.0)) / (power * factor)).times(_power_of_two(exponent - power_exponent))
    return y, _halley(y, (ratio - 1.0).value * factor * (_ROOT_OF_PI / 2))


def _power_of_two(exponent: Term) -> Term:
    kind = FORMATS["fp64"]
    return power_of_two(exponent.to(kind.bits), kind)


def _solved(wanted: Wanted) -> Pair:
    """y for an `inside` from 0 to below 1."""
    y = _first(wanted)
    near = y < NEAR
    tiny = wanted.inside.high < 2.0**-28  # where erf(y) is a multiple of y
    ordinary = tiny.where(0.5, wanted.inside.high)
    inside = Wanted(pairs.where(near, Pair(ordinary, wanted.inside.low), Pair(y.constant(0.5), y.constant(0.0))), wanted.outside)
    found, wrong = _near(near.where(tiny.where(0.5, y), 0.5), inside)
    far, far_wrong = _far(near.where(NEAR, y), near.where(2.0**-20, wanted.outside))
    result = Pair(*two_sum(near.where(found, far), -near.where(wrong, far_wrong)))
    multiple = series.pair(series.exact("sqrt pi") / 2, y)
    straight = exact_product(wanted.inside.high, multiple.high)
    straight = Pair(straight.high, straight.low + wanted.inside.high * multiple.low)
    return pairs.where(tiny, straight, result)


def _erfinv(x: Term) -> Term:
    size = abs(x)
    within = size < 1.0
    size = within.where(size, 0.5)
    result = with_sign_of(_solved(Wanted(Pair(size, size.constant(0.0)), 1.0 - size)).value, x)
    ends = with_sign_of(abs(x).equals(1.0).where(x.constant(math.inf), math.nan), x)
    return within.where(result, ends)


def _of_complement(q: Term) -> tuple[Pair, Term]:
    """The y with erfc(y) = q for 0 < q < 2, without its sign, and whether that is negative."""
    above = q > 1.0
    outside = above.where(2.0 - q, q)
    return _solved(Wanted(Pair(*two_sum(outside.constant(1.0), -outside)), outside)), above


def _inverse_of_complement(q: Term, factor: Pair | None) -> Term:
    """The y with erfc(y) = q, or that times a factor: infinite at 0 and 2, NaN beyond."""
    within = (q > 0.0) & (q < 2.0)
    y, negative = _of_complement(within.where(q, 0.5))
    value = (y if factor is None else y * factor).value
    value = negative.where(-value, value)
    end = math.inf if factor is None else -math.inf
    ends = q.equals(0.0).where(end, q.equals(2.0).where(q.constant(-end), math.nan))
    return within.where(value, ends)


def _erfcinv(x: Term) -> Term:
    return _inverse_of_complement(x, None)


def _normcdfinv(x: Term) -> Term:
    return _inverse_of_complement(x + x, series.pair(-2 * series.exact("sqrt 1/2"), x)) + 0.0


for _name, _function in (("erfinv", _erfinv), ("erfcinv", _erfcinv), ("normcdfinv", _normcdfinv)):
    define.define(_name, floats(1), lambda x, function=_function: function(x.to(tl.float64)).to(x.dtype))
