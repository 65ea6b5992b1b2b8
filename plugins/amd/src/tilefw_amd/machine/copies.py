"""Asynchronous copies on machine code: loads to LDS, the groups that they are counted in, and waits for all but the last groups.

| opcode | operands | does |
|---|---|---|
| `copy.LOAD` | m0: base, offset; those of `LOAD` | m0 = base + offset, then the load to LDS from there on |
| `copies.commit` | | the copies since the last one are a group |
| `copies.wait` | n | all groups but the last n have landed |

`expand-pseudos` makes the first one's instructions. The others are no instructions: `insert-waits` reads them, whose waits stand
before `copies.wait`, and `remove-markers` drops them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.api.machine import Function, FunctionPass, Inst, Reg, Slice
from tilefw_amd.isa.registers import M0
from tilefw_amd.machine.pseudo import COPY, MARKERS

# Instructions past which what sets M0 may go: they do not touch it nor, where that is a sum, SCC.
_PASSED = {"s_add_u32": ("v_", "ds_"), "s_mov_b32": ("v_", "ds_", "s_")}
_LOADS = ("buffer_load_", "global_load_")


@dataclass(frozen=True)
class RemoveMarkers(FunctionPass):
    """Drops what stood for groups of copies; the waits are there."""

    name = "remove-markers"

    def run(self, function: Function) -> None:
        for block in function.blocks:
            block.insts = [inst for inst in block.insts if inst.opcode not in MARKERS]


def expand_copy(inst: Inst, scalars: Reg) -> Iterator[Inst]:
    """The instructions of a copy; `scalars` is the file of scalar registers."""
    base, offset, *operands = inst.uses
    m0 = scalars.slice(M0.index, M0.count)
    if offset:
        yield Inst("s_add_u32", [m0], [base, offset], place=inst.place)
    else:
        yield Inst("s_mov_b32", [m0], [base], place=inst.place)
    yield Inst(inst.opcode.removeprefix(COPY), inst.defs, operands, place=inst.place)


def spread(insts: list[Inst]) -> list[Inst]:
    """The instructions with what sets M0 for a copy one place earlier, where that fills the wait state between them."""
    moved = list(insts)
    for place in range(2, len(moved)):
        before, sets, copies = moved[place - 2 : place + 1]
        if not copies.opcode.startswith(_LOADS) or not _sets_m0(sets) or not before.opcode.startswith(_PASSED[sets.opcode]):
            continue
        if not _sets_m0(before) and not _makes_operand(before, sets):
            moved[place - 2], moved[place - 1] = sets, before
    return moved


def _sets_m0(inst: Inst) -> bool:
    return any(d.reg.cls == "s" and d.reg.physical and d.first == M0.index for d in inst.defs)


def _makes_operand(before: Inst, inst: Inst) -> bool:
    return any(isinstance(use, Slice) and _overlap(use, written) for use in inst.uses for written in before.defs)


def _overlap(x: Slice, y: Slice) -> bool:
    return x.reg.cls in "sm" and y.reg.cls in "sm" and x.first < y.first + y.count and y.first < x.first + x.count
