"""Promises of integers (`Inst.no_wrap`): which of them an access needs, and what an artifact tells simulators of them.

An artifact names instructions by their number in the function, and their opcodes, by which a simulator sees that it counts alike:

    {"exact": [[3, "mul"], [4, "add"]], "lost": [[9, "ld.local"]], "wide": [[7, "ld64", 0]]}

`wide` has besides which of the registers that the instruction writes holds the low half of an integer. The promises are in
`Artifact.metadata`, beside the code: text and bytes stay what other assemblers and the chip take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable, InstructionTraits

Promises = dict[str, list[list[Any]]]


def promises_of(function: Function) -> Promises:
    """The promises of a function; empty where it has none."""
    found: Promises = {"exact": [], "lost": [], "wide": []}
    for number, inst in enumerate(function.insts()):
        if inst.no_wrap in ("exact", "lost"):  # what is proven is a number like any other
            found[inst.no_wrap].append([number, inst.opcode])
        if inst.wide:
            found["wide"] += ([number, inst.opcode, register] for register in _low_halves(inst))
    return found if found["exact"] else {}


def note_halves(function: Function, table: InstructionTable, halved: Sequence[Slice]) -> None:
    """Of integers in two registers, of which offsets take the low half, note the instructions that give both (`Inst.wide`). Where
    others write the low half, the integer is not known to who takes it."""
    makers: defaultdict[Reg, list[tuple[Inst, int, Slice]]] = defaultdict(list)
    registers = {wide.reg for wide in halved}
    for inst in function.insts() if registers else ():
        for index, piece in enumerate(inst.defs):
            if piece.reg in registers:
                makers[piece.reg].append((inst, index, piece))
    unknown: set[Slice] = set()
    for wide in halved:
        low = wide.part(0)
        its = [(inst, index, piece) for inst, index, piece in makers[wide.reg] if 0 <= low.first - piece.first < piece.count]
        if all(wide.first + wide.count <= piece.first + piece.count for _, _, piece in its):
            for inst, index, piece in its:
                inst.wide += ((index, wide.first - piece.first),)
        else:
            unknown.add(low)
    if unknown:
        _lose(function, table, unknown)


def _lose(function: Function, table: InstructionTable, unknown: set[Slice]) -> None:
    """Nothing is known of what is made of these registers, be it through copies."""
    moves = {opcode for opcode in {inst.opcode for inst in function.insts()} if table.traits(opcode).move}
    copies: defaultdict[Slice, list[Slice]] = defaultdict(list)
    for inst in function.insts():
        if inst.opcode in moves:
            for use in inst.uses:
                if isinstance(use, Slice):
                    copies[use] += inst.defs
    lost, work = set(unknown), list(unknown)
    while work:
        more = [piece for piece in copies.get(work.pop(), ()) if piece not in lost]
        lost.update(more)
        work += more
    for inst in function.insts():
        if inst.no_wrap == "exact" and not lost.isdisjoint(use for use in inst.uses if isinstance(use, Slice)):
            inst.no_wrap = "lost"


def drop_idle_promises(function: Function, table: InstructionTable) -> None:
    """Forget promises of integers that no access takes, be it through copies: simulators need not follow them."""
    insts = list(function.insts())
    promised = [inst for inst in insts if inst.no_wrap in ("exact", "lost")]
    if not promised:
        return
    accessing = {opcode for opcode in {inst.opcode for inst in insts} if _accesses(table.traits(opcode))}
    work = [inst for inst in insts if inst.opcode in accessing]
    writers: defaultdict[Reg, list[Inst]] = defaultdict(list)
    for inst in insts:
        for piece in inst.defs:
            writers[piece.reg].append(inst)
    taken: set[Inst] = set()
    while work:
        for use in work.pop().uses:
            if isinstance(use, Slice) and use.reg in writers:
                for writer in writers.pop(use.reg):
                    if writer.no_wrap or writer.wide or _may_copy(writer):
                        taken.add(writer)
                        work.append(writer)
    for inst in promised:
        if inst not in taken:
            inst.no_wrap = ""


def _accesses(traits: InstructionTraits) -> bool:
    return bool(traits.memory) or traits.effects


def _may_copy(inst: Inst) -> bool:
    """Whether an instruction has one result and one register that it may be copied from."""
    return len(inst.defs) == 1 and sum(isinstance(use, Slice) for use in inst.uses) == 1


def _low_halves(inst: Inst) -> Iterator[int]:
    for index, first in inst.wide:
        yield sum(piece.count for piece in inst.defs[:index]) + first
