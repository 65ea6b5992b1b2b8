"""`tl.extra.libdevice`: the functions that are one row of the elementwise table."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def exp(x: Any) -> tensor:
    """e to the power `x`; float32, float64."""
    ...


@library
def exp2(x: Any) -> tensor:
    """2 to the power `x`; float32, float64."""
    ...


@library
def log(x: Any) -> tensor:
    """Natural logarithm; float32, float64."""
    ...


@library
def log2(x: Any) -> tensor:
    """Logarithm to base 2; float32, float64."""
    ...


@library
def log1p(x: Any) -> tensor:
    """log(1 + x), accurate near zero; float32, float64."""
    ...


@library
def expm1(x: Any) -> tensor:
    """exp(x) - 1, accurate near zero; float32, float64."""
    ...


@library
def sin(x: Any) -> tensor:
    """Sine of `x` in radians; float32, float64."""
    ...


@library
def cos(x: Any) -> tensor:
    """Cosine of `x` in radians; float32, float64."""
    ...


@library
def tanh(x: Any) -> tensor:
    """Hyperbolic tangent; float32, float64."""
    ...


@library
def erf(x: Any) -> tensor:
    """The error function; float32, float64."""
    ...


@library
def sqrt(x: Any) -> tensor:
    """Square root; float32, float64."""
    ...


@library
def sqrt_rn(x: Any) -> tensor:
    """Square root rounded to nearest; float32, float64."""
    ...


@library
def rsqrt(x: Any) -> tensor:
    """1 / sqrt(x); float32, float64."""
    ...


@library
def floor(x: Any) -> tensor:
    """The greatest whole number not above `x`; float32, float64."""
    ...


@library
def ceil(x: Any) -> tensor:
    """The least whole number not below `x`; float32, float64."""
    ...


@library
def trunc(x: Any) -> tensor:
    """`x` without its fraction; float32, float64."""
    ...


@library
def rint(x: Any) -> tensor:
    """The nearest whole number, ties to even; float32, float64."""
    ...


@library
def nearbyint(x: Any) -> tensor:
    """The same as `rint`."""
    ...


@library
def isnan(x: Any) -> tensor:
    """Whether `x` is NaN, as int1; float32, float64."""
    ...


@library
def abs(x: Any) -> tensor:
    """|x|; int32, int64, float32, float64."""
    ...


@library
def clz(x: Any) -> tensor:
    """Leading zero bits, as int32; int32, int64."""
    ...


@library
def popc(x: Any) -> tensor:
    """Bits that are one, as int32; int32, int64."""
    ...


@library
def float2int_rz(x: Any) -> tensor:
    """float32 to int32, towards zero."""
    ...


@library
def float2uint_rz(x: Any) -> tensor:
    """float32 to uint32, towards zero."""
    ...


@library
def float2ll_rz(x: Any) -> tensor:
    """float32 to int64, towards zero."""
    ...


@library
def float2ull_rz(x: Any) -> tensor:
    """float32 to uint64, towards zero."""
    ...


@library
def double2int_rz(x: Any) -> tensor:
    """float64 to int32, towards zero."""
    ...


@library
def double2uint_rz(x: Any) -> tensor:
    """float64 to uint32, towards zero."""
    ...


@library
def double2ll_rz(x: Any) -> tensor:
    """float64 to int64, towards zero."""
    ...


@library
def double2ull_rz(x: Any) -> tensor:
    """float64 to uint64, towards zero."""
    ...


@library
def double2float_rn(x: Any) -> tensor:
    """float64 to float32, to nearest, ties to even."""
    ...


@library
def double2float_rz(x: Any) -> tensor:
    """float64 to float32, towards zero."""
    ...


@library
def int_as_float(x: Any) -> tensor:
    """The bits of an int32 as float32."""
    ...


@library
def float_as_int(x: Any) -> tensor:
    """The bits of a float32 as int32."""
    ...


@library
def uint_as_float(x: Any) -> tensor:
    """The bits of a uint32 as float32."""
    ...


@library
def float_as_uint(x: Any) -> tensor:
    """The bits of a float32 as uint32."""
    ...


@library
def longlong_as_double(x: Any) -> tensor:
    """The bits of an int64 as float64."""
    ...


@library
def double_as_longlong(x: Any) -> tensor:
    """The bits of a float64 as int64."""
    ...


@library
def fast_expf(x: Any) -> tensor:
    """exp of float32, no less accurate than `exp` here."""
    ...


@library
def fast_logf(x: Any) -> tensor:
    """log of float32, no less accurate than `log` here."""
    ...


@library
def fast_log2f(x: Any) -> tensor:
    """log2 of float32, no less accurate than `log2` here."""
    ...


@library
def fast_sinf(x: Any) -> tensor:
    """sin of float32, no less accurate than `sin` here."""
    ...


@library
def fast_cosf(x: Any) -> tensor:
    """cos of float32, no less accurate than `cos` here."""
    ...


@library
def fast_tanhf(x: Any) -> tensor:
    """tanh of float32, no less accurate than `tanh` here."""
    ...


@library
def pow(x: Any, y: Any) -> tensor:
    """`x` to the power `y`; float32, float64."""
    ...


@library
def fast_powf(x: Any, y: Any) -> tensor:
    """pow of float32, no less accurate than `pow` here."""
    ...


@library
def div_rn(x: Any, y: Any) -> tensor:
    """x / y rounded to nearest; float32, float64."""
    ...


@library
def fast_dividef(x: Any, y: Any) -> tensor:
    """x / y of float32."""
    ...


@library
def mulhi(x: Any, y: Any) -> tensor:
    """The upper half of the double-width product; int32, uint32, int64, uint64."""
    ...


@library
def fma(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z with a single rounding; float32, float64."""
    ...


@library
def fma_rn(x: Any, y: Any, z: Any) -> tensor:
    """The same as `fma`."""
    ...
