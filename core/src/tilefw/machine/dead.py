"""Removes instructions that nothing needs: a register is needed when a needed instruction reads it, wherever that stands.

What has effects, branches or is volatile is needed, and then whatever may have written the registers that it reads, of a tuple
those parts that it reads. No order is looked at: one pass over each instruction suffices, and what only feeds itself around a loop
goes too. Of a register with several writers all stay.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


@dataclass(frozen=True)
class EliminateDead(FunctionPass):
    """Removes instructions that nothing needs."""

    name = "eliminate-dead"
    table: InstructionTable

    def run(self, function: Function) -> None:
        eliminate_dead(function, self.table)


def eliminate_dead(function: Function, table: InstructionTable) -> int:
    """Remove them; how many went away."""
    effects = {opcode for opcode in {inst.opcode for inst in function.insts()} if table.traits(opcode).effects}
    writers: defaultdict[Reg, list[Inst]] = defaultdict(list)
    work: list[Inst] = []
    for inst in function.insts():
        if inst.opcode in effects or inst.targets or inst.volatile:
            work.append(inst)
            continue
        for piece in inst.defs + inst.implicit_defs if inst.implicit_defs else inst.defs:
            writers[piece.reg].append(inst)
    needed = set(work)
    while work:
        inst = work.pop()
        plain = inst.predicate is None and not inst.implicit_uses
        for piece in inst.uses if plain else inst.reads():
            if piece.__class__ is not Slice:
                continue
            made = writers.pop(piece.reg, None)  # type: ignore[union-attr]
            if made is None:
                continue
            part = piece.count < piece.reg.width  # type: ignore[union-attr]
            others: list[Inst] = []
            for writer in made:
                if part and not _writes(writer, piece):  # type: ignore[arg-type]
                    others.append(writer)
                elif writer not in needed:
                    needed.add(writer)
                    work.append(writer)
            if others:
                writers[piece.reg] = others  # type: ignore[union-attr]
    removed = 0
    for block in function.blocks:
        kept = [inst for inst in block.insts if inst in needed]
        removed += len(block.insts) - len(kept)
        block.insts = kept
    return removed


def _writes(inst: Inst, read: Slice) -> bool:
    """Whether an instruction writes any part of a slice."""
    reg, first, end = read.reg, read.first, read.first + read.count
    for piece in inst.defs + inst.implicit_defs if inst.implicit_defs else inst.defs:
        if piece.reg is reg and piece.first < end and first < piece.first + piece.count:
            return True
    return False
