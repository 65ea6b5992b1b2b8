"""What must stay in order in a block: by registers, by memory, by effects that nothing may pass.

An edge says that one instruction stays behind another, and by how many cycles a machine in order would want it behind:

    reads what the other writes      the other's latency, and what the table says that their pipes want to be apart
    writes what the other writes     the other's latency: results of slow instructions arrive late
    writes what the other reads      0: operands are read as instructions begin
    accesses of one memory           0: accesses of one space begin in order

Two accesses have an order when one of them writes and they may access the same bytes: of one space, and of one buffer or of one
that is not known. Buffers of shared memory never overlap without a barrier in between (`simt.shared_memory.barriers`); global ones,
the arguments of a kernel, may, unless the launch says that they do not. An effect without a space (a barrier, an atomic, a cache
being written back) has its order with all accesses and all other effects; of memory it changes at most the buffer that it names.

Volatile accesses have their order among themselves, wherever they go: somebody else looks on, or writes meanwhile. Other loads of a
global buffer that nothing in the function writes, where buffers do not overlap, have no order at all: whoever waits at a barrier
does not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilefw.machine.inst import Inst
from tilefw.machine.subregisters import BlockAccesses
from tilefw.machine.table import InstructionTable, InstructionTraits

SHARED = "shared"
_ANY = -1  # the buffer of an access that may be anywhere

Apart = Mapping[tuple[str, str, str], int]
"""`InstructionTable.apart`."""


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What is known of a function's global memory: whether buffers of different arguments are `disjoint`, which are `written`, and
    whether others may be: by what nobody knows the buffer of, or by somebody outside of whom an atomic tells."""

    disjoint: bool = False
    written: frozenset[int] = frozenset()
    anywhere: bool = False

    def constant(self, inst: Inst, traits: InstructionTraits) -> bool:
        """Whether an access reads what does not change while the function runs."""
        buffer = _buffer(inst)
        if traits.effects or inst.volatile or traits.memory == SHARED or buffer == _ANY:
            return False
        return self.disjoint and not self.anywhere and buffer not in self.written


def aliasing(insts: Iterable[Inst], table: InstructionTable, disjoint: bool) -> Aliasing:
    """Of a function."""
    written: set[int] = set()
    told = False
    for inst in insts:
        traits = table.traits(inst.opcode)
        if traits.effects and traits.memory != SHARED and (traits.memory or inst.buffer is not None):
            written.add(_buffer(inst))
            told |= not traits.memory
    return Aliasing(disjoint, frozenset(written), told or _ANY in written)


def _buffer(inst: Inst) -> int:
    return _ANY if inst.buffer is None else inst.buffer


class Dependences:
    """The order of a run of instructions, by their indexes: `successors[i]` come after i, by `delays[i]` cycles; `waits[i]` counts
    the edges that end in i."""

    __slots__ = ("delays", "successors", "waits")

    def __init__(self, count: int) -> None:
        self.successors: list[list[int]] = [[] for _ in range(count)]
        self.delays: list[list[int]] = [[] for _ in range(count)]
        self.waits = [0] * count

    def add(self, first: int, then: int, delay: int) -> None:
        """An edge; edges are added by ascending `then`."""
        following = self.successors[first]
        if following and following[-1] == then:
            if self.delays[first][-1] < delay:
                self.delays[first][-1] = delay
            return
        following.append(then)
        self.delays[first].append(delay)
        self.waits[then] += 1


def dependences(
    insts: Sequence[Inst], traits: Sequence[InstructionTraits], accesses: BlockAccesses, files: Sequence[str], known: Aliasing,
    apart: Apart,
) -> Dependences:
    """The order of `insts`, instructions without branches, which `accesses` begins with. `files` are those of the
    subregisters."""
    found = Dependences(len(insts))
    _by_registers(found, traits, accesses, files, apart)
    memory = _Memory(found, known)
    for i, (inst, its) in enumerate(zip(insts, traits, strict=True)):
        if its.memory:
            if not known.constant(inst, its):
                memory.access(i, its, _buffer(inst))
            if inst.volatile:
                memory.volatile(i)
        elif its.effects:
            memory.fence(i)
    return found


def _by_registers(
    found: Dependences, traits: Sequence[InstructionTraits], accesses: BlockAccesses, files: Sequence[str], apart: Apart
) -> None:
    add = found.add
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for i, (reads, writes) in enumerate(zip(accesses.reads[: len(traits)], accesses.writes, strict=False)):
        for subregister in reads:
            if subregister in writer:
                before = writer[subregister]
                its = traits[before]
                add(before, i, its.latency + apart.get((its.unit, traits[i].unit, files[subregister]), 0))
            if subregister in readers:
                readers[subregister].append(i)
            else:
                readers[subregister] = [i]
        for subregister in writes:
            others = readers.pop(subregister, ())
            for before in others:
                if before != i:
                    add(before, i, 0)
            if subregister in writer and not others:
                before = writer[subregister]
                add(before, i, traits[before].latency)
            writer[subregister] = i


class _BufferAccesses:
    """The last write of a buffer and the reads behind it."""

    __slots__ = ("reads", "write")

    def __init__(self) -> None:
        self.write = -1
        self.reads: list[int] = []


class _Memory:
    """Adds the edges of accesses and effects as they come."""

    def __init__(self, found: Dependences, known: Aliasing) -> None:
        self._found = found
        self._known = known
        self._since: list[tuple[int, int]] = []  # the accesses since the last fence, and how long after them it should come
        self._fence = -1
        self._volatile = -1
        self._spaces: dict[str, dict[int, _BufferAccesses]] = {}

    def volatile(self, i: int) -> None:
        """An access that stays behind the last one of its kind."""
        if self._volatile >= 0:
            self._found.add(self._volatile, i, 0)
        self._volatile = i

    def fence(self, i: int) -> None:
        if self._fence >= 0:
            self._found.add(self._fence, i, 0)
        for before, delay in self._since:
            self._found.add(before, i, delay)
        self._since = []
        self._spaces = {}
        self._fence = i

    def access(self, i: int, traits: InstructionTraits, buffer: int) -> None:
        """An access; every one of shared memory is made by the time that a barrier lets the others on."""
        if self._fence >= 0:
            self._found.add(self._fence, i, 0)
        self._since.append((i, traits.latency if traits.memory == SHARED else 0))
        group = buffer if traits.memory == SHARED or self._known.disjoint else _ANY
        buffers = self._spaces.setdefault(traits.memory, {})
        own = buffers.setdefault(group, _BufferAccesses())
        overlapping = list(buffers.values()) if group == _ANY else [own, *([buffers[_ANY]] if _ANY in buffers else [])]
        for other in overlapping:
            self._order(other, i, traits.effects)
        if traits.effects:
            own.write, own.reads = i, []
        else:
            own.reads.append(i)

    def _order(self, buffer: _BufferAccesses, i: int, writes: bool) -> None:
        if buffer.write >= 0:
            self._found.add(buffer.write, i, 0)
        if writes:
            for before in buffer.reads:
                self._found.add(before, i, 0)
