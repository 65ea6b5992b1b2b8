"""Rows of f32 on two elements at once, where they stand in neighbouring registers: V_PK_ADD_F32, V_PK_MUL_F32, V_PK_FMA_F32.

CDNA3 ISA, "VOP3P". They do two elements in the time of one. Loads and matrix products leave elements so, and so do these
instructions themselves; nothing is moved together for them, but for what both elements share, once. A rule is called with the
elements of each operand in turn, and gives both results, or None where one by one is no worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.select.operands import legal

_ROWS = {
    "addf": ("v_pk_add_f32",), "subf": ("v_pk_add_f32", "neg_lo:[0,1]", "neg_hi:[0,1]"), "mulf": ("v_pk_mul_f32",),
    "fma": ("v_pk_fma_f32",),
}


# Rows without such an instruction whose results stand together where an operand's elements do, for what is computed with them.
_ONE_BY_ONE = ("s2f.i32.f32", "u2f.i32.f32", "exp2.f32", "select.f32")


def rules() -> dict[str, Rule]:
    packed = {f"{row}.f32x2": partial(_both, opcode, names) for row, (opcode, *names) in _ROWS.items()}
    return packed | {f"{key}x2": partial(_one_by_one, key) for key in _ONE_BY_ONE}


def _one_by_one(key: str, code: Code, *elements: Element) -> Sequence[Slice] | None:
    """Both results into neighbouring registers, where two elements of an operand are in such."""
    operands = list(zip(elements[::2], elements[1::2], strict=True))
    if not any(_together(*operand) for operand in operands):
        return None
    first, second = (code(key, *(operand[i] for operand in operands)) for i in (0, 1))
    pair = code.tuple([first, second], "v")
    return pair.part(0), pair.part(1)


def _both(opcode: str, names: Sequence[str], code: Code, *elements: Element) -> Sequence[Slice] | None:
    operands = list(zip(elements[::2], elements[1::2], strict=True))
    together = [_together(*operand) for operand in operands]
    shared = [x == y for x, y in operands]
    if not any(together) or not all(pair is not None or same for pair, same in zip(together, shared, strict=True)):
        return None
    sources = [pair or _repeated(code, x) for pair, (x, _) in zip(together, operands, strict=True)]
    found = code.inst(opcode, "w64", *legal(code, opcode, [*sources, *names]))
    return found.part(0), found.part(1)


def _together(x: Element, y: Element) -> Slice | None:
    """Two elements as a pair of registers, if they are one: the first at an even place."""
    if not isinstance(x, Slice) or not isinstance(y, Slice) or x.reg is not y.reg or x.reg.cls != "v":
        return None
    if y.first != x.first + 1 or x.first % 2 or x.reg.align % 2:
        return None
    return x.reg.slice(x.first, 2)


def _repeated(code: Code, x: Element) -> Element:
    """The same element twice."""
    if isinstance(x, Const):
        return Const("i64", x.bits | x.bits << 32)
    return code.tuple([x, x], x.reg.cls)
