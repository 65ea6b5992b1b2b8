"""Lowering of `tile.reduce`: within a lane's registers, then between lanes by shuffles, then through shared memory.

Two places (register, lane, wave) hold elements that are combined into one when they differ along the axis only: when the
layout without the axis sends their difference to zero. A basis of those differences, less what only leads to copies, are the
*directions*; combining along each of them once combines all. Where a direction ends (its highest bit) says how: a register bit
costs an instruction an element, a lane bit a shuffle as well, a wave bit a trip through shared memory, which then serves
several directions at once. After it every place holds the result of its element.

Where one index alone takes part (`passes/lone_index.py`), the registers that can hold it are taken: a register bit costs nothing
where lanes or waves combine as well, else all of them together one instruction, which combines with what is neutral.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xdsl.ir import SSAValue

from tilefw.api.integers import log2
from tilefw.passes.lone_index import lone_reduction
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.lower.combine import ROUND, RegionCombiner
from tilefw.tile.dialect.combine_op import ReduceOp

_ACCUMULATORS = 4  # chains of combinations side by side: a chunk of selection, and enough to hide an instruction's latency


@dataclass(frozen=True, slots=True)
class Direction:
    """A difference between places as masks of register, lane and wave bits; `pivot` is its highest bit over all three."""

    register: int
    lane: int
    wave: int
    pivot: int

    @property
    def local(self) -> bool:
        """Whether it stays within a lane."""
        return not self.lane and not self.wave


@dataclass(frozen=True, slots=True)
class Directions:
    """The directions of a reduction, those within a lane first, then those within a wave.

    `parts` says, for the bits of a place (register, lane and wave bits in this order) that are an own way along the axis, along
    which directions they lead, as a mask. A place is on the far side of the directions that its bits lead along.
    """

    found: tuple[Direction, ...]
    parts: tuple[tuple[int, int], ...]


@lru_cache(maxsize=1024)
def directions(layout: LinearLayout, axis: int) -> Directions:
    """Along which differences a reduction over `axis` combines."""
    bases = layout.register + layout.lane + layout.wave
    image = f2.Subspace()
    found: list[Direction] = []
    parts: list[tuple[int, int]] = []
    first_lane, first_wave = len(layout.register), len(layout.register) + len(layout.lane)
    # Each of these vectors has a bit that no other has: its highest.
    for vector in f2.kernel([_without(layout, b, axis) for b in bases]):
        along = f2.apply(bases, vector)
        pivot = vector.bit_length() - 1
        led = image.solve(along)
        if led is None:
            led = 1 << len(found)
            image.add(along)
            register = vector & ((1 << first_lane) - 1)
            lanes = vector >> first_lane & ((1 << len(layout.lane)) - 1)
            found.append(Direction(register, lanes, vector >> first_wave, pivot))
        parts.append((pivot, led))
    return Directions(tuple(found), tuple(parts))


def _without(layout: LinearLayout, basis: int, axis: int) -> int:
    """A basis vector in the flat index of the tile without the axis."""
    flat = 0
    for d, (size, c) in enumerate(zip(layout.shape, layout.coordinates(basis), strict=True)):
        if d != axis:
            flat = flat << log2(size) | c
    return flat


@lru_cache(maxsize=1024)
def lone_registers(layout: LinearLayout, axis: int, index: int) -> dict[int, int] | None:
    """For each register that is left within a lane, the one of its elements that can have `index` along `axis`.

    None where which one that is depends on the lane or the wave.
    """
    local = [d for d in directions(layout, axis).found if d.local]

    def along(flat: int) -> int:
        return layout.coordinates(flat)[axis]

    threads = layout.lane + layout.wave
    span = f2.Subspace(along(basis) for basis in threads)
    rank = span.rank
    for direction in local:
        span.add(along(f2.apply(layout.register, direction.register)))
    if span.rank != rank + len(local):
        return None
    found: dict[int, int] = {}
    pivots = sum(1 << d.pivot for d in local)
    for register in (r for r in range(layout.registers) if not r & pivots):
        led = span.solve(index ^ along(f2.apply(layout.register, register))) or 0  # 0 too where none of its elements has the index
        offset = 0
        for at, direction in enumerate(local):
            if led >> len(threads) + at & 1:
                offset ^= direction.register
        found[register] = register ^ offset
    return found


def lower(context: Any, op: ReduceOp, operands: Sequence[SSAValue], layout: LinearLayout) -> list[SSAValue]:
    """The reduction of tiles that stand in `layout`: its results in the slice that `layout.slice(op.axis)` gives, or as scalars."""
    work = _Reduction(context, op, list(operands), layout)
    found = directions(layout, op.axis).found
    local = [d for d in found if d.local]
    lone = lone_reduction(op) if local else None
    offsets = None if lone is None else lone_registers(layout, op.axis, lone.at.index)
    if offsets is None:
        work.in_registers(local)
    else:
        work.take_registers(local, offsets, alone=len(local) == len(found))
    shuffled = [d for d in found if d.lane and not d.wave] if context.machine.chip.shuffles else []
    for direction in shuffled:
        work.between_lanes(direction)
    rest = [d for d in found if not d.local and d not in shuffled]
    for first in range(0, len(rest), ROUND):
        work.through_shared(rest[first : first + ROUND], len(rest[first + ROUND :]))
    return work.results()


class _Reduction(RegionCombiner):
    """`values` hold the elements of `registers`, ascending; `dropped` are the register directions combined already."""

    def __init__(self, context: Any, op: ReduceOp, values: list[SSAValue], layout: LinearLayout) -> None:
        super().__init__(context, op)
        self.values = values
        self.layout = layout
        self.axis = op.axis
        self.target, _ = layout.slice(op.axis)
        self.registers = list(range(layout.registers))
        self.dropped: list[Direction] = []

    def of(self, registers: Sequence[int]) -> list[SSAValue]:
        """The values of these registers, in this order."""
        at = {r: i for i, r in enumerate(self.registers)}
        return self.pick(self.values, [at[r] for r in registers])

    def in_registers(self, found: Sequence[Direction]) -> None:
        """A few accumulators run over the lane's elements, then are combined with each other.

        Runs, not a tree over halves: a product of each element then goes into its sum at once, and few registers are alive.
        """
        pivots = sum(1 << d.pivot for d in found)
        kept = [r for r in self.registers if not r & pivots]
        side = 0
        while side < len(found) and len(kept) << side < _ACCUMULATORS:
            side += 1
        side_by_side, runs = list(found[:side]), found[side:]
        first = sorted(r ^ offset for r in kept for offset in f2.table([d.register for d in side_by_side]))
        totals: list[SSAValue] | None = None
        for offset in f2.table([d.register for d in runs]):
            part = self.of([r ^ offset for r in first])
            totals = part if totals is None else self.combine(totals, part)
        assert totals is not None
        self.values, self.registers = totals, first
        while side_by_side:
            direction = side_by_side.pop()
            low = [r for r in self.registers if not r >> direction.pivot & 1]
            self.values = self.combine(self.of(low), self.of([r ^ direction.register for r in low]))
            self.registers = low
        self.dropped = list(found)

    def take_registers(self, found: Sequence[Direction], holders: Mapping[int, int], alone: bool) -> None:
        """Of the elements that `in_registers` combines the only ones that are not neutral, if any is. Where a lane has the axis
        `alone`, beside one that is neutral: no other brings it, and a sum with +0 is not -0, nor a maximum with 5 below that."""
        taken = list(holders.values())
        neutral = [register ^ found[0].register for register in taken] if alone else []
        self.values = self.combine(self.of(taken), self.of(neutral)) if alone else self.of(taken)
        self.registers = list(holders)
        self.dropped = list(found)

    def between_lanes(self, direction: Direction) -> None:
        """Every lane combines with its partner's element of the same place."""
        offset = direction.register
        for done in self.dropped:  # registers that are gone hold what the one that is left holds
            if offset >> done.pivot & 1:
                offset ^= done.register
        parts = self.of([r ^ offset for r in self.registers])
        distance = self.cheapest(direction.lane)
        self.values = self.combine(self.values, [self.shuffled(part, distance) for part in parts])
        if not offset:
            self.now_alike(distance)

    def through_shared(self, found: Sequence[Direction], later: int) -> None:
        """Every part is written at (element, part), and each thread reads all parts of its elements.

        Places that differ along one of the `later` directions, which another trip combines, keep parts of their own.
        """
        shift, width = len(found), len(found) + later
        whole = directions(self.layout, self.axis)
        first_bit = whole.found.index(found[0])
        part = {bit: led >> first_bit & ((1 << width) - 1) for bit, led in whole.parts}
        parts = tuple(1 << i for i in range(shift))
        target, first = self.target, len(self.layout.register)
        shape = (*target.shape, 1 << width)
        register, lanes, waves = (tuple(b << width for b in bases) for bases in (target.register, target.lane, target.wave))

        def told(bases: Sequence[int], start: int, kept: int) -> tuple[int, ...]:
            return tuple(b | part.get(start + i, 0) & kept for i, b in enumerate(bases))

        threads = ((lanes, first), (waves, first + len(lanes)))
        written = LinearLayout(shape, register, *(told(bases, start, -1) for bases, start in threads))
        read = LinearLayout(shape, parts + register, *(told(bases, start, -1 << shift) for bases, start in threads))
        gathered = self.exchanged(self.values, written, read)
        chunks = [self.pick(gathered, range(p, read.registers, 1 << shift)) for p in range(1 << shift)]
        self.values = chunks[0]
        for chunk in chunks[1:]:
            self.values = self.combine(self.values, chunk)

    def results(self) -> list[SSAValue]:
        """The values in the registers of the layout's slice, which keeps the register bits that no direction ends in, in order."""
        if self.target.shape:
            return self.values
        return [self.builder.uniform(v) for v in self.values]
