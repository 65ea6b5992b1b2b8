"""Removes copies: a move's two registers become one where their values never need to differ.

Loop arguments and the results of branches are registers that several blocks write (there are no phis); the moves that
fill them mostly vanish here, and what stays is a real copy. Interference is Chaitin's: a definition interferes with all that is
live after it, but for the source of a move (G. Chaitin, "Register Allocation & Spilling via Graph Coloring", 1982).

No graph is built: it would have n² edges for the n accumulators of a loop. The registers of moves have their definitions and, in
order, the spans of instructions after which they are live; two of them are asked about when a move wants to merge them. Merged ones
are a class, which answers for its members. Copies of inner loops go first.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Block, Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable

_NOWHERE = -1


def coalesce(function: Function, table: InstructionTable) -> int:
    """Merge the registers of whole-register moves that do not interfere, and drop the moves; how many were dropped."""
    found = [(block, inst, copy) for block in function.blocks for inst in block.insts if (copy := _copy_of(inst, table))]
    if not found:
        return 0
    following = successors(function, table)
    lives = _Lives(function, {id(inst): copy for _, inst, copy in found}, following)
    depth = dict(zip(function.blocks, _depths(following), strict=True))
    for _, _, copy in sorted(found, key=lambda each: -depth[each[0]]):
        lives.merge(copy)
    dropped = {id(inst) for _, inst, copy in found if lives.are_one(copy)}
    if dropped:
        _rename(lives)
        for block in function.blocks:
            block.insts = [inst for inst in block.insts if id(inst) not in dropped]
    return len(dropped)


class _Copy(NamedTuple):
    """A move of one whole register to another of its form."""

    dest: Reg
    source: Reg


def _copy_of(inst: Inst, table: InstructionTable) -> _Copy | None:
    if len(inst.uses) != 1 or len(inst.defs) != 1 or inst.predicate is not None or not table.traits(inst.opcode).move:
        return None
    source, dest = inst.uses[0], inst.defs[0]
    if not isinstance(source, Slice) or source is not source.reg.whole or dest is not dest.reg.whole:
        return None
    a, b = source.reg, dest.reg
    alike = not (a.physical or b.physical) and (a.cls, a.width, a.align) == (b.cls, b.width, b.align)
    return _Copy(b, a) if alike else None


def _depths(following: list[list[int]]) -> list[int]:
    """How many loops are around each block: those from the target of a branch backward, in layout order, to the branch."""
    depths = [0] * len(following)
    for end, targets in enumerate(following):
        for start in (t for t in targets if t <= end):
            for i in range(start, end + 1):
                depths[i] += 1
    return depths


class _Register:
    """A register of moves: where it is written, with the source where a move writes it, and where it is live.

    It is live after position p when `starts[i]` <= p < `ends[i]` for some i. Where it stands for a class, `members` are the
    registers merged into it, itself among them.
    """

    __slots__ = ("bit", "definitions", "ends", "members", "parent", "starts")

    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.definitions: list[tuple[int, _Register | None]] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.members = [self]
        self.parent: _Register | None = None

    def live_after(self, position: int) -> bool:
        i = bisect_right(self.starts, position) - 1
        return i >= 0 and position < self.ends[i]

    def root(self) -> _Register:
        found = self
        while found.parent is not None:
            found = found.parent
        return found


class _Touch(NamedTuple):
    """What one instruction does to registers of moves: those it reads and writes, whether what these held is surely gone after it,
    and for a move its source."""

    position: int
    inst: Inst
    read: list[_Register]
    written: list[_Register]
    kills: bool
    copied: _Register | None


class _Lives:
    """Definitions and live spans of the registers that moves name. A block's entry has a position, as each instruction has."""

    def __init__(self, function: Function, copies: dict[int, _Copy], following: list[list[int]]) -> None:
        named = dict.fromkeys(register for copy in copies.values() for register in copy)
        self.registers = {reg: _Register(1 << i) for i, reg in enumerate(named)}
        self.copies = copies
        self.touches: list[list[_Touch]] = []  # by block
        entries: list[int] = []
        position = 0
        for block in function.blocks:
            entries.append(position)
            self.touches.append(self._touches(block, position))
            position += len(block.insts) + 1
        live_out = self._live_out(following)
        for touches, live, entry, end in zip(self.touches, live_out, entries, [*entries[1:], position], strict=True):
            self._spans(touches, live, entry, end)

    def merge(self, copy: _Copy) -> None:
        """Make the two registers of a copy one, if they may be."""
        x, y = self.registers[copy.dest].root(), self.registers[copy.source].root()
        if x is y or self._clash(x, y) or self._clash(y, x):
            return
        y.parent = x
        x.members += y.members

    def are_one(self, copy: _Copy) -> bool:
        """Whether the two registers of a copy are one by now."""
        return self.registers[copy.dest].root() is self.registers[copy.source].root()

    def _clash(self, a: _Register, b: _Register) -> bool:
        """Whether a register of class `b` is live after a definition in class `a` that does not just copy it."""
        for one in a.members:
            for position, source in one.definitions:
                if any(other is not source and other.live_after(position) for other in b.members):
                    return True
        return False

    def _touches(self, block: Block, entry: int) -> list[_Touch]:
        get, copies = self.registers.get, self.copies
        touches: list[_Touch] = []
        for position, inst in enumerate(block.insts, entry + 1):
            plain = inst.predicate is None and not inst.implicit_uses
            read = [r for u in (inst.uses if plain else inst.reads()) if isinstance(u, Slice) and (r := get(u.reg)) is not None]
            written = [r for d in inst.defs if (r := get(d.reg)) is not None]
            if inst.implicit_defs:
                written += [r for d in inst.implicit_defs if (r := get(d.reg)) is not None]
            if read or written:
                kills = inst.predicate is None and all(d.count == d.reg.width for d in inst.defs)
                copy = copies.get(id(inst))
                touches.append(_Touch(position, inst, read, written, kills, copy and self.registers[copy.source]))
        return touches

    def _live_out(self, following: list[list[int]]) -> list[int]:
        """The registers live at each block's end, as bits: the textbook analysis of `liveness`, on these registers alone."""
        uses, defs = [], []
        for touches in self.touches:
            used = defined = 0
            for touch in touches:
                for register in touch.read:
                    used |= register.bit & ~defined
                if touch.kills:
                    for register in touch.written:
                        defined |= register.bit
            uses.append(used)
            defs.append(defined)
        before = predecessors(following)
        live_in, live_out = [0] * len(uses), [0] * len(uses)
        work = list(range(len(uses)))
        while work:
            i = work.pop()
            out = 0
            for j in following[i]:
                out |= live_in[j]
            live_out[i] = out
            into = uses[i] | (out & ~defs[i])
            if into != live_in[i]:
                live_in[i] = into
                work.extend(before[i])
        return live_out

    def _spans(self, touches: list[_Touch], live: int, entry: int, end: int) -> None:
        """Add one block's definitions and spans, found from its end backward."""
        open_until = {register: end for register in self.registers.values() if register.bit & live}
        found: list[tuple[_Register, int, int]] = []
        definitions: list[tuple[_Register, int, _Register | None]] = []
        for position, _, read, written, kills, copied in reversed(touches):
            for register in written:
                definitions.append((register, position, copied))
                if kills:
                    until = open_until.pop(register, _NOWHERE)
                    if until > position:
                        found.append((register, position, until))
            for register in read:
                open_until.setdefault(register, position)
        found += [(register, entry, until) for register, until in open_until.items()]
        for register, position, copied in reversed(definitions):
            register.definitions.append((position, copied))
        for register, start, until in sorted(found, key=lambda span: span[1]):
            register.starts.append(start)
            register.ends.append(until)


def _rename(lives: _Lives) -> None:
    """Write each class by its root's register."""
    owners = {register: reg for reg, register in lives.registers.items()}
    new = {reg: owners[register.root()] for reg, register in lives.registers.items() if register.parent is not None}

    def piece(s: Slice) -> Slice:
        reg = new.get(s.reg)
        return s if reg is None else reg.slice(s.first, s.count)

    for inst in (touch.inst for touches in lives.touches for touch in touches):
        inst.defs = tuple(map(piece, inst.defs))
        inst.uses = tuple(piece(u) if isinstance(u, Slice) else u for u in inst.uses)
        if inst.implicit_defs or inst.implicit_uses:
            inst.implicit_defs = tuple(map(piece, inst.implicit_defs))
            inst.implicit_uses = tuple(map(piece, inst.implicit_uses))
        if inst.predicate is not None:
            inst.predicate = piece(inst.predicate)
