"""Predicates of lanes: a bit for each lane in a pair of scalar registers, whose logic the scalar unit has (CDNA3 ISA, "SOP2").

What stands in the bits of lanes that are off is of no interest: a mask is read by lanes that are on, or together with EXEC.
"""

from __future__ import annotations

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Element, Rule
from tilefw_amd.select.operands import scalar as emit
from tilefw_amd.select.rules.instruction import scalar


def rules() -> dict[str, Rule]:
    return {
        "andi.i1": scalar("s_and_b64", "i1"), "ori.i1": scalar("s_or_b64", "i1"), "xori.i1": scalar("s_xor_b64", "i1"),
        "select.i1": _select,
    }


def _select(code: Code, condition: Element, x: Element, y: Element) -> Slice:
    taken = emit(code, "s_and_b64", "i1", x, condition)
    return emit(code, "s_or_b64", "i1", taken, emit(code, "s_andn2_b64", "i1", y, condition))
