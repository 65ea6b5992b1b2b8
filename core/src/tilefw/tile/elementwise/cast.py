"""The select and cast rows of the elementwise table. What a cast computes depends on two types: `evaluate.py` holds it.

To formats of 8 bits and less, `castf`, `s2f` and `u2f` clamp to the largest finite value, infinity too, fp8e5 included
(the saturating mode of OCP OFP8 1.0, table 3); NaN stays NaN where the format has one, and becomes the largest
value in all-finite formats. Wider formats overflow to infinity. `f2s` and `f2u` truncate, clamp, and give 0 for NaN (LLVM's
LangRef, `llvm.fptosi.sat`).
"""

from __future__ import annotations

from tilefw.tile.elementwise import error as e
from tilefw.tile.elementwise.row import ElementwiseRow, ElementwiseRows

_select = ElementwiseRows(operands=("bool", "T:any", "T:any"), result="same")
_integer = ElementwiseRows(operands=("T:int",), result="to:int")
_float = ElementwiseRows(operands=("T:float",), result="to:float", error=e.ROUNDED, rounding=True)
_to_float = ElementwiseRows(operands=("T:int",), result="to:float", error=e.ROUNDED)
_from_float = ElementwiseRows(operands=("T:float",), result="to:int", error=e.JUMPING)
_bits = ElementwiseRows(operands=("T:any",), result="to:any")
_address = ElementwiseRows(operands=("T:ptr",), result="to:int")
_pointer = ElementwiseRows(operands=("T:int",), result="to:ptr")

ROWS: tuple[ElementwiseRow, ...] = (
    _select(    "select",     "select",       "x where the condition holds, else y"),
    _integer(   "exts",       "cast.ext",     "to a wider integer, sign extended"),
    _integer(   "extu",       "cast.ext",     "to a wider integer, zero extended"),
    _integer(   "trunci",     "cast.trunc",   "to a narrower integer: the low bits"),
    _float(     "castf",      "cast.float",   "float to float, rounding rtne or rtz"),
    _to_float(  "s2f",        "cast.s2f",     "signed integer to float, nearest even"),
    _to_float(  "u2f",        "cast.u2f",     "unsigned integer to float, nearest even"),
    _from_float("f2s",        "cast.f2s",     "float to signed integer towards zero, clamping; 0 for NaN"),
    _from_float("f2u",        "cast.f2u",     "float to unsigned integer towards zero, clamping; 0 for NaN"),
    _bits(      "bitcast",    "cast.bitcast", "the same bits as another type of the same width"),
    _address(   "ptr_to_int", "cast.pointer", "the address of a pointer"),
    _pointer(   "int_to_ptr", "cast.pointer", "the pointer at an address"),
)
