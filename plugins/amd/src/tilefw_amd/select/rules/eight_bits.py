"""Casts of 8-bit floats: a chip converts its own formats (`Chip.float8`) by itself, the upper half of f16 that E5M2 is by a shift.

CDNA3 ISA, "VOP1", "VOP3A": V_CVT_PK_F32_FP8, V_CVT_PK_FP8_F32 (an E4M3) and _BF8 (an E5M2). Two elements of a packed register
are widened at once, SDWA's select naming the half. What overflows the chip makes NaN or infinite, where the rows want the largest
number: V_MED3 clamps, and NaN, which it does not keep, is put back. Formats of other chips are core's, by integer arithmetic.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Element, Rule
from tilefw_amd.chips import Chip
from tilefw_amd.select.operands import legal
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.rules.casts import packed_position
from tilefw_amd.select.rules.instruction import i32, real


class _Format(NamedTuple):
    """The chip's name for a format, and its largest number."""

    name: str
    largest: float


_LARGEST = {"f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f8E4M3FN": 448.0, "f8E5M2": 57344.0}


def rules(chip: Chip) -> dict[str, Rule]:
    table: dict[str, Rule] = {"castf.f8E5M2.f32": lambda code, x: code("castf.f16.f32", _upper_byte(code, x))}
    for name, t in chip.float8.items():
        form = _Format(name, _LARGEST[t])
        table |= {f"castf.{t}.f32": partial(_widen, form), f"castf.{t}.f16x2": partial(_pair_of_halves, t)}
        table |= {f"castf.{t}.bf16x2": partial(_pair_of_bfloats, t), f"castf.{t}.bf16": partial(_bfloat, t)}
        table |= {f"castf.f32.{t}": partial(_narrow, form), f"castf.f32.{t}x4": partial(_four, form)}
    return table | {"castf.f8E5M2.f16": _upper_byte}


# --- wider -------------------------------------------------------------------------------------------------------------------


def _widen(form: _Format, code: Code, x: Element) -> Element:
    """One of a pair that is converted once."""
    register, index = packed_position(code, x, 8)
    pair = emit(code, f"v_cvt_pk_f32_{form.name}", "w64", register, *(("src0_sel:WORD_1",) if index > 1 else ()))
    return pair.part(index % 2)


def _pair_of_halves(t: str, code: Code, x: Element, y: Element) -> Slice:
    """Exact, so that it does not matter how it rounds."""
    return emit(code, "v_cvt_pkrtz_f16_f32", "w32", *(code(f"castf.{t}.f32", e) for e in (x, y)))


def _pair_of_bfloats(t: str, code: Code, x: Element, y: Element) -> Slice:
    """Exact in the upper halves."""
    low, high = (code(f"castf.{t}.f32", e) for e in (x, y))
    return emit(code, "v_perm_b32", "w32", high, low, i32(0x07060302))


def _bfloat(t: str, code: Code, x: Element) -> Element:
    return emit(code, "v_lshrrev_b32", "e16", i32(16), code(f"castf.{t}.f32", x))


def _upper_byte(code: Code, x: Element) -> Element:
    register, index = packed_position(code, x, 8)
    if index == 0:
        return emit(code, "v_lshlrev_b32", "e16", i32(8), register)
    shifted = register if index == 1 else emit(code, "v_lshrrev_b32", "w32", i32(8 * (index - 1)), register)
    return emit(code, "v_and_b32", "e16", i32(0xFF00), shifted)


# --- narrower ----------------------------------------------------------------------------------------------------------------


def _clamped(form: _Format, code: Code, x: Element) -> Element:
    low, high = (real(sign * form.largest) for sign in (-1, 1))
    return code("clampf_nan.f32", x, low, high)


def _two(form: _Format, code: Code, x: Element, y: Element, old: Element, *names: str) -> Slice:
    """Two elements as bytes in one half of a register, whose other half stays."""
    opcode = f"v_cvt_pk_{form.name}_f32"
    sources = legal(code, opcode, (x, y))
    return code.insts(opcode, ("w32",), *sources, code.chip.operand(code, old), *names, tied=((0, len(sources)),))[0]


def _narrow(form: _Format, code: Code, x: Element) -> Element:
    """The bits above stay those of the operand: nobody reads them."""
    clamped = _clamped(form, code, x)
    return _two(form, code, clamped, clamped, clamped)


def _four(form: _Format, code: Code, *elements: Element) -> Slice:
    a, b, c, d = (_clamped(form, code, x) for x in elements)
    return _two(form, code, c, d, _two(form, code, a, b, a), "op_sel:[0,0,1]")
