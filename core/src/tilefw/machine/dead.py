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
    traits = table.traits
    writers: defaultdict[Reg, list[Inst]] = defaultdict(list)
    work: list[Inst] = []
    for inst in function.insts():
        if traits(inst.opcode).effects or inst.targets or inst.volatile:
            work.append(inst)
            continue
        for piece in inst.defs + inst.implicit_defs if inst.implicit_defs else inst.defs:
            writers[piece.reg].append(inst)
    needed = set(work)
    while work:
        inst = work.pop()
        plain = inst.predicate is None and not inst.implicit_uses
        for piece in inst.uses if plain else inst.reads():
            if not isinstance(piece, Slice) or piece.reg not in writers:
                continue
            found = writers.pop(piece.reg)
            if piece.count < piece.reg.width:
                writers[piece.reg] = [inst for inst in found if not _writes(inst, piece)]
                found = [inst for inst in found if _writes(inst, piece)]
            for writer in found:
                if writer not in needed:
                    needed.add(writer)
                    work.append(writer)
    removed = 0
    for block in function.blocks:
        kept = [inst for inst in block.insts if inst in needed]
        removed += len(block.insts) - len(kept)
        block.insts = kept
    return removed


def _writes(inst: Inst, read: Slice) -> bool:
    """Whether an instruction writes any part of a slice."""
    end = read.first + read.count
    return any(p.reg is read.reg and p.first < end and read.first < p.first + p.count for p in inst.writes())
