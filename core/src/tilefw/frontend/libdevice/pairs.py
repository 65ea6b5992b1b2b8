"""Unevaluated sums of two floats: about twice the precision, from operations that are rounded once.

Dekker, "A floating-point technique for extending the available precision", 1971; Joldes, Muller & Popescu, "Tight and
rigorous error bounds for basic building blocks of double-word arithmetic", 2017. Infinities and NaN are not kept: a function
decides them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilefw.frontend.libdevice.term import Term

Operand: TypeAlias = "Pair | Term | float"


def two_sum(x: Term, y: Term) -> tuple[Term, Term]:
    """x + y and its rounding error (Knuth)."""
    total = x + y
    shifted = total - x
    return total, (x - (total - shifted)) + (y - shifted)


def ordered_sum(x: Term, y: Term) -> Pair:
    """x + y where |x| >= |y| or x is 0 (Dekker)."""
    total = x + y
    return Pair(total, y - (total - x))


def exact_product(x: Term, y: Term) -> Pair:
    """x * y, exact unless it underflows."""
    product = x * y
    return Pair(product, x.fma(y, -product))


@dataclass(frozen=True, slots=True)
class Pair:
    """high + low, with |low| at most half of the last place of `high`."""

    high: Term
    low: Term

    @property
    def value(self) -> Term:
        """The nearest float."""
        return self.high + self.low

    def _same(self, other: Operand) -> Pair:
        if isinstance(other, Pair):
            return other
        high = other if isinstance(other, Term) else self.high.constant(other)
        return Pair(high, high.constant(0.0))

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def __add__(self, other: Operand) -> Pair:
        y = self._same(other)
        high, rest = two_sum(self.high, y.high)
        low, last = two_sum(self.low, y.low)
        middle = ordered_sum(high, rest + low)
        return ordered_sum(middle.high, last + middle.low)

    def __radd__(self, other: float) -> Pair:
        return self + other

    def __sub__(self, other: Operand) -> Pair:
        return self + -self._same(other)

    def __rsub__(self, other: Term | float) -> Pair:
        return self._same(other) + -self

    def __mul__(self, other: Operand) -> Pair:
        y = self._same(other)
        product = exact_product(self.high, y.high)
        cross = self.high.fma(y.low, self.low * y.high)
        return ordered_sum(product.high, product.low + cross)

    def __truediv__(self, other: Operand) -> Pair:
        y = self._same(other)
        quotient = self.high / y.high
        rest = (-quotient).fma(y.high, self.high) + (-quotient).fma(y.low, self.low)
        return ordered_sum(quotient, rest / y.high)

    def __rtruediv__(self, other: float) -> Pair:
        return self._same(other) / self

    def times(self, factor: Term | float) -> Pair:
        """The pair times a power of two."""
        return Pair(self.high * factor, self.low * factor)

    def root(self) -> Pair:
        """The square root of a pair that is not negative."""
        root = self.high.row("sqrt_rn")
        rest = (-root).fma(root, self.high) + self.low
        empty = root.equals(0.0)
        return ordered_sum(root, empty.where(0.0, rest / (root + root)))


def where(condition: Term, then: Pair, otherwise: Pair) -> Pair:
    """`then` where the condition holds, else `otherwise`."""
    return Pair(condition.where(then.high, otherwise.high), condition.where(then.low, otherwise.low))
