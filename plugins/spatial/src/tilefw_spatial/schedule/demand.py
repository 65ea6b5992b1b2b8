"""What stream operations need, collected part by part: rows of slices, streams between units, ALUs, planes.

Times are counted from the stream operation's begin. An RD issued at t in a slice at position p has its row on the stream at t +
read there, and a vector passes a position q ≥ p (eastward) at that time + q - p: a unit at q that takes it at t' is served by RDs
issued at t' - |q - p| - read, whichever slice they are in. A WR issued at t stores what passes at t + write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tilefw.api import InternalError
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst, RowAllocation, SliceRows
from tilefw_spatial.schedule.intervals import Span, merged
from tilefw_spatial.schedule.reservations import Candidate, Demand, Pool, Resource
from tilefw_spatial.schedule.runs import AccessRun, RowAccess, row_accesses


@dataclass(frozen=True, slots=True)
class DemandedIssue:
    """An instruction and when it issues; `repeats` times in all, every `period` cycles, `jump` added to its address each time."""

    queue: str
    cycle: int
    inst: QueueInst
    repeats: int = 1
    period: int = 0
    jump: int = 0

    @property
    def last(self) -> int:
        """The cycle in which the last vector of the last repetition issues."""
        return self.cycle + (self.repeats - 1) * self.period + self.inst.burst - 1


@dataclass(frozen=True, slots=True)
class DemandGroup:
    """Streams that a stream operation will get: `pool` is its number in the demand, `bases` the first stream of each candidate."""

    pool: int
    bases: tuple[int, ...]


Make = Callable[[Sequence[int]], DemandedIssue]
"""An issue at a time counted from the stream operation's begin, once the choices of the pools are known."""


@dataclass(frozen=True, slots=True)
class RowBursts:
    """A slice or a bank that moves the rows of an access, the first of them at `begin`."""

    resource: Resource
    begin: int
    access: RowAccess

    def spans(self, between: bool) -> list[Span]:
        """When it is taken: without a pause, or with `between` for the bursts alone."""
        access = self.access
        if not between:
            return [(self.begin, self.begin + access.end - access.point)]
        begins = (self.begin + number * access.period for number in range(access.repeats))
        return [(begin, begin + access.count) for begin in begins]


@dataclass(slots=True)
class DemandPlan:
    """A stream operation's demand as it grows, and its issues: each is made when the choices are known."""

    machine: Machine
    fixed: dict[Resource, list[Span]] = field(default_factory=dict)
    pools: list[Pool] = field(default_factory=list)
    makes: list[Make] = field(default_factory=list)
    least: int = 0
    bursts: list[RowBursts] = field(default_factory=list)

    def demand(self, between: bool = False) -> Demand:
        """All that was asked for so far; queues begin at cycle 0. With `between`, slices are free between bursts of rows."""
        asked = {name: list(spans) for name, spans in self.fixed.items()}
        for bursts in self.bursts:
            asked.setdefault(bursts.resource, []).extend(bursts.spans(between))
        fixed = {name: merged(spans) for name, spans in asked.items()}
        for name, spans in fixed.items():
            if sum(end - begin for begin, end in spans) < sum(end - begin for begin, end in asked[name]):
                raise InternalError(f"a stream operation that takes {name} twice at one time")
        first = min((spans[0][0] for spans in fixed.values()), default=0)
        return Demand(fixed, self.pools, max(self.least, -first))

    def issues(self, begin: int, choices: Sequence[int]) -> list[DemandedIssue]:
        """The stream operation's instructions with their cycles."""
        found: list[DemandedIssue] = []
        for make in self.makes:
            issue = make(choices)
            found.append(DemandedIssue(issue.queue, begin + issue.cycle, issue.inst, issue.repeats, issue.period, issue.jump))
        return found

    def use(self, resource: Resource, begin: int, end: int) -> None:
        """A resource is taken in [begin, end)."""
        self.fixed.setdefault(resource, []).append((begin, end))

    def queue(self, queue: str, issue: DemandedIssue) -> None:
        """An issue that depends on no choice."""
        self.use(queue, issue.cycle, issue.last + 1)
        self.makes.append(lambda choices: issue)

    def any_of(self, candidates: Sequence[Candidate]) -> int:
        """One of the candidates is taken; the number of the pool."""
        self.pools.append(Pool(candidates))
        return len(self.pools) - 1

    def streams(self, west: bool, width: int, passes: Iterable[tuple[int, int, int]], last_first: bool = False) -> DemandGroup:
        """A group of `width` streams, aligned to it. `passes` are (position, first cycle, cycle behind the last) of vectors on it;
        `last_first` prefers high numbers."""
        bases = range(0, self.machine.streams, width)
        first = self.machine.streams if west else 0
        numbers = tuple(first + base for base in (reversed(bases) if last_first else bases))
        sign = 1 if west else -1
        spans = merged((begin + sign * at, end + sign * at) for at, begin, end in passes)
        return DemandGroup(self.any_of([[(f"s{base + k}", spans) for k in range(width)] for base in numbers]), numbers)

    def read(self, found: Sequence[AccessRun], allocation: RowAllocation, at: int, time: int, group: DemandGroup) -> None:
        """Rows of an array onto `group`, so that point 0 is at position `at` at `time`."""
        for access in row_accesses(found, allocation):
            for byte, blocks in enumerate(allocation.planes):
                self.read_rows(blocks[access.block], access, at, time, group, byte)

    def read_rows(self, rows: SliceRows, access: RowAccess, at: int, time: int, group: DemandGroup, plane: int) -> None:
        """One slice's rows onto stream `plane` of a group; as `read`."""
        cycle = time - abs(at - self.machine.position(rows.slice)) - self.machine.delays["read"] + access.point
        self._rows("RD", rows, access, cycle, cycle, group, plane)

    def write(self, found: Sequence[AccessRun], allocation: RowAllocation, at: int, time: int, group: DemandGroup) -> None:
        """Vectors of `group`, of which point 0 is at position `at` at `time`, into rows of an array."""
        for access in row_accesses(found, allocation):
            for byte, blocks in enumerate(allocation.planes):
                self.write_rows(blocks[access.block], access, at, time, group, byte)

    def write_rows(self, rows: SliceRows, access: RowAccess, at: int, time: int, group: DemandGroup, plane: int) -> None:
        """Stream `plane` of a group into one slice's rows; as `write`."""
        cycle = time + abs(at - self.machine.position(rows.slice)) + access.point
        self._rows("WR", rows, access, cycle - self.machine.delays["write"], cycle, group, plane)

    def _rows(self, op: str, rows: SliceRows, access: RowAccess, cycle: int, stored: int, group: DemandGroup, plane: int) -> None:
        """One queue's part; its bank is taken from `stored` on."""
        for resource, begin in ((rows.slice, cycle), (f"{rows.slice}/{rows.bank}", stored)):
            self.bursts.append(RowBursts(resource, begin, access))
        address = rows.bank * self.machine.rows + rows.row + access.row

        def make(choices: Sequence[int]) -> DemandedIssue:
            stream = group.bases[choices[group.pool]] + plane
            taken, put = (0, stream) if op == "RD" else (stream, 0)
            inst = QueueInst(op, burst=access.count, a=taken, dst=put, address=address, step=access.step)
            return DemandedIssue(rows.slice, cycle, inst, access.repeats, access.period, access.jump)

        self.makes.append(make)
