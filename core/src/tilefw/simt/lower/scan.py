"""Lowering of `tile.scan`: within a lane's registers, then between lanes by shuffles, then through shared memory, in any layout.

Bit by bit of the rank along the axis, from the lowest, blocks of elements are joined in pairs (Sklansky, "Conditional-Sum Addition
Logic", 1960): what the lower block comes to is put before every element of the upper one. For each bit there is a *flip*, a
difference of places (register, lane, wave) that changes this bit of the index and nothing else, so a block's other half is found
in any layout, among copies and under swizzles. Every place of a block knows its total; a flip of lanes exchanges totals in one
shuffle, those of waves go through shared memory, several flips at once. Where lanes follow one another in the order of ranks no
total is needed on the way: what an upper half lacks is the prefix that the last lane of the lower half has.

The lowest bits most often stand in registers: each lane then runs over its elements once, only the runs take part in what follows
as one element each, and in the end what comes before a run is put before each of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Any

from xdsl.ir import SSAValue

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.shape_maps import bit_starts, embedding
from tilefw.simt.lower.combine import ROUND, RegionCombiner
from tilefw.simt.lower.ranks import Group, Ranks, choose
from tilefw.tile.dialect.combine_op import ScanOp
from tilefw.tile.elementwise import ROWS


class How(Enum):
    """How the halves of a block meet."""

    REGISTERS = "in registers, which halves they are of being the same in all threads"
    LANES = "one lane's total with another's, or another register's"
    SHARED = "through shared memory"


@dataclass(frozen=True, slots=True)
class Flip:
    """What flips one bit of the index along the axis, as masks of register, lane and wave bits."""

    register: int
    lane: int
    wave: int
    how: How


@lru_cache(maxsize=1024)
def flips(layout: LinearLayout, axis: int, shuffles: bool) -> tuple[Flip, ...]:
    """The flips of a layout that covers its tile, from the lowest bit on; within a lane where a lane has both halves."""
    start = bit_starts(layout.shape)[axis]
    found: list[Flip] = []
    for bit in range(start, start + log2(layout.shape[axis])):
        register, lanes, waves = layout.split(layout.inverse[bit])
        if waves or (lanes and not shuffles):
            how = How.SHARED
        elif lanes or any(basis >> bit & 1 for basis in layout.thread):
            how = How.LANES
        else:
            how = How.REGISTERS
        found.append(Flip(register, lanes, waves, how))
    return tuple(found)


def lower(context: Any, op: ScanOp, operands: Sequence[SSAValue], layout: LinearLayout) -> Group:
    """The scan of tiles that stand in `layout`, in the same layout."""
    work = _Scan(context, op, list(operands), layout)
    for how, group in groupby(work.flips, key=lambda flip: flip.how):
        count = len(list(group))
        if how is How.REGISTERS:
            work.in_registers(count)
        elif how is How.LANES:
            while count:
                following = work.following(count)
                if following > 1:
                    work.across_lanes(following)
                    count -= following
                else:
                    work.between_lanes()
                    count -= 1
        else:
            for first in range(0, count, ROUND):
                work.through_shared(min(ROUND, count - first))
    return work.results()


@dataclass(frozen=True, slots=True)
class _Level:
    """Blocks of 2^j elements: their layout, for each register the one of its block, and for each block's register one of those."""

    layout: LinearLayout
    source: tuple[int, ...]
    registers: tuple[int, ...]


