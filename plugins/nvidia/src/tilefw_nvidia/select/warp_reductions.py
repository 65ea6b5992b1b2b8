"""Reductions of integers over a whole warp as one instruction of 32 bits, where lanes exchanged and combined step by step.

    shfl.sync.bfly.b32 s, x, 1, 31, -1;  add.s32 y, x, s;   … and so with 2, 4, 8 and 16        redux.sync.add.s32 y, x, -1

PTX ISA, "Parallel Synchronization and Communication Instructions: redux.sync": add, min, max of `.u32` and `.s32`, and, or, xor of
`.b32`. All lanes take part on both sides, and all have the result.

An integer of 64 bits travels as two halves. Bitwise operations reduce them one by one. The largest integer has the largest high
half, and of the lanes that have this one the largest low half, without a sign; the others take part with the smallest there is.
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
_HALVES = "mov.b64"  # takes an integer of 64 bits apart and puts it together, the low half first


@dataclass(frozen=True, slots=True)
class _WideKind:
    """An operation on 64 bits by those on the high and the low half.

    `unlike`: the low half of a lane whose high half is not the result's; None where the halves do not depend on each other.
    """

    high: str
    low: str
    unlike: int | None = None


_WIDE = {
    **{f"{kind}.b64": _WideKind(f"{kind}.b32", f"{kind}.b32") for kind in ("and", "or", "xor")},
    **{f"{kind}.{sign}64": _WideKind(f"{kind}.{sign}32", f"{kind}.u32", unlike)
       for kind, unlike in (("min", -1), ("max", 0)) for sign in "su"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _ExchangeStep:
    """A value combined with that of the lane at a distance: the exchange, the operation, and what goes in."""

    exchange: tuple[Inst, ...]
    combination: Inst
    value: Slice
    distance: int


@dataclass(frozen=True, slots=True)
class _Exchanged:
    """What stands in a register: a value of the lane at a distance, by these instructions."""

    by: tuple[Inst, ...]
    value: Slice
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
        kinds |= {kind for kind, halves in _WIDE.items() if {halves.high, halves.low} <= kinds}
        if not kinds or not any(inst.opcode == _SHUFFLE for inst in function.insts()):
            return
        counts = _Counts(
            Counter(use.reg for inst in function.insts() for use in inst.reads()),
            Counter(piece.reg for inst in function.insts() for piece in inst.writes()),
        )
        for block in function.blocks:
            _reduce(function, block, _steps(block, kinds, counts), self.chip.lanes, counts)


def _steps(block: Block, kinds: set[str], counts: _Counts) -> list[_ExchangeStep]:
    """The exchanges of a block whose other lane's value goes into one combination with this lane's, in their order."""
    exchanged: dict[Reg, _Exchanged] = {}
    halves: dict[Reg, tuple[Inst, int]] = {}  # by register: what took its value from one of 64 bits, and which half it is
    found = []
    for inst in block.insts:
        if inst.predicate is None:
            _exchange(inst, exchanged, halves, counts)
        step = _step(inst, exchanged, counts) if inst.opcode in kinds and inst.predicate is None else None
        if step is not None:
            found.append(step)
        for piece in inst.writes() if exchanged else ():
            if counts.writes[piece.reg] > 1:  # what was exchanged is no longer there
                exchanged = {reg: made for reg, made in exchanged.items() if made.value != piece}
    return found


def _exchange(
    inst: Inst, exchanged: dict[Reg, _Exchanged], halves: dict[Reg, tuple[Inst, int]], counts: _Counts
) -> None:
    """Notes what an instruction takes apart, what it has from another lane, and what it puts together of two such halves."""
    value = inst.uses[0] if inst.uses else None
    if not isinstance(value, Slice):
        return
    if inst.opcode == _SHUFFLE and inst.uses[2:] == (_CLAMP, _ALL) and isinstance(inst.uses[1], int):
        exchanged[inst.defs[0].reg] = _Exchanged((inst,), value, inst.uses[1])
    elif inst.opcode == _HALVES and len(inst.defs) == 2 and counts.writes[value.reg] == 1:
        halves |= {piece.reg: (inst, half) for half, piece in enumerate(inst.defs) if counts.only(piece.reg, 1)}
    elif inst.opcode == _HALVES and len(inst.uses) == 2:
        sent = [exchanged.get(use.reg) if isinstance(use, Slice) and counts.only(use.reg, 1) else None for use in inst.uses]
        low, high = sent
        if low is None or high is None or low.distance != high.distance:
            return
        (apart, first), (also, second) = (halves.get(half.value.reg, (None, -1)) for half in (low, high))
        if apart is not None and apart is also and (first, second) == (0, 1) and isinstance(apart.uses[0], Slice):
            exchanged[inst.defs[0].reg] = _Exchanged((apart, *low.by, *high.by, inst), apart.uses[0], low.distance)


def _step(combination: Inst, exchanged: Mapping[Reg, _Exchanged], counts: _Counts) -> _ExchangeStep | None:
    for mine, other in (combination.uses, combination.uses[::-1]):
        made = exchanged.get(other.reg) if isinstance(other, Slice) else None
        if made is None or not isinstance(mine, Slice) or made.value != mine or not isinstance(other, Slice):
            continue
        if counts.only(other.reg, 1) and counts.writes[combination.defs[0].reg] == 1:
            return _ExchangeStep(made.by, combination, mine, made.distance)
    return None


def _reduce(function: Function, block: Block, steps: Sequence[_ExchangeStep], lanes: int, counts: _Counts) -> None:
    by_value = {step.value.reg: step for step in steps}
    results = {step.combination.defs[0].reg for step in steps}
    replaced: dict[int, list[Inst]] = {}  # by the identity of an instruction: what stands in its place
    for first in steps:
        if first.value.reg in results and counts.only(first.value.reg, 2):
            continue  # goes on with what another step made
        chain = [first]
        while (last := chain[-1].combination).defs[0].reg in by_value and counts.only(last.defs[0].reg, 2):
            chain.append(by_value[last.defs[0].reg])
        kinds = {step.combination.opcode for step in chain}
        if len(kinds) > 1 or sorted(step.distance for step in chain) != [1 << i for i in range(lanes.bit_length() - 1)]:
            continue
        replaced |= {id(inst): [] for step in chain for inst in (*step.exchange, step.combination)}
        replaced[id(first.exchange[0])] = _at_once(function, first, last.defs[0])
    if replaced:
        block.insts = [made for inst in block.insts for made in replaced.get(id(inst), [inst])]


def _at_once(function: Function, first: _ExchangeStep, result: Slice) -> list[Inst]:
    """The result of a chain that begins with this step, of what goes into it."""
    kind, place = first.combination.opcode, first.combination.place
    halves = _WIDE.get(kind)
    if halves is None:
        return [Inst(f"redux.sync.{kind}", [result], [first.value, _ALL], place=place)]
    low, high, all_low, all_high = (function.register("r").whole for _ in range(4))
    made = [
        Inst(_HALVES, [low, high], [first.value], place=place),
        Inst(f"redux.sync.{halves.high}", [all_high], [high, _ALL], place=place),
    ]
    if halves.unlike is not None:
        alike, low_of = function.register("p").whole, low
        low = function.register("r").whole
        made += [
            Inst("setp.eq.s32", [alike], [high, all_high], place=place),
            Inst("selp.b32", [low], [low_of, halves.unlike, alike], place=place),
        ]
    reduced = Inst(f"redux.sync.{halves.low}", [all_low], [low, _ALL], place=place)
    return [*made, reduced, Inst(_HALVES, [result], [all_low, all_high], place=place)]
