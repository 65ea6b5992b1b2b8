"""The pass that makes predicates real: the R1 has none, so predicated instructions go between a push and a pop of the lane mask.

It runs after scheduling and allocation, which need predicates: they say that a register stays as it was where they do not hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.machine import Function, FunctionPass, Inst, Slice


@dataclass(frozen=True)
class MaskPredicates(FunctionPass):
    """Neighbours under one predicate share a push and a pop, as long as none of them writes it."""

    name = "rook-mask-predicates"

    def run(self, function: Function) -> None:
        for block in function.blocks:
            block.insts = _masked(block.insts)


def _masked(insts: list[Inst]) -> list[Inst]:
    made: list[Inst] = []
    open_mask: tuple[Slice, bool] | None = None
    for inst in insts:
        mask = None if inst.predicate is None else (inst.predicate, inst.predicate_not)
        if mask != open_mask:
            made += [Inst("pop", place=inst.place)] if open_mask is not None else []
            made += [Inst("push.n" if mask[1] else "push", (), [mask[0]], place=inst.place)] if mask is not None else []
            open_mask = mask
        inst.predicate, inst.predicate_not = None, False
        made.append(inst)
        if open_mask is not None and any(_overlap(piece, open_mask[0]) for piece in inst.writes()):
            made.append(Inst("pop", place=inst.place))
            open_mask = None
    return [*made, Inst("pop")] if open_mask is not None else made


def _overlap(one: Slice, other: Slice) -> bool:
    return one.reg is other.reg and one.first < other.first + other.count and other.first < one.first + one.count
