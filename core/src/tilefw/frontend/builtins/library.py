"""The functions of `tl.extra.libdevice`: those that are one row, in a table of signatures, and the compositions of `libdevice/`."""

from __future__ import annotations

import inspect

import tilefw.language as tl
from tilefw.frontend.libdevice import FUNCTIONS
from tilefw.frontend.libdevice.signatures import Compute, Functions, floats, of_one_type
from tilefw.frontend.libdevice.term import Term
from tilefw.language.extra import libdevice

define = Functions()

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

_ANY_FLOAT, _INTEGERS = floats(1), of_one_type(1, "int32", "int64")
_WITH_POWER = (*floats(2), ("fp32", "int32"), ("fp64", "int32"))


def _row(row: str) -> Compute:
    return lambda first, *others: first.row(row, *others)


def _conversion(target: tl.dtype, way: str | None) -> Compute:
    return lambda x: x.as_type(target) if way == "bits" else x.to(target, way)


def _arity(function: str) -> int:
    return len(inspect.signature(getattr(libdevice, function)).parameters)


for _name, (_row_name, _allowed) in _ROWS.items():
    define.define(_name, of_one_type(_arity(_name), *_allowed), _row(_row_name))
for _name, (_source, _target, _way) in _CONVERSIONS.items():
    define.define(_name, of_one_type(1, _source.name), _conversion(_target, _way))
define.define("isnan", _ANY_FLOAT, Term.is_nan)
define.define("abs", (*_INTEGERS, *_ANY_FLOAT), Term.__abs__)
define.define("pow", _WITH_POWER, lambda x, y: x.row("pow", y.to(x.dtype)))
define.define(
    "mulhi", of_one_type(2, "int32", "uint32", "int64", "uint64"),
    lambda x, y: x.row("mulhs" if x.dtype.is_int_signed() else "mulhu", y),
)
for _name in ("clz", "popc"):
    define.define(_name, _INTEGERS, lambda x, row=_name: x.row(row).to(tl.int32))
meaning = define.meaning
meaning.of.update(FUNCTIONS)
