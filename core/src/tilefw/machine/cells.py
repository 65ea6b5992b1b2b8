"""Cells: the registers of a function, divided as far as its instructions tell parts of them apart, and which are live where.

A cell is a run of registers that every operand holds wholly or not at all. A whole register is one cell when nothing names its
parts; of overlapping operands, their pieces are. What an instruction touches is then a few small numbers.

A write under a predicate keeps what a false one leaves there, and so reads it, unless no other instruction writes the cell: what
stood there is then nothing, or this instruction's own work of an earlier turn of a loop, which nobody means (selection carries
values around loops in registers that are written before them, too).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


class Cells:
    """`of` a slice: the numbers of its cells, which are the slices `pieces` and count `weights` registers each, of `files`.
    Physical registers weigh nothing, as nobody has to find one for them."""

    __slots__ = ("_once", "files", "of", "pieces", "weights")

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self.of: dict[Slice, tuple[int, ...]] = {}
        self.weights: list[int] = []
        self.files: list[str] = []
        self.pieces: list[Slice] = []
        of: dict[Reg, list[Slice]] = {}
        for piece in _operands(function):
            of.setdefault(piece.reg, []).append(piece)
        for reg, pieces in of.items():
            self._divide(reg, pieces, table.file(reg.cls))
        self._once = self._written_once(function)

    def _divide(self, reg: Reg, pieces: list[Slice], file: str) -> None:
        if len(pieces) == 1:
            self.of[pieces[0]] = (len(self.weights),)
            self.weights.append(0 if reg.physical else pieces[0].count)
            self.files.append(file)
            self.pieces.append(pieces[0])
            return
        edges = sorted({edge for piece in pieces for edge in (piece.first, piece.first + piece.count)})
        number = {edge: len(self.weights) + i for i, edge in enumerate(edges)}
        for piece in pieces:
            self.of[piece] = tuple(range(number[piece.first], number[piece.first + piece.count]))
        self.weights += [0 if reg.physical else end - start for start, end in pairwise(edges)]
        self.files += [file] * (len(edges) - 1)
        self.pieces += [reg.slice(start, end - start) for start, end in pairwise(edges)]

    def _written_once(self, function: Function) -> frozenset[int]:
        """The cells that one instruction alone writes, and under a predicate."""
        guarded = {cell for i in function.insts() if i.predicate is not None for piece in i.writes() for cell in self.of[piece]}
        if not guarded:
            return frozenset()
        writers = Counter(cell for inst in function.insts() for piece in inst.writes() for cell in self.of[piece])
        return frozenset(cell for cell in guarded if writers[cell] == 1 and not self.pieces[cell].reg.physical)

    def reads(self, inst: Inst) -> tuple[int, ...]:
        """The cells that an instruction may read, what a false predicate keeps among them; some stand twice."""
        of = self.of
        pieces = [use for use in inst.uses if use.__class__ is Slice]
        if inst.predicate is not None:
            kept = [cell for piece in inst.writes() for cell in of[piece] if cell not in self._once]
            return (*kept, *(cell for piece in (*pieces, *inst.implicit_uses, inst.predicate) for cell in of[piece]))  # type: ignore[index]
        pieces += inst.implicit_uses
        if len(pieces) == 1:
            return of[pieces[0]]  # type: ignore[index]
        return tuple([cell for piece in pieces for cell in of[piece]])  # type: ignore[index]

    def kills(self, inst: Inst) -> tuple[int, ...]:
        """The cells that hold nothing of what they held after an instruction."""
        if inst.predicate is None:
            return self.writes(inst)
        return tuple([cell for cell in self.writes(inst) if cell in self._once])

    def writes(self, inst: Inst) -> tuple[int, ...]:
        """The cells that an instruction writes, or may write under a predicate."""
        if len(inst.defs) == 1 and not inst.implicit_defs:
            return self.of[inst.defs[0]]
        return tuple([cell for piece in inst.writes() for cell in self.of[piece]])


def _operands(function: Function) -> dict[Slice, None]:
    """Every slice that stands in the function, once, in order."""
    found: dict[Slice, None] = {}
    for inst in function.insts():
        for piece in inst.defs:
            found[piece] = None
        for use in inst.uses:
            if use.__class__ is Slice:
                found[use] = None  # type: ignore[index]
        if inst.predicate is not None or inst.implicit_uses or inst.implicit_defs:
            for piece in (*inst.reads(), *inst.writes()):
                found[piece] = None
    return found


@dataclass(slots=True)
class Touched:
    """What the instructions of one block read and write, in order, by cells, and which of these they write for certain."""

    reads: list[tuple[int, ...]]
    writes: list[tuple[int, ...]]
    kills: list[tuple[int, ...]]


def touched(function: Function, cells: Cells) -> list[Touched]:
    """Of every block."""
    found: list[Touched] = []
    for block in function.blocks:
        writes = [cells.writes(inst) for inst in block.insts]
        guarded = any(inst.predicate is not None for inst in block.insts)
        kills = [cells.kills(inst) for inst in block.insts] if guarded else writes
        found.append(Touched([cells.reads(inst) for inst in block.insts], writes, kills))
    return found


def live_out(function: Function, table: InstructionTable, blocks: list[Touched]) -> list[set[int]]:
    """The cells whose values are still read after each block: the textbook analysis of `liveness`, on cells as bits."""
    bits = _crossing(blocks)
    uses, defs = [], []
    for its in blocks:
        used = defined = 0
        for reads, kills in zip(its.reads, its.kills, strict=True):
            for cell in reads:
                if cell in bits:
                    used |= bits[cell] & ~defined
            for cell in kills:
                if cell in bits:
                    defined |= bits[cell]
        uses.append(used)
        defs.append(defined)
    following = successors(function, table)
    out = _backward(uses, defs, following)
    return [{cell for cell, bit in bits.items() if live & bit} for live in out]


def _crossing(blocks: list[Touched]) -> dict[int, int]:
    """A bit for each cell that may be live between blocks: those that several blocks touch, or one before it writes them."""
    home: dict[int, int] = {}
    bits: dict[int, int] = {}
    for i, block in enumerate(blocks):
        for reads, writes in zip(block.reads, block.writes, strict=True):
            for cell in reads:
                if home.get(cell) != i and cell not in bits:
                    bits[cell] = 1 << len(bits)
            for cell in writes:
                if home.setdefault(cell, i) != i and cell not in bits:
                    bits[cell] = 1 << len(bits)
    return bits


def _backward(uses: list[int], defs: list[int], following: list[list[int]]) -> list[int]:
    before = predecessors(following)
    into, out = [0] * len(uses), [0] * len(uses)
    work = list(range(len(uses)))
    while work:
        i = work.pop()
        live = 0
        for j in following[i]:
            live |= into[j]
        out[i] = live
        live = uses[i] | (live & ~defs[i])
        if live != into[i]:
            into[i] = live
            work.extend(before[i])
    return out
