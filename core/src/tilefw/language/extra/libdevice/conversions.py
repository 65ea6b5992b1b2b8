"""`tl.extra.libdevice`: conversions between integers and floats in every direction of rounding."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def float2int_rn(x: Any) -> tensor:
    """float32 to int32, to nearest, ties to even."""
    ...


@library
def float2int_rd(x: Any) -> tensor:
    """float32 to int32, down."""
    ...


@library
def float2int_ru(x: Any) -> tensor:
    """float32 to int32, up."""
    ...


@library
def float2uint_rn(x: Any) -> tensor:
    """float32 to uint32, to nearest, ties to even."""
    ...


@library
def float2uint_rd(x: Any) -> tensor:
    """float32 to uint32, down."""
    ...


@library
def float2uint_ru(x: Any) -> tensor:
    """float32 to uint32, up."""
    ...


@library
def float2ll_rn(x: Any) -> tensor:
    """float32 to int64, to nearest, ties to even."""
    ...


@library
def float2ll_rd(x: Any) -> tensor:
    """float32 to int64, down."""
    ...


@library
def float2ll_ru(x: Any) -> tensor:
    """float32 to int64, up."""
    ...


@library
def float2ull_rn(x: Any) -> tensor:
    """float32 to uint64, to nearest, ties to even."""
    ...


@library
def float2ull_rd(x: Any) -> tensor:
    """float32 to uint64, down."""
    ...


@library
def float2ull_ru(x: Any) -> tensor:
    """float32 to uint64, up."""
    ...


@library
def double2int_rn(x: Any) -> tensor:
    """float64 to int32, to nearest, ties to even."""
    ...


@library
def double2int_rd(x: Any) -> tensor:
    """float64 to int32, down."""
    ...


@library
def double2int_ru(x: Any) -> tensor:
    """float64 to int32, up."""
    ...


@library
def double2uint_rn(x: Any) -> tensor:
    """float64 to uint32, to nearest, ties to even."""
    ...


@library
def double2uint_rd(x: Any) -> tensor:
    """float64 to uint32, down."""
    ...


@library
def double2uint_ru(x: Any) -> tensor:
    """float64 to uint32, up."""
    ...


@library
def double2ll_rn(x: Any) -> tensor:
    """float64 to int64, to nearest, ties to even."""
    ...


@library
def double2ll_rd(x: Any) -> tensor:
    """float64 to int64, down."""
    ...


@library
def double2ll_ru(x: Any) -> tensor:
    """float64 to int64, up."""
    ...


@library
def double2ull_rn(x: Any) -> tensor:
    """float64 to uint64, to nearest, ties to even."""
    ...


@library
def double2ull_rd(x: Any) -> tensor:
    """float64 to uint64, down."""
    ...


@library
def double2ull_ru(x: Any) -> tensor:
    """float64 to uint64, up."""
    ...


@library
def int2float_rn(x: Any) -> tensor:
    """int32 to float32, to nearest, ties to even."""
    ...


@library
def int2float_rd(x: Any) -> tensor:
    """int32 to float32, down."""
    ...


@library
def int2float_ru(x: Any) -> tensor:
    """int32 to float32, up."""
    ...


@library
def int2float_rz(x: Any) -> tensor:
    """int32 to float32, towards zero."""
    ...


@library
def uint2float_rn(x: Any) -> tensor:
    """uint32 to float32, to nearest, ties to even."""
    ...


@library
def uint2float_rd(x: Any) -> tensor:
    """uint32 to float32, down."""
    ...


@library
def uint2float_ru(x: Any) -> tensor:
    """uint32 to float32, up."""
    ...


@library
def uint2float_rz(x: Any) -> tensor:
    """uint32 to float32, towards zero."""
    ...


@library
def ll2float_rn(x: Any) -> tensor:
    """int64 to float32, to nearest, ties to even."""
    ...


@library
def ll2float_rd(x: Any) -> tensor:
    """int64 to float32, down."""
    ...


@library
def ll2float_ru(x: Any) -> tensor:
    """int64 to float32, up."""
    ...


@library
def ll2float_rz(x: Any) -> tensor:
    """int64 to float32, towards zero."""
    ...


@library
def ull2float_rn(x: Any) -> tensor:
    """uint64 to float32, to nearest, ties to even."""
    ...


@library
def ull2float_rd(x: Any) -> tensor:
    """uint64 to float32, down."""
    ...


@library
def ull2float_ru(x: Any) -> tensor:
    """uint64 to float32, up."""
    ...


@library
def ull2float_rz(x: Any) -> tensor:
    """uint64 to float32, towards zero."""
    ...


@library
def int2double_rn(x: Any) -> tensor:
    """int32 to float64, exactly."""
    ...


@library
def uint2double_rn(x: Any) -> tensor:
    """uint32 to float64, exactly."""
    ...


@library
def ll2double_rn(x: Any) -> tensor:
    """int64 to float64, to nearest, ties to even."""
    ...


@library
def ll2double_rd(x: Any) -> tensor:
    """int64 to float64, down."""
    ...


@library
def ll2double_ru(x: Any) -> tensor:
    """int64 to float64, up."""
    ...


@library
def ll2double_rz(x: Any) -> tensor:
    """int64 to float64, towards zero."""
    ...


@library
def ull2double_rn(x: Any) -> tensor:
    """uint64 to float64, to nearest, ties to even."""
    ...


@library
def ull2double_rd(x: Any) -> tensor:
    """uint64 to float64, down."""
    ...


@library
def ull2double_ru(x: Any) -> tensor:
    """uint64 to float64, up."""
    ...


@library
def ull2double_rz(x: Any) -> tensor:
    """uint64 to float64, towards zero."""
    ...


@library
def double2float_rd(x: Any) -> tensor:
    """float64 to float32, down."""
    ...


@library
def double2float_ru(x: Any) -> tensor:
    """float64 to float32, up."""
    ...
