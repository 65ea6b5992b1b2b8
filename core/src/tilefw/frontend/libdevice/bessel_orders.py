"""Bessel functions of any whole order, computed in float64 by the recurrence from orders 0 and 1, in the direction that is stable.

NIST DLMF 10.6.1 (recurrence), 10.74(iv) (stability), 10.14.8 (Kapteyn's bound, below which a result is 0). Where J falls with its
order, the quotients of neighbours follow from those above, which matter less with each step (Gautschi, "Computational aspects of
three-term recurrence relations", 1967). The time grows with the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tilefw.language as tl
from tilefw.frontend.builtins.reduction import any_of
from tilefw.frontend.libdevice.bessel import first_kind, second_kind
from tilefw.frontend.libdevice.signatures import Functions
from tilefw.frontend.libdevice.term import Term
from tilefw.frontend.values import RuntimeValue

define = Functions()

_WITH_ORDER = (("int32", "fp32"), ("int32", "fp64"))
_LEAST_LOGARITHM = -750.0  # of what float64 holds
_ABOVE = 160.0  # quotients are followed from sqrt(160 n) orders above n on
_FAR = 2.0**300  # stands for the quotient by a zero

# From the terms of one step: where it is taken, and the terms after it.
Step = Callable[..., tuple[Term, Sequence[Term]]]


def _stepped(step: Step, *start: Term) -> list[Term]:
    """The terms after the last step, which no element takes any more."""
    b = start[0].b

    def take(*values: RuntimeValue) -> tuple[RuntimeValue, list[RuntimeValue]]:
        before = [Term(b, value) for value in values]
        taken, after = step(*before)
        chosen = [taken.where(new, old).value for new, old in zip(after, before, strict=True)]
        return any_of(b, "libdevice", taken.value), chosen

    return [Term(b, value) for value in b.until([term.value for term in start], take)]


def _upwards(order: Term, x: Term, at_0: Term, at_1: Term) -> Term:
    """The value of an order from those of orders 0 and 1; an infinite one stays."""

    def step(k: Term, below: Term, here: Term) -> tuple[Term, Sequence[Term]]:
        above = (k + k).to(tl.float64) / x * here - below
        return (k < order) & (abs(here) < math.inf), (k + 1, here, above)

    here = _stepped(step, order.constant(1), at_0, at_1)[2]
    return order.equals(0).where(at_0, here)


def _by_quotients(order: Term, x: Term, first: Term, at_0: Term, at_1: Term) -> Term:
    """J of an order above x, by the quotients J(k) / J(k - 1) from `first` down, and the larger one of orders 0 and 1."""
    from_0 = abs(at_0) >= abs(at_1)
    least = from_0.where(order.constant(1), 2)

    def step(k: Term, quotient: Term, product: Term) -> tuple[Term, Sequence[Term]]:
        inverse = (k + k).to(tl.float64) / x - quotient
        below = inverse.equals(0.0).where(_FAR, 1.0 / inverse)
        counts = (k <= order) & (k >= least)
        return k > 0, (k - 1, below, counts.where(product * below, product))

    product = _stepped(step, first, x.constant(0.0), x.constant(1.0))[2]
    return from_0.where(at_0, at_1) * product


def _least_logarithm(order: Term, x: Term) -> Term:
    """Kapteyn's bound of ln |J| for 0 <= x < order."""
    n = order.to(tl.float64)
    ratio = x / n
    root = (1.0 - ratio * ratio).row("sqrt_rn")
    return n * (ratio.row("log") + root - (root + 1.0).row("log"))


def _jn(order: Term, x: Term) -> Term:
    n = order.to(tl.int64)
    size = (abs(x) < math.inf).where(abs(x), 0.0)
    at_0, at_1 = first_kind(0, size), first_kind(1, size)
    falls = (n > 1) & (n.to(tl.float64) > size)
    zero = falls & ~(_least_logarithm(falls.where(n, 2), falls.where(size, 1.0)) > _LEAST_LOGARITHM)
    quotients = falls & ~zero
    above = n + (quotients.where(n, 0).to(tl.float64) * _ABOVE).row("sqrt_rn").to(tl.int64)
    fallen = _by_quotients(n, quotients.where(size, 1.0), quotients.where(above, 0), at_0, at_1)
    risen = _upwards(falls.where(n.constant(1), n), falls.where(1.0, size), at_0, at_1)
    result = zero.where(0.0, quotients.where(fallen, risen))
    result = ((x < 0.0) & (n & 1).equals(1)).where(-result, result)
    result = abs(x).equals(math.inf).where(0.0, result)
    return x.is_nan().where(x, (n < 0).where(math.nan, result))


def _yn(order: Term, x: Term) -> Term:
    n = order.to(tl.int64)
    inside = (x < math.inf).where(x, 1.0)
    result = _upwards(n, inside, second_kind(0, inside), second_kind(1, inside))
    result = x.equals(math.inf).where(0.0, result)
    result = (x < 0.0).where(math.nan, result)
    return x.is_nan().where(x, (n < 0).where(math.nan, result))


for _name, _function in (("jn", _jn), ("yn", _yn)):
    define.define(_name, _WITH_ORDER, lambda n, x, function=_function: function(n, x.to(tl.float64)).to(x.dtype))
