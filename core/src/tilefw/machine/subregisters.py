"""Subregisters: each register of a function, divided where its operands divide it, and which of these parts are live where.

A register that every operand uses whole is one subregister. Where operands overlap, each part that they have in common is one: an
operand contains a subregister wholly or not at all. The registers that an instruction reads and writes are then a few small
numbers.

A write under a predicate leaves the old value where the predicate is false, so it counts as a read of it. The exception is a
subregister that no other instruction writes: its old value is undefined, or this instruction's own result from an earlier
iteration, which nothing relies on (selection writes a register before a loop that carries a value in it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


class Subregisters:
    """`of` maps a slice to the numbers of its subregisters. Subregister n is the slice `pieces[n]`, has `weights[n]` registers and
    belongs to the file `files[n]`. A physical register has weight 0, as it needs no allocation."""

    __slots__ = ("_once", "files", "of", "pieces", "weights")

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self.of: dict[Slice, tuple[int, ...]] = {}
        self.weights: list[int] = []
        self.files: list[str] = []
        self.pieces: list[Slice] = []
        of: dict[Reg, list[Slice]] = {}
        for piece in _slices_of(function):
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
        """The subregisters that exactly one instruction writes, under a predicate."""
        insts = (inst for inst in function.insts() if inst.predicate is not None)
        guarded = {subregister for inst in insts for piece in inst.writes() for subregister in self.of[piece]}
        if not guarded:
            return frozenset()
        writers = Counter(subregister for inst in function.insts() for piece in inst.writes() for subregister in self.of[piece])
        return frozenset(
            subregister for subregister in guarded if writers[subregister] == 1 and not self.pieces[subregister].reg.physical
        )

    def reads(self, inst: Inst) -> tuple[int, ...]:
        """The subregisters that an instruction may read, with those whose old value a false predicate keeps; some occur twice."""
        of = self.of
        pieces = [use for use in inst.uses if use.__class__ is Slice]
        if inst.predicate is not None:
            kept = [subregister for piece in inst.writes() for subregister in of[piece] if subregister not in self._once]
            return (*kept, *(subregister for piece in (*pieces, *inst.implicit_uses, inst.predicate) for subregister in of[piece]))  # type: ignore[index]
        pieces += inst.implicit_uses
        if len(pieces) == 1:
            return of[pieces[0]]  # type: ignore[index]
        return tuple([subregister for piece in pieces for subregister in of[piece]])  # type: ignore[index]

    def kills(self, inst: Inst) -> tuple[int, ...]:
        """The subregisters whose old value is gone after an instruction."""
        if inst.predicate is None:
            return self.writes(inst)
        return tuple([subregister for subregister in self.writes(inst) if subregister in self._once])

    def writes(self, inst: Inst) -> tuple[int, ...]:
        """The subregisters that an instruction writes, or may write under a predicate."""
        if len(inst.defs) == 1 and not inst.implicit_defs:
            return self.of[inst.defs[0]]
        return tuple([subregister for piece in inst.writes() for subregister in self.of[piece]])


def _slices_of(function: Function) -> dict[Slice, None]:
    """Every slice that is an operand in the function, once, in order."""
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
class BlockAccesses:
    """The subregisters that each instruction of one block reads and may write, and those that it certainly overwrites."""

    reads: list[tuple[int, ...]]
    writes: list[tuple[int, ...]]
    kills: list[tuple[int, ...]]


def block_accesses(function: Function, subregisters: Subregisters) -> list[BlockAccesses]:
    """Of every block."""
    found: list[BlockAccesses] = []
    for block in function.blocks:
        writes = [subregisters.writes(inst) for inst in block.insts]
        guarded = any(inst.predicate is not None for inst in block.insts)
        kills = [subregisters.kills(inst) for inst in block.insts] if guarded else writes
        found.append(BlockAccesses([subregisters.reads(inst) for inst in block.insts], writes, kills))
    return found


def live_out(function: Function, table: InstructionTable, blocks: list[BlockAccesses]) -> list[set[int]]:
    """The subregisters whose values are still read after each block: the textbook analysis of `liveness`, on subregisters as
    bits."""
    bits = _crossing(blocks)
    uses, defs = [], []
    for its in blocks:
        used = defined = 0
        for reads, kills in zip(its.reads, its.kills, strict=True):
            for subregister in reads:
                if subregister in bits:
                    used |= bits[subregister] & ~defined
            for subregister in kills:
                if subregister in bits:
                    defined |= bits[subregister]
        uses.append(used)
        defs.append(defined)
    following = successors(function, table)
    out = _backward(uses, defs, following)
    return [{subregister for subregister, bit in bits.items() if live & bit} for live in out]


def _crossing(blocks: list[BlockAccesses]) -> dict[int, int]:
    """A bit for each subregister that may be live between blocks: those that several blocks access, or that one block reads before
    it writes them."""
    first_block: dict[int, int] = {}
    bits: dict[int, int] = {}
    for i, block in enumerate(blocks):
        for reads, writes in zip(block.reads, block.writes, strict=True):
            for subregister in reads:
                if first_block.get(subregister) != i and subregister not in bits:
                    bits[subregister] = 1 << len(bits)
            for subregister in writes:
                if first_block.setdefault(subregister, i) != i and subregister not in bits:
                    bits[subregister] = 1 << len(bits)
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
