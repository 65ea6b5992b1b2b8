"""Instructions that change nothing, once registers are physical: tests of what SCC says, constants that stand there, jumps onward.

CDNA3 ISA, "SOP2", "SOP1": logic and shifts set SCC where their result is not zero. Of scalar instructions those that move, select,
multiply, load or wait leave it as it is; vector instructions do not touch it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.api.machine import Block, Function, Inst, Operand, Slice
from tilefw_amd.machine.traits import SCALARS

_TESTED = frozenset(
    f"s_{row}_b{bits}" for bits in (32, 64)
    for row in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor", "not", "lshl", "lshr")
)
_TESTS = {"s_cmp_lg_u32", "s_cmp_lg_u64"}
_LEAVES_SCC = (
    "v_", "buffer_", "global_", "flat_", "scratch_", "ds_", "s_load_", "s_mov_", "s_cselect_", "s_mul_", "s_waitcnt", "s_nop",
    "s_barrier", "s_setprio",
)
_CONSTANTS = ("s_mov_b32", "s_mov_b64")


def remove_redundant(function: Function) -> None:
    """Drop them from every block."""
    for number, block in enumerate(function.blocks):
        block.insts = list(_without_moves(_without_tests(block.insts)))
        _drop_jump(function, number, block)


def _without_tests(insts: Iterator[Inst] | list[Inst]) -> Iterator[Inst]:
    """Without comparisons with zero of what the last instruction made that wrote SCC."""
    told: Slice | None = None  # of which SCC says whether it is zero
    for inst in insts:
        if told is not None and inst.opcode in _TESTS and inst.uses[1] == 0 and _same(inst.uses[0], told):
            continue
        if inst.opcode in _TESTED:
            told = inst.defs[0]
        elif told is not None and (not inst.opcode.startswith(_LEAVES_SCC) or any(_overlap(d, told) for d in inst.defs)):
            told = None
        yield inst


def _without_moves(insts: Iterator[Inst]) -> Iterator[Inst]:
    """Without constants into scalar registers that hold them already."""
    known: dict[int, int] = {}  # a register's 32 bits
    for inst in insts:
        if inst.opcode in _CONSTANTS and isinstance(inst.uses[0], int) and _is_scalar(inst.defs[0]) and inst.predicate is None:
            to, value = inst.defs[0], inst.uses[0]
            words = {to.first + i: value >> 32 * i & 0xFFFFFFFF for i in range(to.count)}
            if all(known.get(register) == word for register, word in words.items()):
                continue
            known |= words
        else:
            for piece in (*inst.defs, *inst.implicit_defs):
                if _is_scalar(piece):
                    for register in range(piece.first, piece.first + piece.count):
                        known.pop(register, None)
        yield inst


def _drop_jump(function: Function, number: int, block: Block) -> None:
    """A jump at the end of a block to where control falls through anyway."""
    if not block.insts or block.insts[-1].opcode != "s_branch":
        return
    for following in function.blocks[number + 1 :]:
        if following.label == block.insts[-1].targets[0]:
            block.insts.pop()
            return
        if following.insts:
            return


def _is_scalar(piece: Slice) -> bool:
    return piece.reg.cls in ("s", "m") and piece.first + piece.count <= SCALARS


def _same(x: Operand, y: Slice) -> bool:
    return isinstance(x, Slice) and _is_scalar(x) and (x.first, x.count) == (y.first, y.count)


def _overlap(x: Slice, y: Slice) -> bool:
    return _is_scalar(x) and x.first < y.first + y.count and y.first < x.first + x.count
