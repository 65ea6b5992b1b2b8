"""Where every register of a function is live, part by part, as segments of points: what allocation and spilling look at.

An instruction reads at point 2n and writes at 2n + 1, so that a result may take the place of an operand that dies there; one that
writes early (see `InstructionTraits`) writes at 2n as well. Segments are half open, sorted and apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.machine.inst import Function, Inst, Reg
from tilefw.machine.subregisters import BlockAccesses, Subregisters, block_accesses, live_out
from tilefw.machine.table import InstructionTable

Segment = tuple[int, int]


@dataclass(slots=True)
class LivePart:
    """`width` registers of one, from `first`, that live and die together, in `segments`, which are in order and apart, at least
    one."""

    first: int
    width: int
    segments: list[Segment]
    _points: int = 0

    @property
    def points(self) -> int:
        """The segments as bits, the lowest bit for the point at which the first segment begins: most values live shortly, so that
        these are few bits. They are made when first asked for, as functions that spill need none."""
        if not self._points:
            begin, end = self.segments[0]
            self._points = (1 << end - begin) - 1
            for start, end in self.segments[1:]:  # most have one alone
                self._points |= (1 << end - begin) - (1 << start - begin)
        return self._points


class LiveRanges:
    """`parts`: of each virtual register that an instruction accesses. `fixed`: of each physical file. `starts`: the number of each
    block's first instruction, and behind the last one how many there are."""

    __slots__ = ("accesses", "fixed", "parts", "starts", "subregisters")

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self.subregisters = subregisters = Subregisters(function, table)
        self.accesses = block_accesses(function, subregisters)
        self.starts = [0]
        opcodes = {inst.opcode for block in function.blocks for inst in block.insts}
        early = {opcode for opcode in opcodes if table.traits(opcode).early}
        segments: list[list[Segment]] = [[] for _ in subregisters.pieces]
        for block, its, alive in zip(function.blocks, self.accesses, live_out(function, table, self.accesses), strict=True):
            _scan_block(block.insts, its, alive, self.starts[-1], early, segments)
            self.starts.append(self.starts[-1] + len(block.insts))
        self.parts: dict[Reg, list[LivePart]] = {}
        self.fixed: dict[Reg, list[LivePart]] = {}
        for piece, found in zip(subregisters.pieces, segments, strict=True):
            if found:
                where = self.fixed if piece.reg.physical else self.parts
                part = LivePart(piece.first, piece.count, found if len(found) == 1 else merged(found))
                parts = where.get(piece.reg)
                if parts is None:
                    where[piece.reg] = [part]
                else:
                    parts.append(part)


def _scan_block(
    insts: list[Inst], its: BlockAccesses, alive: set[int], number: int, early: set[str], segments: list[list[Segment]]
) -> None:
    """Add the segments of one block, whose first instruction has this number, from its end backward."""
    open_until = dict.fromkeys(alive, 2 * (number + len(insts)))
    for i in range(len(insts) - 1, -1, -1):
        at = 2 * (number + i)
        written = at if early and insts[i].opcode in early else at + 1
        kills, writes = its.kills[i], its.writes[i]
        for subregister in kills:
            # A result that nobody reads still overwrites the old value.
            segments[subregister].append((written, open_until.pop(subregister, at + 2)))
        if len(kills) != len(writes):
            for subregister in writes:
                if subregister not in kills:
                    open_until.setdefault(subregister, at + 2)
        for subregister in its.reads[i]:
            if subregister not in open_until:
                open_until[subregister] = at + 1
    for subregister, until in open_until.items():
        segments[subregister].append((2 * number, until))


def merged(segments: list[Segment]) -> list[Segment]:
    """Segments in order, those that meet as one."""
    if len(segments) == 1:
        return segments
    found: list[Segment] = []
    for start, end in sorted(segments):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
