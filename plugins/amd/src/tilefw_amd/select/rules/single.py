"""Rows that a chip has as one instruction, where other chips need several: they take the place of the other tables' rules.

    v_cvt_pk_bf16_f32 d, x, y: two f32 become bf16; without it each is rounded by integer arithmetic, and NaN put back
"""

from __future__ import annotations

from functools import partial

from tilefw.api.simt import Code, Element, Rule
from tilefw_amd.chips import Chip
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.rules.instruction import FORM, vector


def rules(chip: Chip) -> dict[str, Rule]:
    served = instruction_set(chip).rows
    return {row: rule for opcode, of in _BY_OPCODE.items() if opcode in served for row, rule in of.items()}


def _alone(opcode: str, code: Code, x: Element) -> Element:
    """One element of a pair's conversion: what stands above it nobody reads."""
    return emit(code, opcode, "e16", x, x)


def _of_two(opcode: str, form: str, code: Code, x: Element, y: Element) -> Element:
    """The least or greatest of three, of which the last two are one."""
    return emit(code, opcode, form, x, y, y)


def _propagating(least: str, greatest: str, *types: str) -> dict[str, dict[str, Rule]]:
    """V_MINIMUM3 and V_MAXIMUM3 give NaN where an operand is NaN."""
    rows = ((least, "minf_nan"), (greatest, "maxf_nan"))
    return {
        opcode: {f"{row}.{t}": partial(_of_two, opcode, FORM.get(t, "w32")) for t in types} for opcode, row in rows
    }


_BY_OPCODE: dict[str, dict[str, Rule]] = {
    "v_cvt_pk_bf16_f32": {
        "castf.f32.bf16": partial(_alone, "v_cvt_pk_bf16_f32"), "castf.f32.bf16x2": vector("v_cvt_pk_bf16_f32", "w32"),
    },
    "v_cvt_pk_f16_f32": {"castf.f32.f16x2": vector("v_cvt_pk_f16_f32", "w32")},
    **_propagating("v_minimum3_f32", "v_maximum3_f32", "f32"),
    **_propagating("v_pk_minimum3_f16", "v_pk_maximum3_f16", "f16", "f16x2"),
}
