"""Conversions between floats and integers, and from float64 to float32, in the four directions of rounding.

To an integer: the float is rounded to a whole number, then converted as `tensor.to` does (clamping; 0 for NaN). From an
integer: the nearest float is moved to its neighbour where it lies on the wrong side; both are compared as integers.
"""

from __future__ import annotations

import tilefw.language as tl
from tilefw.frontend.libdevice.signatures import Functions
from tilefw.frontend.libdevice.term import FORMATS, Format, Term, with_sign_of

define = Functions()

_FLOATS = {"float": "fp32", "double": "fp64"}
_INTEGERS = {"int": tl.int32, "uint": tl.uint32, "ll": tl.int64, "ull": tl.uint64}
_WHOLE = {"rn": "round_even", "rd": "floor", "ru": "ceil"}
_DIRECTED = ("rd", "ru", "rz")


def moved(x: Term, up: bool) -> Term:
    """The neighbour of a float above it, or below it: infinity follows the largest, and the least follows a zero."""
    kind = x.format
    bits = x.bits()
    from_zero = x > 0.0 if up else x < 0.0
    least = with_sign_of(x.constant(2.0 ** (1 - kind.bias - kind.fraction)), x.constant(1.0 if up else -1.0))
    neighbour = x.equals(0.0).where(least, from_zero.where(bits + 1, bits - 1).as_type(kind.dtype))
    return x.equals(float("inf") if up else float("-inf")).where(x, neighbour)


def directed(nearest: Term, above: Term, below: Term, way: str) -> Term:
    """The result rounded in a direction: `nearest` is the rounded one; the exact one is `above` it, `below` it, or it."""
    upper, lower = above.where(moved(nearest, True), nearest), below.where(moved(nearest, False), nearest)
    if way == "rz":
        # A zero or an infinity tells the exact result's side by the only direction in which it can be left.
        positive = (nearest > 0.0) | (nearest.equals(0.0) & above)
        return positive.where(lower, upper)
    return upper if way == "ru" else lower


def _to_integer(target: tl.dtype, whole: str) -> object:
    return lambda x: x.row(whole).to(target)


def _from_integer(x: Term, kind: Format, way: str) -> Term:
    nearest = x.to(kind.dtype)
    width, signed = x.dtype.int_bitwidth, x.dtype.is_int_signed()
    # The nearest float of the largest integers may be the integer that follows them, which the type does not have.
    over = nearest >= 2.0 ** (width - signed)
    back = nearest.to(x.dtype)
    return directed(nearest, ~over & (x > back), over | (x < back), way)


def _narrow(x: Term, way: str) -> Term:
    nearest = x.to(tl.float32)
    back = nearest.to(tl.float64)
    return directed(nearest, x > back, x < back, way)


for _source, _float in _FLOATS.items():
    for _name, _type in _INTEGERS.items():
        for _way, _row in _WHOLE.items():
            define.define(f"{_source}2{_name}_{_way}", ((_float,),), _to_integer(_type, _row))  # type: ignore[arg-type]
        if _float == "fp64" and _type.int_bitwidth == 32:
            define.define(f"{_name}2double_rn", ((_type.name,),), lambda x: x.to(tl.float64))
            continue
        define.define(f"{_name}2{_source}_rn", ((_type.name,),), lambda x, kind=FORMATS[_float]: x.to(kind.dtype))
        for _way in _DIRECTED:
            define.define(
                f"{_name}2{_source}_{_way}", ((_type.name,),),
                lambda x, kind=FORMATS[_float], way=_way: _from_integer(x, kind, way),
            )
for _way in ("rd", "ru"):
    define.define(f"double2float_{_way}", (("fp64",),), lambda x, way=_way: _narrow(x, way))
