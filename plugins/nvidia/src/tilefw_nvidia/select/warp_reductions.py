"""Reductions of 32-bit integers over a whole warp as one instruction, where lanes exchanged and combined step by step.

    shfl.sync.bfly.b32 s, x, 1, 31, -1;  add.s32 y, x, s;   … and so with 2, 4, 8 and 16        redux.sync.add.s32 y, x, -1

PTX ISA, "Parallel Synchronization and Communication Instructions: redux.sync": add, min, max of `.u32` and `.s32`, and, or, xor of
`.b32`. All lanes take part on both sides, and all have the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilefw.api.machine import Block, Function, FunctionPass, Inst, InstructionTable, Reg, Slice
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.isa.set import instruction_set
from tilefw_nvidia.select.lanes import TABLE

_SHUFFLE = "shfl.sync.bfly.b32"
_CLAMP, _ALL = 31, -1  # as the selection of a shuffle writes them
_KINDS = ("add.s32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32")


@dataclass(frozen=True, slots=True)
class _ExchangeStep:
    """A value combined with that of the lane at a distance: the exchange, the operation, and what goes in."""

    shuffle: Inst
    combination: Inst
    value: Reg
    distance: int


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often a function's instructions read and write each register."""

    reads: Counter[Reg]
    writes: Counter[Reg]

    def only(self, reg: Reg, reads: int) -> bool:
        """Whether a register is a value, written once, and read so often."""
        return self.writes[reg] == 1 and self.reads[reg] == reads


@dataclass(frozen=True)
class ReduceWarps(FunctionPass):
    """Makes `redux.sync` of whole chains of exchanges, as far as the chip has it. What they leave unread is gone as well."""

    name = "reduce-warps"
    chip: Chip
    table: ClassVar[InstructionTable] = TABLE

    def run(self, function: Function) -> None:
        opcode = instruction_set(self.chip).opcode
        kinds = {kind for kind in _KINDS if opcode(f"redux.sync.{kind}").exists}
        counts = _Counts(
            Counter(use.reg for inst in function.insts() for use in inst.reads()),
            Counter(piece.reg for inst in function.insts() for piece in inst.writes()),
        )
        for block in function.blocks if kinds else ():
            _reduce(block, _steps(block, kinds, counts), self.chip.lanes, counts)


def _steps(block: Block, kinds: set[str], counts: _Counts) -> list[_ExchangeStep]:
    """The exchanges of a block whose other lane's value goes into one combination with this lane's, in their order."""
    exchanged: dict[Reg, Inst] = {}
    found = []
    for inst in block.insts:
        if inst.opcode == _SHUFFLE and inst.predicate is None and inst.uses[2:] == (_CLAMP, _ALL):
            exchanged[inst.defs[0].reg] = inst
        step = _step(inst, exchanged, counts) if inst.opcode in kinds and inst.predicate is None else None
        if step is not None:
            found.append(step)
        for piece in inst.writes() if exchanged else ():
            if counts.writes[piece.reg] > 1:  # what was exchanged is no longer there
                exchanged = {reg: shuffle for reg, shuffle in exchanged.items() if shuffle.uses[0] != piece}
    return found


def _step(combination: Inst, exchanged: Mapping[Reg, Inst], counts: _Counts) -> _ExchangeStep | None:
    for mine, other in (combination.uses, combination.uses[::-1]):
        shuffle = exchanged.get(other.reg) if isinstance(other, Slice) else None
        if shuffle is None or not isinstance(mine, Slice) or shuffle.uses[0] != mine or not isinstance(shuffle.uses[1], int):
            continue
        if counts.only(shuffle.defs[0].reg, 1) and counts.writes[combination.defs[0].reg] == 1:
            return _ExchangeStep(shuffle, combination, mine.reg, shuffle.uses[1])
    return None


def _reduce(block: Block, steps: Sequence[_ExchangeStep], lanes: int, counts: _Counts) -> None:
    by_value = {step.value: step for step in steps}
    results = {step.combination.defs[0].reg for step in steps}
    replaced: dict[int, Inst | None] = {}  # by the identity of an instruction: what stands in its place
    for first in steps:
        if first.value in results and counts.only(first.value, 2):
            continue  # goes on with what another step made
        chain = [first]
        while (last := chain[-1].combination).defs[0].reg in by_value and counts.only(last.defs[0].reg, 2):
            chain.append(by_value[last.defs[0].reg])
        kinds = {step.combination.opcode for step in chain}
        if len(kinds) > 1 or sorted(step.distance for step in chain) != [1 << i for i in range(lanes.bit_length() - 1)]:
            continue
        for step in chain:
            replaced[id(step.shuffle)] = replaced[id(step.combination)] = None
        (kind,) = kinds
        replaced[id(first.shuffle)] = Inst(
            f"redux.sync.{kind}", [last.defs[0]], [first.shuffle.uses[0], _ALL], place=first.combination.place
        )
    if replaced:
        kept = [replaced.get(id(inst), inst) for inst in block.insts]
        block.insts = [inst for inst in kept if inst is not None]
