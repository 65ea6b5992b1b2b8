"""`tl.extra.libdevice`: exponentials, logarithms, angles, roots and lengths that no row of the elementwise table is."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def exp10(x: Any) -> tensor:
    """10 to the power `x`; float32, float64."""
    ...


@library
def log10(x: Any) -> tensor:
    """Logarithm to base 10; float32, float64."""
    ...


@library
def fast_exp10f(x: Any) -> tensor:
    """exp10 of float32, no less accurate than `exp10` here."""
    ...


@library
def fast_log10f(x: Any) -> tensor:
    """log10 of float32, no less accurate than `log10` here."""
    ...


@library
def sinh(x: Any) -> tensor:
    """Hyperbolic sine; float32, float64."""
    ...


@library
def cosh(x: Any) -> tensor:
    """Hyperbolic cosine; float32, float64."""
    ...


@library
def asinh(x: Any) -> tensor:
    """Inverse hyperbolic sine; float32, float64."""
    ...


@library
def acosh(x: Any) -> tensor:
    """Inverse hyperbolic cosine; float32, float64."""
    ...


@library
def atanh(x: Any) -> tensor:
    """Inverse hyperbolic tangent; float32, float64."""
    ...


@library
def sinpi(x: Any) -> tensor:
    """sin(pi * x); float32, float64."""
    ...


@library
def cospi(x: Any) -> tensor:
    """cos(pi * x); float32, float64."""
    ...


@library
def tan(x: Any) -> tensor:
    """Tangent of `x` in radians, of every size; float32, float64."""
    ...


@library
def fast_tanf(x: Any) -> tensor:
    """tan of float32, no less accurate than `tan` here."""
    ...


@library
def asin(x: Any) -> tensor:
    """Inverse sine; float32, float64."""
    ...


@library
def acos(x: Any) -> tensor:
    """Inverse cosine; float32, float64."""
    ...


@library
def atan(x: Any) -> tensor:
    """Inverse tangent; float32, float64."""
    ...


@library
def atan2(x: Any, y: Any) -> tensor:
    """The angle of the point (y, x): `x` is its height, `y` its distance along the axis; float32, float64."""
    ...


@library
def cbrt(x: Any) -> tensor:
    """Cube root; float32, float64."""
    ...


@library
def rsqrt_rn(x: Any) -> tensor:
    """1 / sqrt(x), correctly rounded; float32."""
    ...


@library
def rcbrt(x: Any) -> tensor:
    """1 / cbrt(x); float32, float64."""
    ...


@library
def hypot(x: Any, y: Any) -> tensor:
    """sqrt(x² + y²) without overflow; float32, float64."""
    ...


@library
def rhypot(x: Any, y: Any) -> tensor:
    """1 / hypot(x, y); float32, float64."""
    ...


@library
def norm3d(x: Any, y: Any, z: Any) -> tensor:
    """The length of a vector of three; float32, float64."""
    ...


@library
def rnorm3d(x: Any, y: Any, z: Any) -> tensor:
    """1 / norm3d(x, y, z); float32, float64."""
    ...


@library
def norm4d(x: Any, y: Any, z: Any, w: Any) -> tensor:
    """The length of a vector of four; float32, float64."""
    ...


@library
def rnorm4d(x: Any, y: Any, z: Any, w: Any) -> tensor:
    """1 / norm4d(x, y, z, w); float32, float64."""
    ...
