"""Calls of a vendor's device library: by the functions of `tl.extra.libdevice`, found by the symbol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tilefw.language as tl
from tilefw.frontend.builtins.library import meaning as library
from tilefw.frontend.builtins.registry import Meaning, Meanings
from tilefw.frontend.casts import cast
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.scanner import unescaped

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()

_SYMBOL = re.compile(r"__(?:nv|ocml)_(\w+?)(?:_f(?:32|64))?")
_ROUNDED = re.compile(r"(?:[fd](add|sub|mul|div|sqrt|rsqrt|rcp)|(fma)f)(_r[ndzu])")
# Names that follow no rule.
_NAMES = {
    "fabs": "abs", "fabsf": "abs", "llabs": "abs", "mul64hi": "mulhi", "fast_fdividef": "fast_dividef", "powi": "pow",
    "powif": "pow", "pown": "pow", "isfinite_f32": "finitef", "isfinite_f64": "isfinited", "i0": "cyl_bessel_i0",
    "i1": "cyl_bessel_i1",
}
_UNSIGNED = re.compile(r"u(mulhi|mul64hi|mul24|hadd|rhadd|sad)|(?:uint2|ull2)\w+|uint_as_float")
_SUFFIXES = ("f", "ll", "d")  # of float32, int64, float64


@meaning("tt.extern_elementwise")
def call(t: Translation, s: TextOperation) -> RuntimeValue:
    symbol = unescaped(s.attributes["symbol"][1:-1])
    function = function_of(symbol)
    if function is None:
        note = "its name is that of no function of tl.extra.libdevice"
        raise t.refusal(s, f"the library function {symbol} is not imported", note=note)
    operands = [_read(t, value, _is_unsigned(symbol)) for value in t.operands(s)]
    result, wanted = function(t.b, *operands), t.result_type(s)
    if result.dtype.is_bool() and not wanted.scalar.is_bool():
        result = cast(t.b, result, tl.int32)
    return RuntimeValue(result.ssa, wanted) if result.dtype.is_int() else result


def _read(t: Translation, value: RuntimeValue, unsigned: bool) -> RuntimeValue:
    """Integers have no sign in Triton IR; the symbol says which is meant."""
    if not unsigned or not value.dtype.is_int():
        return value
    return t.b.retyped(value, tl.uint64 if value.dtype.int_bitwidth == 64 else tl.uint32)


def _is_unsigned(symbol: str) -> bool:
    found = _SYMBOL.fullmatch(symbol)
    return found is not None and _UNSIGNED.fullmatch(found[1]) is not None


def function_of(symbol: str) -> Meaning | None:
    """The function of the language that a symbol of a device library is named for, if there is one."""
    found = _SYMBOL.fullmatch(symbol)
    if found is None:
        return None
    name = _NAMES.get(symbol.partition("_ocml_")[2], found[1])
    rounded = _ROUNDED.fullmatch(name)
    candidates = ["".join(filter(None, rounded.groups()))] if rounded is not None else [_NAMES.get(name, name)]
    if (unsigned := _UNSIGNED.fullmatch(name)) is not None and unsigned[1]:
        candidates = [_NAMES.get(unsigned[1], unsigned[1])]
    candidates += [name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)]
    return next((library.of[f"libdevice.{found}"] for found in candidates if f"libdevice.{found}" in library.of), None)
