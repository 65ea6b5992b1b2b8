"""Rules that are one instruction, on its operands in the order that encodes best; and what rules take apart and put together.

VOP2 and VOPC take constants and scalar registers as their first source alone (CDNA3 ISA, "VOP2", "VOPC"): rules of what commutes,
or has an instruction for the other order, put them there, so that the short encoding serves.
"""

from __future__ import annotations

from tilefw.api.floats import float_bits
from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.select.operands import instruction_set_of
from tilefw_amd.select.operands import scalar as emit_scalar
from tilefw_amd.select.operands import vector as emit

MASK = 0xFFFFFFFF
FORM = {"i1": "i1", "i8": "e8", "i16": "e16", "i32": "w32", "i64": "w64", "f16": "e16", "bf16": "e16", "f32": "w32", "f64": "w64"}
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def vector(opcode: str, form: str, *modifiers: str) -> Rule:
    """One vector instruction on the operands in order."""
    return lambda code, *operands: emit(code, opcode, form, *operands, *modifiers)


def scalar(opcode: str, form: str) -> Rule:
    """One scalar instruction, or pseudo-instruction of them, on the operands in order."""
    return lambda code, *operands: emit_scalar(code, opcode, form, *operands)


def is_single(code: Code, element: Element) -> bool:
    """Whether an element is a constant or equal in all lanes: what stands first in short encodings."""
    return isinstance(element, Const) or code.uniform(element)


def either_order(opcode: str, other: str, form: str) -> Rule:
    """`other` is the instruction with its sources exchanged; a chip that was made without one of the two takes the other."""

    def rule(code: Code, x: Element, y: Element) -> Slice:
        served = instruction_set_of(code).forms_by_mnemonic
        wanted = is_single(code, y) and not is_single(code, x)
        if other in served if wanted else opcode not in served:
            return emit(code, other, form, y, x)
        return emit(code, opcode, form, x, y)

    return rule


def commuting(opcode: str, form: str) -> Rule:
    """An instruction of two sources that may be exchanged."""
    return either_order(opcode, opcode, form)


def i32(value: int) -> Const:
    return Const("i32", value & MASK)


def real(value: float, t: str = "f32") -> Const:
    return Const(t, float_bits(value, t))


def halves(element: Element) -> tuple[Element, Element]:
    """The low and the high 32 bits of an element of 64."""
    if isinstance(element, Const):
        return i32(element.bits), i32(element.bits >> 32)
    return element.part(0), element.part(1)


def joined(code: Code, low: Element, high: Element, type_: str = "i64") -> Element:
    """An element of 64 bits from its halves."""
    if isinstance(low, Const) and isinstance(high, Const):
        return Const(type_, low.bits | high.bits << 32)
    return code.chip.pack(code, 32, [low, high])
