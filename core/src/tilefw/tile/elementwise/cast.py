"""The select and cast rows of the elementwise table. What a cast computes depends on two types: `evaluate.py` holds it.

To formats of 8 bits and less, `castf`, `s2f` and `u2f` clamp to the largest finite value, infinity too, fp8e5 included
(PTX ISA, `cvt`: `.satfinite` is the only form there); NaN stays NaN where the format has one, and becomes the largest
value in all-finite formats. Wider formats overflow to infinity. `f2s` and `f2u` truncate, clamp, and give 0 for NaN (PTX ISA,
`cvt.rzi`).
"""

from __future__ import annotations

from tilefw.tile.elementwise import error as e
from tilefw.tile.elementwise.row import Row, Rows

_integer = Rows(operands=("T:int",), result="to:int")
_to_float = Rows(operands=("T:int",), result="to:float", error=e.ROUNDED)
_from_float = Rows(operands=("T:float",), result="to:int", error=e.JUMPING)
_pointer = Rows(operands=("T:ptr",), result="to:int", group="cast.pointer")

ROWS: tuple[Row, ...] = (
    Row("select", ("bool", "T:any", "T:any"), "same", "select", "x where the condition holds, else y"),
    _integer("exts", None, "to a wider integer, sign extended", group="cast.ext"),
    _integer("extu", None, "to a wider integer, zero extended", group="cast.ext"),
    _integer("trunci", None, "to a narrower integer: the low bits", group="cast.trunc"),
    Row("castf", ("T:float",), "to:float", "cast.float", "float to float, rounding rtne or rtz", error=e.ROUNDED, rounding=True),
    _to_float("s2f", None, "signed integer to float, nearest even", group="cast.s2f"),
    _to_float("u2f", None, "unsigned integer to float, nearest even", group="cast.u2f"),
    _from_float("f2s", None, "float to signed integer towards zero, clamping; 0 for NaN", group="cast.f2s"),
    _from_float("f2u", None, "float to unsigned integer towards zero, clamping; 0 for NaN", group="cast.f2u"),
    Row("bitcast", ("T:any",), "to:any", "cast.bitcast", "the same bits as another type of the same width"),
    _pointer("ptr_to_int", None, "the address of a pointer"),
    _pointer("int_to_ptr", None, "the pointer at an address", operands=("T:int",), result="to:ptr"),
)