class _Scan(RegionCombiner):
    """`totals` are those of blocks of 2^`done` elements, in the registers of that level.

    `scanned` holds every register's prefix within its run of 2^`run` elements, and `before` for each run what comes before it in
    its block. Without runs (`run` = 0) `scanned` itself is the prefix within the block.
    """

    def __init__(self, context: Any, op: ScanOp, operands: Group, layout: LinearLayout) -> None:
        super().__init__(context, op)
        self.flips = flips(layout, op.axis, context.machine.chip.shuffles)
        self.layout = layout
        self.axis = op.axis
        self.reverse = op.reverse
        self.ranks = Ranks(context, layout, op.axis, op.reverse)
        self.commutative = all(row is not None and ROWS[row].commutative for row in op.component_rows)
        self.done = self.run = 0
        self.scanned = self.totals = operands
        self.before: Group | None = None

    def level(self, bits: int) -> _Level:
        """The blocks of 2^`bits` elements."""
        layout, source = self.layout.coarser(self.axis, bits)
        return _Level(layout, source, tuple(source.index(i) for i in range(layout.registers)))

    # Within a lane.

    def in_registers(self, width: int) -> None:
        """All parts of a block of 2^(done + width) elements stand in the lane's registers."""
        level, above = self.level(self.done), self.level(self.done + width)
        moves = f2.table([flip.register for flip in self.flips[self.done : self.done + width]])
        parts: list[Group] = []
        for rank in range(1 << width):
            places = [r ^ moves[rank ^ self.ranks.constant(r, self.done, width)] for r in above.registers]
            parts.append(self.pick(self.totals, [level.source[place] for place in places]))
        if self.done:
            self._join(parts, width)
        else:
            self._run(parts, width)

    def _run(self, parts: list[Group], width: int) -> None:
        """The first bits of all: every lane runs over its elements, one after the other."""
        sums = self._running(parts)
        above = self.level(width)
        n = above.layout.registers
        where = [self.ranks.constant(r, 0, width) * n + source for r, source in enumerate(above.source)]
        self.scanned = self.pick([self.builder.join(list(vectors)) for vectors in zip(*sums, strict=True)], where)
        self.totals = sums[-1]
        self.run = self.done = width

    def _running(self, parts: Sequence[Group]) -> list[Group]:
        sums = [parts[0]]
        for part in parts[1:]:
            sums.append(self.combine(sums[-1], part))
        return sums

    # Between lanes.

    def between_lanes(self) -> None:
        """Every lane gets the total of its block's other half."""
        flip, level = self.flips[self.done], self.level(self.done)
        given = self.pick(self.totals, [level.source[r ^ flip.register] for r in level.registers])
        distance = self.cheapest(flip.lane)
        other = [self.shuffled(value, distance) for value in given] if flip.lane else given
        upper = [self.ranks.at_least(r, self.done, 1, 1) for r in self._runs]
        self._put_before(lambda at: self.pick(other, [level.source[self._runs[i]] for i in at]), upper)
        if self.done + 1 < len(self.flips):
            self._meet(other, level)
        if flip.lane and not flip.register:
            self.now_alike(distance)
        self.done += 1

    def _meet(self, other: Group, level: _Level) -> None:
        """The totals of two halves, the lower one's first."""
        registers = self.level(self.done + 1).registers
        at = [level.source[r] for r in registers]
        mine, theirs = self.pick(self.totals, at), self.pick(other, at)
        if not self.commutative:
            upper = [self.ranks.at_least(r, self.done, 1, 1) for r in registers]
            pair = (lambda i: self.pick(theirs, i)), (lambda i: self.pick(mine, i))
            theirs, mine = choose(self.builder, upper, *pair), choose(self.builder, upper, *pair[::-1])
        self.totals = self.combine(theirs, mine)

    # Across lanes that follow one another.

    def following(self, most: int) -> int:
        """How many of the next flips, at most so many, are each one bit of the lane, which follow one another."""
        first, count = self.flips[self.done], 0
        for flip in self.flips[self.done : self.done + most]:
            bit = self.ranks.thread_bit(self.done + count)
            if flip.register or bit is None or flip.lane != 1 << bit or flip.lane != first.lane << count:
                break
            count += 1
        return count

    def across_lanes(self, width: int) -> None:
        """Each lane sums up the totals to its own: those of an upper half take what the last lane of the lower half has."""
        level, first = self.level(self.done), self.flips[self.done].lane
        sums, away = self.totals, "down" if self.reverse else "up"
        for step in range(width):
            if away in self.context.machine.chip.scan_shuffles:  # by Kogge and Stone: the sums so far of as many lanes again
                given = [self.shuffled(value, first << step, away) for value in sums]
                upper = [self.ranks.at_least(r, self.done, width, 1 << step) for r in level.registers]
            else:
                given = self._from_lower(sums, first, first << step)
                upper = [self.ranks.at_least(r, self.done + step, 1, 1) for r in level.registers]
            sums = self._after(lambda at, given=given: self.pick(given, at), upper, sums)
        group = ((1 << width) - 1) * first
        if self.done:
            mine = self._lane(lambda lane, b: b.op("addi", lane, b.constant(first if self.reverse else -first, lane.type)))
            given = [self.shuffled(value, mine, "index") for value in sums]
            upper = [self.ranks.at_least(r, self.done, width, 1) for r in self._runs]
            self._put_before(lambda at: self.pick(given, [level.source[self._runs[i]] for i in at]), upper)
        else:
            self.scanned = sums
        if self.done + width < len(self.flips):
            last = self._lane(lambda lane, b: self._end(lane, group))
            given = [self.shuffled(value, last, "index") for value in sums]
            self.totals = self.pick(given, [level.source[r] for r in self.level(self.done + width).registers])
            for step in range(width):
                self.now_alike(first << step)
        self.done += width

    def _from_lower(self, group: Group, first: int, half: int) -> Group:
        """What the last lane of the lower half has, in lanes of the upper half; `first` is the lane's lowest bit that counts."""
        mode = "upper" if self.reverse else "lower"
        if first == 1 and mode in self.context.machine.chip.scan_shuffles:
            return [self.shuffled(value, half, mode) for value in group]
        source = self._lane(lambda lane, b: b.op("xori", self._end(lane, half - first | half), b.constant(half, lane.type)))
        return [self.shuffled(value, source, "index") for value in group]

    def _end(self, lane: SSAValue, bits: int) -> SSAValue:
        """The last lane, in the order of ranks, of those that differ in these bits."""
        b = self.builder
        if self.reverse:
            return b.op("andi", lane, b.constant(self.context.machine.lanes - 1 & ~bits, lane.type))
        return b.op("ori", lane, b.constant(bits, lane.type))

    def _lane(self, of: Any) -> SSAValue:
        """A lane's index, made of the thread's own."""
        b, last = self.builder, self.context.machine.lanes - 1
        lanes = b.constant(last, self.context.address.thread_id().type)
        return b.op("andi", of(b.op("andi", self.context.address.thread_id(), lanes), b), lanes)

    # Through shared memory.

    def through_shared(self, width: int) -> None:
        """Every total is written once, and each thread reads all parts of its blocks of 2^(done + width) elements."""
        level, above = self.level(self.done).layout, self.level(self.done + width).layout
        low = tuple(1 << width if d == self.axis else 1 for d in range(len(level.shape)))
        inner, outer = embedding(low, level.shape, low)
        register, lanes, waves = (f2.compose(outer, bases) for bases in (above.register, above.lane, above.wave))
        read = LinearLayout(level.shape, inner + register, lanes, waves)
        gathered = self.exchanged(self.totals, level, read)
        parts = [self.pick(gathered, range(part, read.registers, 1 << width)) for part in range(1 << width)]
        self._join(parts[::-1] if self.reverse else parts, width)

    # Both.

    def _join(self, parts: list[Group], width: int) -> None:
        """Every place has all parts of its block at hand, in the order of ranks."""
        last = self.done + width == len(self.flips)
        sums = self._running(parts[:-1] if last else parts)
        source = self.level(self.done + width).source
        runs = self._runs

        def lower_parts(at: list[int]) -> Group:
            """The sum of the parts below the place's own."""
            where = [source[runs[i]] for i in at]
            found = self.pick(sums[0], where)
            for own in range(2, 1 << width):
                known, reached = found, sums[own - 1]
                found = choose(
                    self.builder, [self.ranks.at_least(runs[i], self.done, width, own) for i in at],
                    lambda k, reached=reached: self.pick(reached, [where[i] for i in k]),
                    lambda k, known=known: self.pick(known, k),
                )
            return found

        self._put_before(lower_parts, [self.ranks.at_least(r, self.done, width, 1) for r in runs])
        self.totals = sums[-1]
        self.done += width

    @property
    def _runs(self) -> tuple[int, ...]:
        """A register of each run."""
        return self.level(self.run).registers

    def _put_before(self, lower_parts: Any, upper: Sequence[Any]) -> None:
        """Where `upper`, the parts below come before what is known of the block; the runs at the indices asked for."""
        if not self.run:
            self.scanned = self._after(lower_parts, upper, self.scanned)
        elif self.before is None:  # in the lowest part nothing comes before, and nobody asks for it
            self.before = lower_parts(list(range(len(upper))))
        else:
            before = self.before
            inside = [self.ranks.at_least(r, self.run, self.done - self.run, 1) for r in self._runs]

            def longer(at: list[int]) -> Group:
                found = lower_parts(at)
                return self._after(lambda k: self.pick(found, k), [inside[i] for i in at], self.pick(before, at), found)

            self.before = choose(self.builder, upper, longer, lambda at: self.pick(before, at))

    def _after(self, first: Any, where: Sequence[Any], then: Group, otherwise: Group | None = None) -> Group:
        """`first` combined with `then` at the places where there is something before them."""
        rest = then if otherwise is None else otherwise
        return choose(
            self.builder, where, lambda at: self.combine(first(at), self.pick(then, at)), lambda at: self.pick(rest, at)
        )

    def results(self) -> Group:
        """The prefixes of the whole axis."""
        if self.before is None:
            return self.scanned
        before, source = self.before, self.level(self.run).source
        inside = [self.ranks.at_least(r, self.run, len(self.flips) - self.run, 1) for r in range(self.layout.registers)]
        return self._after(lambda at: self.pick(before, [source[r] for r in at]), inside, self.scanned)
