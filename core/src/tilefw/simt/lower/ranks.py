"""Where places stand along an axis, as predicates: known for a register in all threads, or a comparison that each thread makes.

The rank of an element is its index along the axis or, reversed, its index from the end: all bits of it are flipped then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout

Predicate = bool | SSAValue  # a value is a `vector<1xi1>` of the thread
Group = list[SSAValue]  # vectors of one length, for each of the tiles that are scanned together


class Ranks:
    """Ranks along `axis` of the elements that a layout's registers hold. A field is `width` bits of a rank from bit `first` on."""

    def __init__(self, context: Any, layout: LinearLayout, axis: int, reverse: bool) -> None:
        self._address = context.address
        self._builder: LaneBuilder = context.builder
        self._indices = [layout.coordinates(element)[axis] for element in layout.elements]
        spare = self._address.spare  # bits that are 0 in all threads that have stayed
        self._thread = [0 if spare >> bit & 1 else layout.coordinates(basis)[axis] for bit, basis in enumerate(layout.thread)]
        self._flipped = -1 if reverse else 0

    def constant(self, register: int, first: int, width: int) -> int:
        """A register's field in thread 0."""
        return _field(self._indices[register] ^ self._flipped, first, width)

    def thread_bit(self, bit: int) -> int | None:
        """The bit of the thread index that a bit of the rank is in all registers (or, reversed, is not); None if there is no such
        one."""
        found = [i for i, basis in enumerate(self._thread) if basis >> bit & 1]
        return found[0] if len(found) == 1 and not any(index >> bit & 1 for index in self._indices) else None

    def at_least(self, register: int, first: int, width: int, least: int) -> Predicate:
        """Whether a register's field is at least `least`."""
        constant = self.constant(register, first, width)
        bases = [_field(basis, first, width) for basis in self._thread]
        if not any(bases):
            return constant >= least
        if least == 1:
            return self._other_than_zero(constant, bases)
        b, part = self._builder, self._address.thread_part(bases)
        mine = b.op("xori", part, b.constant(constant, part.type))
        return b.op("ges", mine, b.constant(least, mine.type))

    def _other_than_zero(self, constant: int, bases: Sequence[int]) -> Predicate:
        """Whether the XOR of the constant and the thread's bases is not zero."""
        reached = 0
        for basis in bases:
            reached |= basis
        if constant & ~reached:
            return True
        if reached == 1 and sum(bases) == 1:  # one bit of the thread index, compared where it stands
            at = bases.index(1)
            constant, bases = constant << at, [basis << at for basis in bases]
        part = self._address.thread_part(bases)
        return self._builder.op("nei", part, self._builder.constant(constant, part.type))


def choose(
    b: LaneBuilder, predicates: Sequence[Predicate], then: Callable[[list[int]], Group], otherwise: Callable[[list[int]], Group]
) -> Group:
    """Element by element one of two groups, which give the elements at the indices they are asked for.

    Where a predicate is known the other group is not asked.
    """
    places: dict[Predicate, list[int]] = {}
    for index, predicate in enumerate(predicates):
        places.setdefault(predicate, []).append(index)
    pieces: list[Group] = []
    for predicate, at in places.items():
        if isinstance(predicate, bool):
            pieces.append(then(at) if predicate else otherwise(at))
            continue
        mask = b.splat(predicate, len(at))
        pieces.append([b.op("select", mask, yes, no) for yes, no in zip(then(at), otherwise(at), strict=True)])
    order = [index for at in places.values() for index in at]
    back = [order.index(index) for index in range(len(order))]
    return [b.pick(b.join(list(parts)), back) for parts in zip(*pieces, strict=True)]


def _field(value: int, first: int, width: int) -> int:
    return value >> first & ((1 << width) - 1)
