"""The functions of `tl.extra.libdevice`: those that are one row, in a table of signatures, and the compositions of `libdevice/`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import together
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import bitcast, cast, to_value
from tilefw.frontend.libdevice import FUNCTIONS
from tilefw.frontend.values import RuntimeValue

meaning = Meanings()

_F32, _F64 = ("fp32",), ("fp64",)
_FLOATS = _F32 + _F64

# Function: its row, and the element types that it takes (all operands have the same).
_ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (name, _FLOATS) for name in (
        "exp", "exp2", "log", "log2", "log1p", "expm1", "sin", "cos", "tanh", "erf", "sqrt", "sqrt_rn", "rsqrt", "floor",
        "ceil", "trunc", "div_rn", "fma",
    )},
    "rint": ("round_even", _FLOATS), "nearbyint": ("round_even", _FLOATS), "fma_rn": ("fma", _FLOATS),
    "fast_expf": ("exp", _F32), "fast_logf": ("log", _F32), "fast_log2f": ("log2", _F32), "fast_sinf": ("sin", _F32),
    "fast_cosf": ("cos", _F32), "fast_tanhf": ("tanh", _F32), "fast_powf": ("pow", _F32), "fast_dividef": ("divf", _F32),
}

# Function: (source, target) of a conversion towards zero or to nearest; "bits" keeps the bits.
_CONVERSIONS: dict[str, tuple[tl.dtype, tl.dtype, str | None]] = {
    "float2int_rz": (tl.float32, tl.int32, None), "float2uint_rz": (tl.float32, tl.uint32, None),
    "float2ll_rz": (tl.float32, tl.int64, None), "float2ull_rz": (tl.float32, tl.uint64, None),
    "double2int_rz": (tl.float64, tl.int32, None), "double2uint_rz": (tl.float64, tl.uint32, None),
    "double2ll_rz": (tl.float64, tl.int64, None), "double2ull_rz": (tl.float64, tl.uint64, None),
    "double2float_rn": (tl.float64, tl.float32, "rtne"), "double2float_rz": (tl.float64, tl.float32, "rtz"),
    "int_as_float": (tl.int32, tl.float32, "bits"), "float_as_int": (tl.float32, tl.int32, "bits"),
    "uint_as_float": (tl.uint32, tl.float32, "bits"), "float_as_uint": (tl.float32, tl.uint32, "bits"),
    "longlong_as_double": (tl.int64, tl.float64, "bits"), "double_as_longlong": (tl.float64, tl.int64, "bits"),
}


def _operands(b: Builder, function: str, allowed: tuple[str, ...], *arguments: Any) -> list[RuntimeValue]:
    """Operands of one allowed type, broadcast to one shape."""
    values = [to_value(b, argument) for argument in arguments]
    for value in values:
        if value.dtype.name not in allowed or value.dtype != values[0].dtype:
            raise CompileError(
                f"libdevice.{function} takes {' or '.join(allowed)}, not {', '.join(str(v.dtype) for v in values)}",
                "TFW0209",
                note="functions of libdevice promote nothing",
                help="cast first, e.g. `x.to(tl.float32)`",
            )
    return together(b, values)


def _row_function(function: str, row: str, allowed: tuple[str, ...]) -> Callable[..., RuntimeValue]:
    return lambda b, *arguments: b.row(row, *_operands(b, function, allowed, *arguments))


def _conversion(function: str, source: tl.dtype, target: tl.dtype, way: str | None) -> Callable[..., RuntimeValue]:
    def convert(b: Builder, x: Any) -> RuntimeValue:
        (value,) = _operands(b, function, (source.name,), x)
        return bitcast(b, value, target) if way == "bits" else cast(b, value, target, way)

    return convert


for _name, (_row, _allowed) in _ROWS.items():
    meaning(f"libdevice.{_name}")(_row_function(_name, _row, _allowed))
for _name, _conversion_of in _CONVERSIONS.items():
    meaning(f"libdevice.{_name}")(_conversion(_name, *_conversion_of))


@meaning("libdevice.isnan")
def isnan(b: Builder, x: Any) -> RuntimeValue:
    (value,) = _operands(b, "isnan", _FLOATS, x)
    return b.row("isnan", value, type=value.type.with_element_ty(tl.int1))


@meaning("libdevice.abs")
def absolute(b: Builder, x: Any) -> RuntimeValue:
    (value,) = _operands(b, "abs", ("int32", "int64", *_FLOATS), x)
    return b.row("absf" if value.dtype.is_floating() else "absi", value)


@meaning("libdevice.pow")
def power(b: Builder, x: Any, y: Any) -> RuntimeValue:
    base, exponent = to_value(b, x), to_value(b, y)
    if exponent.dtype.is_int32() and base.dtype.is_floating():
        exponent = cast(b, exponent, base.dtype)
    return b.row("pow", *_operands(b, "pow", _FLOATS, base, exponent))


@meaning("libdevice.mulhi")
def mulhi(b: Builder, x: Any, y: Any) -> RuntimeValue:
    left, right = _operands(b, "mulhi", ("int32", "uint32", "int64", "uint64"), x, y)
    return b.row("mulhs" if left.dtype.is_int_signed() else "mulhu", left, right)


def _bit_count(name: str) -> None:
    @meaning(f"libdevice.{name}")
    def count(b: Builder, x: Any) -> RuntimeValue:
        (value,) = _operands(b, name, ("int32", "int64"), x)
        return cast(b, b.row(name, value), tl.int32)


_bit_count("clz")
_bit_count("popc")
meaning.of.update(FUNCTIONS)
