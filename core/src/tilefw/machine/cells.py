"""Cells: the registers of a function, divided as far as its instructions tell parts of them apart, and which are live where.

A cell is a run of registers that every operand holds wholly or not at all. A whole register is one cell when nothing names its
parts; of overlapping operands, their pieces are. What an instruction touches is then a few small numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


class Cells:
    """`of` a slice: the numbers of its cells, which count `weights` registers each, of `files`. Physical registers weigh nothing,
    as nobody has to find one for them."""

    __slots__ = ("files", "of", "weights")

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self.of: dict[Slice, tuple[int, ...]] = {}
        self.weights: list[int] = []
        self.files: list[str] = []
        of: dict[Reg, list[Slice]] = {}
        for piece in _operands(function):
            of.setdefault(piece.reg, []).append(piece)
        for reg, pieces in of.items():
            self._divide(reg, pieces, table.file(reg.cls))

    def _divide(self, reg: Reg, pieces: list[Slice], file: str) -> None:
        edges = sorted({edge for piece in pieces for edge in (piece.first, piece.first + piece.count)})
        number = {edge: len(self.weights) + i for i, edge in enumerate(edges)}
        for piece in pieces:
            self.of[piece] = tuple(range(number[piece.first], number[piece.first + piece.count]))
        self.weights += [0 if reg.physical else end - start for start, end in pairwise(edges)]
        self.files += [file] * (len(edges) - 1)

    def reads(self, inst: Inst) -> tuple[int, ...]:
        """The cells that an instruction may read, what a false predicate keeps among them; some stand twice."""
        of = self.of
        if inst.predicate is None and not inst.implicit_uses:
            pieces = [use for use in inst.uses if use.__class__ is Slice]
        else:
            pieces = list(inst.reads())
        if len(pieces) == 1:
            return of[pieces[0]]  # type: ignore[index]
        return tuple([cell for piece in pieces for cell in of[piece]])  # type: ignore[index]

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
    """What the instructions of one block read and write, in order, by cells."""

    reads: list[tuple[int, ...]]
    writes: list[tuple[int, ...]]


def touched(function: Function, cells: Cells) -> list[Touched]:
    """Of every block."""
    return [Touched([cells.reads(i) for i in block.insts], [cells.writes(i) for i in block.insts]) for block in function.blocks]


def live_out(function: Function, table: InstructionTable, blocks: list[Touched]) -> list[set[int]]:
    """The cells whose values are still read after each block: the textbook analysis of `liveness`, on cells as bits."""
    bits = _crossing(blocks)
    uses, defs = [], []
    for block, its in zip(function.blocks, blocks, strict=True):
        used = defined = 0
        for inst, reads, writes in zip(block.insts, its.reads, its.writes, strict=True):
            for cell in reads:
                if cell in bits:
                    used |= bits[cell] & ~defined
            if inst.predicate is None:
                for cell in writes:
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
