"""Where arrays lie: hemispheres, slices and rows, before anything has a time.

Arrays that one stream operation accesses are in different slices, as a slice does one thing a cycle. Among the slices that are left
an array takes those that are least busy and nearest to the unit that uses it. All slices of an array are in one hemisphere. Only
where not all arrays of a launch fit do some have rows of others that are no longer needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tilefw.api import CapacityError
from tilefw_spatial.isa import TYPES
from tilefw_spatial.limits import SMALLER
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.program import RowAllocation
from tilefw_spatial.schedule.copies import copy_numbers
from tilefw_spatial.schedule.intervals import Span
from tilefw_spatial.schedule.lifetimes import Lifetime, lifetimes, most_alive
from tilefw_spatial.schedule.memory_map import MemoryMap, PlacedCopy, rows_of
from tilefw_spatial.stream_program import Array, LaneStreamOp, MatrixStreamOp, StreamOp, StreamProgram, VectorStreamOp, arrays_of

NEAR = 2
"""What a position farther away costs, a cycle in each direction, where a busy slice costs a cycle a row."""

Copy = tuple[int, int]
"""An array's identity and the number of one of its copies."""


@dataclass(slots=True)
class _ArrayUse:
    """What all stream operations together ask of one array."""

    array: Array
    copies: int = 1
    unit: str = "VXM"
    sides: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Placement:
    """Allocations of arrays, by identity: one for each copy. `before` has, for an array, those that had some of its rows before it:
    what is stored there must wait until they have been read. `used` counts bytes that some array has at some time."""

    allocations: dict[int, tuple[RowAllocation, ...]] = field(default_factory=dict)
    before: dict[int, frozenset[int]] = field(default_factory=dict)
    used: int = 0

    def of(self, array: Array) -> tuple[RowAllocation, ...]:
        """The copies of an array."""
        return self.allocations[id(array)]


def place_arrays(
    program: StreamProgram, machine: Machine, near: int = NEAR, by_use: bool = False, order: Sequence[StreamOp] | None = None,
    kept: Collection[int] = (), times: Mapping[int, Span] | None = None,
) -> Placement:
    """Allocations for all arrays of a stream program; the greater `near`, the more distance counts against busy slices. With
    `by_use` arrays choose in the order in which they are first used. `order` is that in which stream operations will be timed, if
    it is not the program's own; arrays of `kept` go over links; `times` has when arrays are accessed in an earlier schedule. Raises
    CapacityError."""
    uses = _uses(program)
    lives = lifetimes((use.array for use in uses.values()), program.stream_ops if order is None else order, kept)
    sizes = {key: rows_of(use.array) * use.copies for key, use in uses.items()}
    _check_capacity(most_alive(lives, sizes), machine)
    cyclic = {key for key in kept if key in uses and uses[key].sides}  # operands of products
    this = _Placer(machine, near, uses, _together(program, uses), _sides(program, uses), _mates(program), cyclic, times)
    born = sorted(uses, key=lambda key: lives[key].birth)
    if sum(sizes.values()) * machine.lanes <= machine.capacity:
        # Those that are used with the most others have the fewest slices to choose from: if slices run short, they come first.
        for ordered in (born if by_use else list(uses), sorted(uses, key=lambda key: -len(this.together[key, 0]))):
            with suppress(CapacityError):
                return this.placement(ordered, {})
    return this.placement(born, lives)


