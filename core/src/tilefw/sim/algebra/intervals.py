"""The algebra on intervals: within what bounds the exact integers of all lanes lie that sums, products and choices give.

It knows integers as they are meant, and not modulo a width. None is an integer that is not known: what something else gives than
sums, products and choices. A register that holds a number of its own (a `leaf`) is read with a sign, however a meaning comes to the
low bits of its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.sim.floats import SIGNED, Array


class Interval:
    """Integers from `low` to `high` in registers of so many `bits`. `sure`: of more than 32 bits, each integer is what the register
    holds, with its sign; up to 32 bits the bounds tell."""

    __slots__ = ("bits", "high", "leaf", "low", "sure")

    def __init__(self, low: int, high: int, bits: int = 32, leaf: bool = False, sure: bool = True) -> None:
        self.low, self.high, self.bits, self.leaf, self.sure = low, high, bits, leaf, sure

    @property
    def true(self) -> bool:
        """Whether every integer is what its register holds, with its sign."""
        return self.sure and -(1 << self.bits - 1) <= self.low and self.high < 1 << self.bits - 1

    def __repr__(self) -> str:
        return f"[{self.low}, {self.high}]:{self.bits}"


class UnknownParts:
    """Registers side by side that are no integer, for `split`."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Known]) -> None:
        self.parts = tuple(parts)


Known = Interval | None


def largest(value: Array) -> int:
    """The largest number of a register, without a sign."""
    return int(np.maximum.reduce(value, axis=None))


def bounds_of(value: Array) -> tuple[int, int] | None:
    """Bounds of a register's own numbers; None where it holds no integers of up to 64 bits."""
    if value.dtype.kind != "u":
        return None
    bits = value.dtype.itemsize * 8
    if value.size == 1:
        number = int(value.flat[0])
        number -= number >> bits - 1 << bits
        return number, number
    high = largest(value)
    if high >> bits - 1:  # some have a sign
        signed = value.view(SIGNED[bits])
        return int(signed.min()), int(signed.max())
    return 0, high


class IntervalAlgebra:
    """The primitives; those that are not here give what is not known."""

    wave_size = 0

    def __getattr__(self, name: str) -> Any:
        return _unknown

    def const(self, value: int, bits: int) -> Known:
        value = ((value + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1)
        return Interval(value, value, bits, True)

    def add(self, a: Known, b: Known) -> Known:
        if a is None or b is None:
            return None
        return Interval(a.low + b.low, a.high + b.high, a.bits, False, _sure(a, b))

    def sub(self, a: Known, b: Known) -> Known:
        if a is None or b is None:
            return None
        return Interval(a.low - b.high, a.high - b.low, a.bits, False, _sure(a, b))

    def neg(self, a: Known) -> Known:
        return None if a is None else Interval(-a.high, -a.low, a.bits, False, _sure(a))

    def add_carry(self, a: Known, b: Known, carry: Known) -> tuple[Known, Known]:
        return (self.add(a, b), None) if _is(carry, 0) else (None, None)

    def sub_borrow(self, a: Known, b: Known, borrow: Known) -> tuple[Known, Known]:
        return (self.sub(a, b), None) if _is(borrow, 0) else (None, None)

    def mul(self, a: Known, b: Known) -> Known:
        if a is None or b is None:
            return None
        return Interval(*product(a.low, a.high, b.low, b.high), a.bits, False, _sure(a, b))

    def mul_wide(self, a: Known, b: Known, signed: bool) -> Known:
        if a is None or b is None:
            return None
        sure = a.true and b.true and (signed or (a.low >= 0 and b.low >= 0))
        return Interval(*product(a.low, a.high, b.low, b.high), 2 * a.bits, False, sure)

    def shl(self, a: Known, amount: Known) -> Known:
        if a is None or amount is None or amount.low != amount.high or not 0 <= amount.low < a.bits:
            return None
        return Interval(a.low << amount.low, a.high << amount.low, a.bits, False, _sure(a))

    def and_(self, a: Known, b: Known) -> Known:
        if a is None or b is None or a.low != a.high or b.low != b.high:
            return None
        return Interval(a.low & b.low, a.low & b.low, a.bits, True)

    def select(self, p: Known, a: Known, b: Known) -> Known:
        """Beside an offset without a sign a register's own number has none either: it is one that no offset reaches."""
        if a is None or b is None:
            return None
        low, high = chosen(a.low, a.high, a.leaf, b.low, b.high, b.leaf, 1 << a.bits)
        return Interval(low, high, a.bits, a.leaf and b.leaf, _sure(a, b))

    def sign_extend(self, a: Known, bits: int) -> Known:
        return None if a is None else Interval(a.low, a.high, bits, a.leaf, a.true)

    def zero_extend(self, a: Known, bits: int) -> Known:
        return None if a is None else Interval(a.low, a.high, bits, a.leaf, a.low >= 0 and a.high < 1 << a.bits)

    def truncate(self, a: Known, bits: int) -> Known:
        return None if a is None else Interval(a.low, a.high, bits)

    def read_lane(self, a: Known, lane: Known, inactive: str = "undefined") -> Known:
        return a

    def join(self, parts: Sequence[Known]) -> Known | UnknownParts:
        return UnknownParts(parts)

    def split(self, a: Known | UnknownParts, bits: int) -> tuple[Known, ...]:
        if isinstance(a, UnknownParts):
            return a.parts
        if a is None:
            raise TypeError("parts of what is not known")
        return (Interval(a.low, a.high, bits), *[None] * (a.bits // bits - 1))


def product(a_low: int, a_high: int, b_low: int, b_high: int) -> tuple[int, int]:
    """Bounds of the products of integers within bounds."""
    if a_low >= 0 and b_low >= 0:
        return a_low * b_low, a_high * b_high
    corners = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    return min(corners), max(corners)


def chosen(a_low: int, a_high: int, a_leaf: bool, b_low: int, b_high: int, b_leaf: bool, modulus: int) -> tuple[int, int]:
    """Bounds of what is chosen between two registers; see `IntervalAlgebra.select`."""
    if b_leaf and not a_leaf and b_high < 0 <= a_low:
        b_low, b_high = b_low + modulus, b_high + modulus
    elif a_leaf and not b_leaf and a_high < 0 <= b_low:
        a_low, a_high = a_low + modulus, a_high + modulus
    return min(a_low, b_low), max(a_high, b_high)


def _unknown(*operands: Any, **keywords: Any) -> None:
    return None


def _sure(*operands: Interval) -> bool:
    """Whether a result of more than 32 bits is what its register holds, as long as it is within the width."""
    return all(operand.bits <= 32 or operand.true for operand in operands)


def _is(a: Known, number: int) -> bool:
    return a is not None and a.low == a.high == number


INTERVALS = IntervalAlgebra()
