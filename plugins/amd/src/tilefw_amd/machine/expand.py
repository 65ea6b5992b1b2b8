"""Post-allocation expansion: pseudo-instructions, copies, constants and predicates become instructions of the chip.

A predicated instruction executes only in the lanes of its mask: EXEC holds the mask for a run of instructions with the same
predicate, and all lanes otherwise. Scalar instructions ignore EXEC (CDNA3 ISA, "EXECute Mask") and stay within runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw.api.machine import Block, Function, FunctionPass, Inst, Operand, Reg, Slice
from tilefw_amd.isa.constants import is_inline
from tilefw_amd.isa.registers import EXEC
from tilefw_amd.machine.copies import expand_copy, spread
from tilefw_amd.machine.pseudo import COPY, expand, part, steps
from tilefw_amd.machine.redundant import remove_redundant
from tilefw_amd.machine.traits import SCALARS

_ALL_LANES = (1 << 64) - 1
# How 32 and 64 bits go into a file; a wave's value goes to lanes as it is, a lane's to the wave from the first lane.
COPIES = {
    ("v", "v"): ("v_mov_b32", "v_mov_b64"), ("v", "s"): ("v_mov_b32", "v_mov_b64"), ("s", "s"): ("s_mov_b32", "s_mov_b64"),
    ("s", "v"): ("v_readfirstlane_b32", ""), ("v", "a"): ("v_accvgpr_read_b32", ""), ("a", "v"): ("v_accvgpr_write_b32", ""),
    ("a", "a"): ("v_accvgpr_mov_b32", ""),
}
_CONSTANTS = {"v": ("v_mov_b32", "v_mov_b64"), "s": ("s_mov_b32", "s_mov_b64"), "a": ("v_accvgpr_write_b32", "")}
_FILE = {"m": "s"}
_VECTOR_CONSTANTS = ("move.v", "v_mov_b32", "v_mov_b64")
_WIDE_CONSTANTS = ("v_mov_b64", "s_mov_b64")


@dataclass(frozen=True)
class ExpandPseudos(FunctionPass):
    """Replaces pseudo-instructions by real ones, and predicates by settings of the execution mask."""

    name = "expand-pseudos"

    def run(self, function: Function) -> None:
        expand_pseudos(function)


def expand_pseudos(function: Function) -> None:
    """Rewrite one function, whose registers are physical."""
    scalars = function.file("s", SCALARS)
    for block in function.blocks:
        block.insts = list(_masked(block, scalars))
    remove_redundant(function)
    for block in function.blocks:
        block.insts = spread(block.insts)


def _masked(block: Block, scalars: Reg) -> Iterator[Inst]:
    """The block's instructions, each under its lanes."""
    exec_mask = scalars.slice(EXEC.index, EXEC.count)
    current: tuple[Slice, bool] | None = None  # the mask that EXEC holds, and whether it is inverted; None: all lanes
    for inst in block.insts:
        wanted = None if inst.predicate is None else (inst.predicate, inst.predicate_not)
        if wanted != current and not (wanted is None and is_scalar(inst) and not inst.targets):
            yield _set(exec_mask, wanted, inst)
            current = wanted
        yield from instructions(inst, scalars)
        if current is not None and any(_overlap(piece, current[0]) for piece in inst.defs):
            current = (exec_mask, False)  # a mask that nothing wants: EXEC is made anew
    if current is not None and block.insts[-1].opcode != "s_endpgm":
        yield _set(exec_mask, None, block.insts[-1])


def _set(exec_mask: Slice, wanted: tuple[Slice, bool] | None, inst: Inst) -> Inst:
    if wanted is None:
        return Inst("s_mov_b64", [exec_mask], [_ALL_LANES], place=inst.place)
    mask, turned = wanted
    return Inst("s_not_b64" if turned else "s_mov_b64", [exec_mask], [mask], place=inst.place)


def _overlap(x: Slice, y: Slice) -> bool:
    return _file(x) == _file(y) and x.first < y.first + y.count and y.first < x.first + x.count


def _file(piece: Slice) -> str:
    return _FILE.get(piece.reg.cls, piece.reg.cls)


def is_scalar(inst: Inst) -> bool:
    """Whether an instruction does the same whatever EXEC holds."""
    if inst.opcode.startswith("move."):
        return all(_file(p) == "s" for p in (*inst.defs, *(u for u in inst.uses if isinstance(u, Slice))))
    return bool(steps(inst.opcode)) or inst.opcode.startswith("s_")


def instructions(inst: Inst, scalars: Reg) -> Iterator[Inst]:
    """The chip's instructions for one of the machine layer, without its predicate; `scalars` is the file of scalar registers."""
    if inst.opcode.startswith("move.") or _is_wide_constant(inst) or (is_constant(inst) and _file(inst.defs[0]) == "a"):
        yield from _copy(inst, inst.defs[0], inst.uses[0])
    elif inst.opcode.startswith(COPY):
        yield from expand_copy(inst, scalars)
    elif steps(inst.opcode):
        yield from expand(inst)
    else:
        inst.predicate = None
        yield inst


def is_constant(inst: Inst) -> bool:
    """Whether an instruction brings nothing but a constant into a vector register."""
    return inst.opcode in _VECTOR_CONSTANTS and isinstance(inst.uses[0], int)


def made_in_accumulation(constant: Inst) -> bool:
    """Whether an accumulation register takes the constant: `v_accvgpr_write_b32` has no literal (CDNA3 ISA, section "VOP3P")."""
    (to,) = constant.defs
    return all(is_inline(_bits(constant.uses[0], i, 1), 32) for i in range(to.count))


def _is_wide_constant(inst: Inst) -> bool:
    """Whether an instruction brings 64 bits that it has no room for."""
    return inst.opcode in _WIDE_CONSTANTS and isinstance(inst.uses[0], int) and not is_inline(inst.uses[0], 64)


def _copy(inst: Inst, to: Slice, source: Operand) -> Iterator[Inst]:
    """A copy of any width by instructions of 32 or, where both sides begin at even registers, 64 bits; from the end on where it
    goes up within its own registers."""
    if isinstance(source, Slice):
        short, wide = COPIES[_file(to), _file(source)]
    else:
        short, wide = _CONSTANTS[_file(to)]
    copies: list[Inst] = []
    at = 0
    while at < to.count:
        pair = at + 2 <= to.count and wide and _pairs(to, source, at)
        count = 2 if pair else 1
        taken = source.part(at, count) if isinstance(source, Slice) else _bits(source, at, count)
        copies.append(Inst(wide if pair else short, [to.part(at, count)], [taken], place=inst.place))
        at += count
    up = isinstance(source, Slice) and _overlap(to, source) and to.first > source.first
    yield from reversed(copies) if up else copies


def _pairs(to: Slice, source: Operand, at: int) -> bool:
    """Whether 64 bits from register `at` on go in one instruction: even registers, or a constant that needs no literal."""
    if (to.first + at) % 2:
        return False
    if isinstance(source, Slice):
        return (source.first + at) % 2 == 0
    return is_inline(_bits(source, at, 2), 64)


def _bits(source: Operand, at: int, count: int) -> int:
    value = part(source, at)
    assert isinstance(value, int)
    if count == 2:
        high = part(source, at + 1)
        assert isinstance(high, int)
        value |= high << 32
    return value
