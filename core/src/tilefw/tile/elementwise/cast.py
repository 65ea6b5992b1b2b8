"""The select and cast rows of the elementwise table."""

from __future__ import annotations

from tilefw.tile.elementwise.row import Row

_I = ("T:int",)
_F = ("T:float",)

ROWS = (
    Row("select", ("bool", "T:any", "T:any"), "same", "select", "x where the condition holds, else y"),
    Row("exts", _I, "to:int", "cast.ext", "to a wider integer, sign extended"),
    Row("extu", _I, "to:int", "cast.ext", "to a wider integer, zero extended"),
    Row("trunci", _I, "to:int", "cast.trunc", "to a narrower integer: the low bits"),
    Row("castf", _F, "to:float", "cast.float", "float to float, rounding rtne or rtz", rounding=True),
    Row("s2f", _I, "to:float", "cast.s2f", "signed integer to float, nearest even"),
    Row("u2f", _I, "to:float", "cast.u2f", "unsigned integer to float, nearest even"),
    Row("f2s", _F, "to:int", "cast.f2s", "float to signed integer towards zero, saturating; NaN gives 0"),
    Row("f2u", _F, "to:int", "cast.f2u", "float to unsigned integer towards zero, saturating; NaN gives 0"),
    Row("bitcast", ("T:any",), "to:any", "cast.bitcast", "the same bits as another type of the same width"),
    Row("ptr_to_int", ("T:ptr",), "to:int", "cast.pointer", "the address of a pointer"),
    Row("int_to_ptr", _I, "to:ptr", "cast.pointer", "the pointer at an address"),
)
