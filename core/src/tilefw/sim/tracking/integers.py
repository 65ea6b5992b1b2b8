"""The exact integers that registers stand for, as they are followed beside the registers for the check of offsets.

For all lanes together they are an interval. Of a register's low 32 bits and an interval narrower than 2**32 follows the integer of
each lane, so that only wider ones need an integer a lane.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilefw.sim.algebra.exact import congruent, ends, signed
from tilefw.sim.algebra.intervals import Interval, bounds_of
from tilefw.sim.floats import Array

TOLD = 1 << 32
"""Integers less than this apart are told apart by 32 bits."""


class Held:
    """What a register's `value`, an array of a frame, stands for; it holds as long as the register has that array.

    It is an `Interval` to the algebra. `known`: the bounds mean something, in the lanes of the mask `where` (None: in all).
    `others` tells of the lanes outside of the mask, if anything is known of them. `lanes`: an integer a lane, where the bounds do
    not tell them. A `leaf` is no more than the register's own number. Most have 32 bits and nothing else to say, and cost less so.
    """

    __slots__ = ("high", "leaf", "low", "value")
    bits = 32
    sure = known = True
    lanes: Array | None = None
    where: Array | None = None
    others: Held | None = None

    def __init__(self, value: Array, low: int, high: int, leaf: bool) -> None:
        self.value, self.low, self.high, self.leaf = value, low, high, leaf

    @property
    def true(self) -> bool:
        """Whether every integer is what its register holds, with its sign."""
        return self.sure and -(1 << self.bits - 1) <= self.low and self.high < 1 << self.bits - 1

    @property
    def meant(self) -> bool:
        """Whether it is known to stand for more than the register's own number."""
        return self.known and not self.leaf

    @property
    def follows(self) -> bool:
        """Whether that is known of some lane, maybe of one outside of the mask."""
        return self.meant or (self.others is not None and self.others.follows)

    def integers(self) -> Array:
        """The integer of each lane of `where`."""
        assert self.known, "what is not known has no integers"
        if self.lanes is not None:
            return self.lanes
        return signed(self.value) if self.true else congruent(self.value, self.low)

    def of(self, mask: Array | None) -> Held:
        """What it says of the lanes of a mask, and maybe of more."""
        others, where = self.others, self.where
        if others is None or where is None or where is mask or (mask is not None and not (mask & ~where).any()):
            return self
        if self.leaf:  # a register tells its own number by itself
            found = others.only(~where)
            found.value = self.value
            return found
        found = OtherHeld(
            self.value, min(self.low, others.low), max(self.high, others.high), False, self.bits, self.sure and others.sure,
            where=None if others.where is None else where | others.where,
        )
        if not told(found):
            before, after = others.integers(), self.integers()
            if before.dtype != after.dtype:
                before, after = before.astype(object), after.astype(object)
            found.lanes = np.where(where, after, before)
        return found

    def only(self, where: Array) -> Held:
        """The same in the lanes of a mask at most."""
        where = where if self.where is None else self.where & where
        return OtherHeld(self.value, self.low, self.high, self.leaf, self.bits, self.sure, self.lanes, self.known, where)

    def moved(self, value: Array, taken: Callable[[Array], Array]) -> Held:
        """What `value` stands for, which is `taken` from this value, without the `others`."""
        lanes, where = (None if x is None else taken(x) for x in (self.lanes, self.where))
        return OtherHeld(value, self.low, self.high, self.leaf, self.bits, self.sure, lanes, self.known, where)


class OtherHeld(Held):
    """One with more to say."""

    __slots__ = ("bits", "known", "lanes", "others", "sure", "where")

    def __init__(
        self, value: Array, low: int, high: int, leaf: bool, bits: int, sure: bool = True, lanes: Array | None = None,
        known: bool = True, where: Array | None = None,
    ) -> None:
        super().__init__(value, low, high, leaf)
        self.bits, self.sure, self.lanes, self.known, self.where = bits, sure, lanes, known, where
        self.others: Held | None = None


def unknown(value: Array) -> Held:
    """A register of which nothing is known."""
    return OtherHeld(value, 0, 0, False, 32, known=False)


def own(value: Array) -> Held:
    """A register's own number."""
    bounds = bounds_of(value)
    if bounds is None:
        return unknown(value)
    bits = value.dtype.itemsize * 8
    return Held(value, *bounds, True) if bits == 32 else OtherHeld(value, *bounds, True, bits)


def told(interval: Interval | Held) -> bool:
    """Whether a register and the bounds tell the integers of all lanes."""
    return interval.high - interval.low < TOLD or interval.true


def bounded(value: Array, interval: Interval) -> Held:
    """A register that stands for integers which it and their bounds tell."""
    return OtherHeld(value, interval.low, interval.high, interval.leaf, interval.bits, interval.sure)


def of_lanes(value: Array, integers: Array, bits: int) -> Held:
    """A register that stands for these integers."""
    found = OtherHeld(value, *ends(integers), False, bits, bits <= 32)
    if not told(found):
        found.lanes = integers
    return found


def merged(old: Held | None, new: Held, mask: Array) -> Held:
    """What a register stands for that got `new` in the lanes of a mask and has `old` in the others, as far as that is followed."""
    found = new.only(mask)
    if new.where is None:
        found.where = mask  # the mask itself, as instructions under the same one look for it
    if old is not None and old.follows and new.known:
        others = old.others if old.where is mask else old.of(None)
        # A lane of the mask of which nothing new is known stands for what it held no longer.
        found.others = others if new.where is None or others is None else others.only(~mask)
    return found
