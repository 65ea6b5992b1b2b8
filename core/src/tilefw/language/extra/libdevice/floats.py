"""`tl.extra.libdevice`: classes, signs, neighbours, exponents and remainders of floats, all exact."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def isinf(x: Any) -> tensor:
    """Whether `x` is infinite, as int1; float32, float64."""
    ...


@library
def finitef(x: Any) -> tensor:
    """Whether `x` is neither infinite nor NaN, as int1; float32."""
    ...


@library
def isfinited(x: Any) -> tensor:
    """Whether `x` is neither infinite nor NaN, as int1; float64."""
    ...


@library
def signbit(x: Any) -> tensor:
    """1 where the sign bit is set, else 0, as int32; float32, float64."""
    ...


@library
def copysign(x: Any, y: Any) -> tensor:
    """|x| with the sign of `y`; float32, float64."""
    ...


@library
def saturatef(x: Any) -> tensor:
    """`x` clamped to [0, 1]; 0 for NaN. float32."""
    ...


@library
def fdim(x: Any, y: Any) -> tensor:
    """x - y where it is positive, else 0; float32, float64."""
    ...


@library
def nextafter(x: Any, y: Any) -> tensor:
    """The neighbour of `x` in the direction of `y`; float32, float64."""
    ...


@library
def fmod(x: Any, y: Any) -> tensor:
    """x - n * y with n = trunc(x / y), exactly; float32, float64."""
    ...


@library
def remainder(x: Any, y: Any) -> tensor:
    """x - n * y with n the whole number nearest to x / y, ties to even, exactly; float32, float64."""
    ...


@library
def ldexp(x: Any, y: Any) -> tensor:
    """x * 2**y, rounded once; `x` float32 or float64, `y` int32."""
    ...


@library
def scalbn(x: Any, y: Any) -> tensor:
    """The same as `ldexp`."""
    ...


@library
def logb(x: Any) -> tensor:
    """The exponent of `x` as a float; float32, float64."""
    ...


@library
def ilogb(x: Any) -> tensor:
    """The exponent of `x` as int32; -2**31 for zeros and NaN, 2**31 - 1 for infinities. float32, float64."""
    ...


@library
def round(x: Any) -> tensor:
    """The nearest whole number, ties away from zero; float32, float64."""
    ...


@library
def llround(x: Any) -> tensor:
    """`round` as int64; float32, float64."""
    ...


@library
def llrint(x: Any) -> tensor:
    """`rint` as int64; float32, float64."""
    ...


@library
def double2hiint(x: Any) -> tensor:
    """The upper 32 bits of a float64, as int32."""
    ...


@library
def double2loint(x: Any) -> tensor:
    """The lower 32 bits of a float64, as int32."""
    ...


@library
def hiloint2double(x: Any, y: Any) -> tensor:
    """The float64 with the upper bits `x` and the lower bits `y`; int32."""
    ...


@library
def rcp64h(x: Any) -> tensor:
    """1 / x from the upper 32 bits of a float64 to the upper 32 bits of the result."""
    ...