@dataclass(frozen=True, slots=True)
class _Placer:
    """What must be known of all arrays before one of them is allocated."""

    machine: Machine
    near: int
    uses: dict[int, _ArrayUse]
    together: dict[Copy, set[Copy]]
    sides: dict[int, str]
    mates: dict[int, set[int]]
    linked: Collection[int]
    times: Mapping[int, Span] | None

    def placement(self, order: Sequence[int], lives: Mapping[int, Lifetime]) -> Placement:
        """An allocation for each copy, in slices that no copy has that is used with it. Where lives are given, arrays come in the
        order of their births, and take rows of those that are dead by then. Raises CapacityError."""
        memory_map = MemoryMap(self.machine, self.near, self.linked, self.times)
        found: dict[int, tuple[PlacedCopy, ...]] = {}
        taken: dict[Copy, set[str]] = {}
        where: dict[int, str] = {}
        dying: list[tuple[int, int]] = []
        for key in order:
            lifetime = lives.get(key, Lifetime())
            while dying and dying[0][0] < lifetime.birth:
                for placed_copy in found[heappop(dying)[1]]:
                    memory_map.retire(placed_copy)
            found[key] = self._copies(key, memory_map, taken, where)
            if lifetime.death is not None:
                heappush(dying, (lifetime.death, key))
        allocations = {key: tuple(placed_copy.allocation for placed_copy in copies) for key, copies in found.items()}
        before = {key: frozenset().union(*(placed_copy.before for placed_copy in copies)) for key, copies in found.items()}
        return Placement(allocations, before, memory_map.used * self.machine.lanes)

    def _copies(
        self, key: int, memory_map: MemoryMap, taken: dict[Copy, set[str]], where: dict[int, str]
    ) -> tuple[PlacedCopy, ...]:
        """Each copy of one array in slices of its own. What steps make goes where the first array or copy of it is: `where`."""
        use = self.uses[key]
        own: set[str] = set()
        copies: list[PlacedCopy] = []
        for number, side in enumerate(_copy_sides(use, self.sides[key])):
            others = (taken[copy] for copy in self.together[key, number] if copy in taken)
            sides = [side, *(other for other in SIDES if other != side)]
            if key in self.mates:
                sides = [where[mate] for mate in self.mates[key] if mate in where][:1] or sides
            copies.append(memory_map.allocate(use.array, sides, use.unit, own.union(*others)))
            where[key] = side_of(copies[-1].allocation)
            taken[key, number] = _slices(copies[-1].allocation)
            own |= taken[key, number]
        return tuple(copies)


def _mates(program: StreamProgram) -> dict[int, set[int]]:
    """For each array that a step writes, all that this step writes: results of one step flow in one direction."""
    found: dict[int, set[int]] = {}
    for stream_op in program.stream_ops:
        if isinstance(stream_op, VectorStreamOp):
            for group, leaves in _groups(stream_op):
                if leaves:
                    together = {id(array) for array in group}.union(*(found.get(id(array), ()) for array in group))
                    found.update(dict.fromkeys(together, together))
    return found


def _check_capacity(rows: int, machine: Machine) -> None:
    needed = rows * machine.lanes
    if needed > machine.capacity:
        raise CapacityError(
            f"the arrays of this launch take {needed} bytes of memory at one time, of which {machine.name} has {machine.capacity}",
            code="TFW0690", help=SMALLER, resource="memory", needed=needed,
            note="inputs and results are on the chip from the first cycle to the last, what lies between as long as it is needed",
            available=machine.capacity, unit="bytes",
        )


def side_of(allocation: RowAllocation) -> str:
    """The hemisphere in which an allocation lies."""
    return allocation.planes[0][0].slice.removeprefix("MEM.")[0]


def _slices(allocation: RowAllocation) -> set[str]:
    return {rows.slice for blocks in allocation.planes for rows in blocks}


def _uses(program: StreamProgram) -> dict[int, _ArrayUse]:
    uses = {id(array): _ArrayUse(array) for array in program.arrays}
    for stream_op in program.stream_ops:
        for array in arrays_of(stream_op):
            use = uses.setdefault(id(array), _ArrayUse(array))
            if isinstance(stream_op, MatrixStreamOp):
                use.unit = f"MXM.{stream_op.side}"
                use.sides.add(stream_op.side)
        if isinstance(stream_op, VectorStreamOp):
            for key, copy in _reads(stream_op):
                uses[key].copies = max(uses[key].copies, copy + 1)
    for use in uses.values():
        use.copies = max(use.copies, len(use.sides))
    return {key: use for key, use in uses.items() if use.array.vectors}


