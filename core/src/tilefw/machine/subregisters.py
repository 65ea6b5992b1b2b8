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
from itertools import chain, pairwise

from tilefw.machine.flow import predecessors, successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


class Subregisters:
    """`of` maps a slice to the numbers of its subregisters. Subregister n is the slice `pieces[n]`, has `weights[n]` registers and
    belongs to the file `files[n]`. A physical register has weight 0, as it needs no allocation."""

    __slots__ = ("_once", "files", "of", "pieces", "weights")

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self.of: dict[Slice, tuple[int, ...]] = {}
        self.pieces: list[Slice] = []
        several: dict[Reg, list[Slice]] = {}
        first: dict[Reg, Slice] = {}
        for piece in _slices_of(function):
            known = first.setdefault(piece.reg, piece)
            if known is not piece:
                several.setdefault(piece.reg, [known]).append(piece)
        for reg, piece in first.items():
            if reg in several:
                self._divide(reg, several[reg])
            else:  # most are used in one way alone
                self.of[piece] = (len(self.pieces),)
                self.pieces.append(piece)
        files = {cls: table.file(cls) for cls in table.classes}
        self.weights = [0 if piece.reg.physical else piece.count for piece in self.pieces]
        self.files = [files[piece.reg.cls] if piece.reg.cls in files else table.file(piece.reg.cls) for piece in self.pieces]
        self._once = self._written_once(function)

    def _divide(self, reg: Reg, pieces: list[Slice]) -> None:
        first = len(self.pieces)
        edges = sorted({edge for piece in pieces for edge in (piece.first, piece.first + piece.count)})
        number = {edge: first + i for i, edge in enumerate(edges)}
        for piece in pieces:
            self.of[piece] = tuple(range(number[piece.first], number[piece.first + piece.count]))
        self.pieces += [reg.slice(start, end - start) for start, end in pairwise(edges)]

    def _written_once(self, function: Function) -> frozenset[int]:
        """The subregisters that exactly one instruction writes, under a predicate."""
        of = self.of
        insts = [inst for block in function.blocks for inst in block.insts if inst.predicate is not None]
        guarded = {subregister for inst in insts for piece in inst.writes() for subregister in of[piece]}
        if not guarded:
            return frozenset()
        written = [piece for block in function.blocks for inst in block.insts for piece in inst.defs]
        written += [piece for block in function.blocks for inst in block.insts for piece in inst.implicit_defs]
        writers = Counter([subregister for piece in written for subregister in of[piece]])
        return frozenset(
            subregister for subregister in guarded if writers[subregister] == 1 and not self.pieces[subregister].reg.physical
        )

    def reads(self, inst: Inst) -> tuple[int, ...]:
        """The subregisters that an instruction may read, with those whose old value a false predicate keeps; some occur twice."""
        of = self.of
        found: tuple[int, ...] = ()
        for use in inst.uses:
            if use.__class__ is Slice:
                found += of[use]  # type: ignore[index]
        for use in inst.implicit_uses:
            found += of[use]
        if inst.predicate is not None:
            kept = [subregister for subregister in self.writes(inst) if subregister not in self._once]
            return (*kept, *found, *of[inst.predicate])
        return found

    def writes(self, inst: Inst) -> tuple[int, ...]:
        """The subregisters that an instruction writes, or may write under a predicate."""
        of = self.of
        found: tuple[int, ...] = ()
        for piece in inst.defs:
            found += of[piece]
        for piece in inst.implicit_defs:
            found += of[piece]
        return found

    def kills(self, inst: Inst, writes: tuple[int, ...]) -> tuple[int, ...]:
        """The subregisters whose old value is gone after an instruction, of those that it writes."""
        return writes if inst.predicate is None else tuple([written for written in writes if written in self._once])


def _slices_of(function: Function) -> dict[Slice, None]:
    """Every slice that is an operand in the function, once, in order."""
    found: dict[Slice, None] = {}
    for block in function.blocks:
        for inst in block.insts:
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
        writes = list(map(subregisters.writes, block.insts))
        guarded = any([inst.predicate is not None for inst in block.insts])
        kills = list(map(subregisters.kills, block.insts, writes)) if guarded else writes
        found.append(BlockAccesses(list(map(subregisters.reads, block.insts)), writes, kills))
    return found


def live_out(function: Function, table: InstructionTable, blocks: list[BlockAccesses]) -> list[set[int]]:
    """The subregisters whose values are still read after each block: the textbook analysis of `liveness`, on subregisters as
    bits."""
    exposed = [_exposed(block) for block in blocks]
    # Only what some block reads before it writes it is live between blocks.
    bits = {subregister: 1 << i for i, subregister in enumerate(set().union(*exposed))}
    uses = [sum([bits[subregister] for subregister in used]) for used in exposed]
    defs = [
        sum([bits[subregister] for subregister in bits.keys() & set(chain.from_iterable(block.kills))]) for block in blocks
    ]
    out = _backward(uses, defs, successors(function, table))
    return [{subregister for subregister, bit in bits.items() if live & bit} for live in out]


def _exposed(block: BlockAccesses) -> set[int]:
    """The subregisters that a block reads before it certainly writes them."""
    exposed: set[int] = set()
    written: set[int] = set()
    for reads, kills in zip(block.reads, block.kills, strict=True):
        for subregister in reads:
            if subregister not in written:
                exposed.add(subregister)
        written.update(kills)
    return exposed


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
