"""Pseudo-instructions: what is one instruction until registers are assigned, and several of the chip's from then on.

They keep SCC inside: a comparison and what reads it are never apart, so that neither scheduling nor allocation knows SCC.
`expand-pseudos` replaces them by real ones.

| opcode | operands | does |
|---|---|---|
| `compare.s_cmp_lt_i32` (or another scalar comparison) | d: b64; a, b | d = -1 where it holds, else 0 |
| `select.s_cmp_lt_i32` | d: 32 or 64 bits; a, b, x, y | d = x where it holds, else y |
| `carry.s_cmp_lt_i32` | d: b32; a, b, x, y | d = x + y, and 1 more where it holds |
| `branch.s_cmp_lt_i32`, `branch_not.s_cmp_lt_i32` | a, b; a target | go there where it holds, or does not |
| `branch.mask`, `branch_not.mask` | c: b64; a target | go there where c is not zero, or is |
| `s_select_b32`, `s_select_b64` | d; c: b64, x, y | d = x where c is not zero, else y |
| `s_add_u64`, `s_sub_u64` | d; a, b | sum, difference of 64 bits |
| `move.v`, `move.a`, `move.s`, `move.m` | d; x | a copy into a class of registers, of any width, from any class or of a constant |
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tilefw.api.machine import Inst, Operand, Slice
from tilefw_amd.isa.set import InstructionSet

# Of asynchronous copies, see `copies`: a load to LDS with what M0 is for it, and what marks groups and waits.
COPY = "copy."
COMMIT, WAIT = "copies.commit", "copies.wait"
MARKERS = frozenset({COMMIT, WAIT})

# A step is an instruction on `d` and the uses `a`, `b`, `x`, `y` in order, or on their halves; `{bits}` are those of `d`.
_NAMES = ("a", "b", "x", "y")
_HALVES = {"lo": 0, "hi": 1}

# Of a scalar comparison, by what becomes of SCC.
_WITH_COMPARISON = {
    "compare": "s_cselect_b64 d -1 0",
    "select": "s_cselect_b{bits} d x y",
    "carry": "s_addc_u32 d x y",
    "branch": "s_cbranch_scc1",
    "branch_not": "s_cbranch_scc0",
}
_STEPS: dict[str, tuple[str, ...]] = {
    "branch.mask": ("s_cmp_lg_u64 a 0", "s_cbranch_scc1"),
    "branch_not.mask": ("s_cmp_lg_u64 a 0", "s_cbranch_scc0"),
    "s_select_b32": ("s_cmp_lg_u64 a 0", "s_cselect_b32 d b x"),
    "s_select_b64": ("s_cmp_lg_u64 a 0", "s_cselect_b64 d b x"),
    "s_add_u64": ("s_add_u32 d.lo a.lo b.lo", "s_addc_u32 d.hi a.hi b.hi"),
    "s_sub_u64": ("s_sub_u32 d.lo a.lo b.lo", "s_subb_u32 d.hi a.hi b.hi"),
}


@dataclass(frozen=True, slots=True)
class _Step:
    opcode: str
    operands: tuple[str, ...]

    @property
    def branches(self) -> bool:
        return self.opcode.startswith("s_cbranch")


@functools.cache
def steps(opcode: str) -> tuple[_Step, ...]:
    """The instructions that a pseudo-instruction stands for; none for an instruction of the chip. Copies are not among them."""
    texts = _STEPS.get(opcode)
    kind, _, comparison = opcode.partition(".")
    if texts is None and kind in _WITH_COMPARISON and comparison.startswith("s_cmp_"):
        texts = (f"{comparison} a b", _WITH_COMPARISON[kind])
    return tuple(_Step(first, tuple(rest)) for first, *rest in (text.split() for text in texts or ()))


def opcodes(opcode: str) -> tuple[str, ...]:
    """The mnemonics of those instructions; the shorter one where it depends on the operands."""
    return tuple(step.opcode.replace("{bits}", "32") for step in steps(opcode))


@functools.cache
def widths(isa: InstructionSet, opcode: str) -> tuple[int, ...]:
    """How many bits each use of a pseudo-instruction has."""
    bits: dict[str, int] = {}
    for step in steps(opcode):
        row = isa.rows[step.opcode.replace("{bits}", "32")]
        types = [o.type for o in (*row.destinations, *row.sources) if o.type is not None]
        for name, kind in zip(step.operands, types, strict=True):
            whole, _, half = name.partition(".")
            bits[whole] = 64 if half else kind.bits
    return tuple(bits[name] for name in _NAMES if name in bits)


def by_halves(opcode: str) -> bool:
    """Whether a pseudo-instruction takes its uses in halves of 32 bits, each of which may be a literal."""
    named = [name for step in steps(opcode) for name in step.operands if name[0] != "d"]
    return bool(named) and all("." in name for name in named)


def is_branch(opcode: str) -> bool:
    return any(step.branches for step in steps(opcode))


def expand(inst: Inst) -> list[Inst]:
    """The chip's instructions for a pseudo-instruction."""
    bits = str(32 * inst.defs[0].count) if inst.defs else ""
    return [_instruction(inst, step, bits) for step in steps(inst.opcode)]


def _instruction(inst: Inst, step: _Step, bits: str) -> Inst:
    defs: list[Slice] = []
    uses: list[Operand] = []
    for name in step.operands:
        found = _operand(inst, name)
        if name[0] == "d":
            assert isinstance(found, Slice)
            defs.append(found)
        else:
            uses.append(found)
    targets = inst.targets if step.branches else ()
    no_wrap = inst.no_wrap if defs else ""
    return Inst(step.opcode.replace("{bits}", bits), defs, uses, targets=targets, place=inst.place, no_wrap=no_wrap)


def _operand(inst: Inst, name: str) -> Operand:
    whole, _, half = name.partition(".")
    if whole == "d":
        found: Operand = inst.defs[0]
    elif whole in _NAMES:
        found = inst.uses[_NAMES.index(whole)]
    else:
        return int(whole)
    return part(found, _HALVES[half]) if half else found


def part(operand: Operand, index: int) -> Operand:
    """32 bits of a wider operand, counted from the lowest."""
    if isinstance(operand, int):
        return operand >> (32 * index) & 0xFFFFFFFF
    assert isinstance(operand, Slice), "an operand with a name has no parts"
    return operand.part(index)