def _reads(stream_op: VectorStreamOp) -> set[Copy]:
    """The copies that a stream operation reads."""
    numbered = list(zip(stream_op.reads, copy_numbers(stream_op), strict=True))
    return {(id(read.pattern.array), copy) for read, copy in numbered[len(stream_op.drains) :]}


def _together(program: StreamProgram, uses: dict[int, _ArrayUse]) -> dict[Copy, set[Copy]]:
    """For each copy those that some stream operation accesses at the same time."""
    found: dict[Copy, set[Copy]] = defaultdict(set)
    for stream_op in program.stream_ops:
        accessed = _copies(stream_op, uses)
        for copy in accessed:
            found[copy] |= accessed
    return found


def _copies(stream_op: StreamOp, uses: dict[int, _ArrayUse]) -> set[Copy]:
    """The copies that a stream operation reads or writes: each read of one array its own, results all of them."""
    match stream_op:
        case VectorStreamOp():
            return _reads(stream_op) | {copy for write in stream_op.writes for copy in _all(write.pattern.array, uses)}
        case MatrixStreamOp():
            return {(id(a), uses[id(a)].copies - 1 if stream_op.side == "E" else 0) for a in arrays_of(stream_op)}
        case LaneStreamOp():
            return {(id(stream_op.read.array), 0), *_all(stream_op.write.array, uses)}


def _all(array: Array, uses: dict[int, _ArrayUse]) -> set[Copy]:
    return {(id(array), number) for number in range(uses[id(array)].copies)}


def _copy_sides(use: _ArrayUse, side: str) -> Iterator[str]:
    """The side of each copy. What both matrix units read and the host fills has a copy with each."""
    spread = len(use.sides) == len(SIDES) and use.array.role in ("in", "const", "link")
    for copy in range(use.copies):
        yield ("E" if copy == use.copies - 1 else "W") if spread else side


def _sides(program: StreamProgram, uses: dict[int, _ArrayUse]) -> dict[int, str]:
    """A hemisphere for each array: what is asked for, else that which keeps both directions' streams evenly used."""
    sides: dict[int, str] = {}
    for stream_op in program.stream_ops:
        if isinstance(stream_op, VectorStreamOp):
            _choose_sides(stream_op, uses, sides)
    for key, use in uses.items():
        sides.setdefault(key, _asked(use) or "W")
    return sides


def _choose_sides(stream_op: VectorStreamOp, uses: dict[int, _ArrayUse], sides: dict[int, str]) -> None:
    """Sides for the arrays of a stream operation that have none yet. What comes from the west takes eastward streams, as do results
    that go east; results of one step flow in one direction."""
    load = [sum(4 for drained in stream_op.drains if drained.side == side) for side in SIDES]  # bytes eastward, westward
    for group, leaves in _groups(stream_op):
        asked = (side for array in group if (side := sides.get(id(array)) or _asked(uses[id(array)])))
        side = next(asked, "W" if load[leaves] <= load[not leaves] else "E")
        load[(side == "E") != leaves] += TYPES[group[0].dtype].nbytes
        for array in group:
            sides.setdefault(id(array), side)


def _groups(stream_op: VectorStreamOp) -> Iterator[tuple[Sequence[Array], bool]]:
    """Arrays that must share a side, with whether they take results."""
    for read in stream_op.reads[len(stream_op.drains) :]:
        yield [read.pattern.array], False
    for step in sorted({write.step for write in stream_op.writes}):
        yield [write.pattern.array for write in stream_op.writes if write.step == step], True


def _asked(use: _ArrayUse) -> str:
    """The side that the array itself or its only matrix unit asks for, or nothing."""
    return use.array.side or (next(iter(use.sides)) if len(use.sides) == 1 else "")
