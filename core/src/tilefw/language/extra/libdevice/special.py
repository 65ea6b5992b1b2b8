"""`tl.extra.libdevice`: special functions, computed in float64."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def j0(x: Any) -> tensor:
    """Bessel function of the first kind of order 0; float32, float64."""
    ...


@library
def j1(x: Any) -> tensor:
    """Bessel function of the first kind of order 1; float32, float64."""
    ...


@library
def y0(x: Any) -> tensor:
    """Bessel function of the second kind of order 0; float32, float64."""
    ...


@library
def y1(x: Any) -> tensor:
    """Bessel function of the second kind of order 1; float32, float64."""
    ...


@library
def cyl_bessel_i0(x: Any) -> tensor:
    """Modified Bessel function of the first kind of order 0; float32, float64."""
    ...


@library
def cyl_bessel_i1(x: Any) -> tensor:
    """Modified Bessel function of the first kind of order 1; float32, float64."""
    ...


@library
def erfc(x: Any) -> tensor:
    """1 - erf(x), accurate where that is small; float32, float64."""
    ...


@library
def erfcx(x: Any) -> tensor:
    """exp(x * x) * erfc(x); float32, float64."""
    ...


@library
def normcdf(x: Any) -> tensor:
    """The normal distribution's probability of values up to x; float32, float64."""
    ...


@library
def erfinv(x: Any) -> tensor:
    """The y with erf(y) = x: infinite at 1 and -1, NaN beyond; float32, float64."""
    ...


@library
def erfcinv(x: Any) -> tensor:
    """The y with erfc(y) = x: infinite at 0 and 2, NaN beyond; float32, float64."""
    ...


@library
def normcdfinv(x: Any) -> tensor:
    """The y with normcdf(y) = x: infinite at 0 and 1, NaN beyond; float32, float64."""
    ...


@library
def tgamma(x: Any) -> tensor:
    """The gamma function: infinite at zeros, NaN at negative whole numbers; float32, float64."""
    ...


@library
def lgamma(x: Any) -> tensor:
    """The logarithm of the size of the gamma function: infinite at zero and at negative whole numbers; float32, float64."""
    ...


@library
def jn(n: Any, x: Any) -> tensor:
    """Bessel function of the first kind of a whole order, int32; NaN for negative orders; float32, float64."""
    ...


@library
def yn(n: Any, x: Any) -> tensor:
    """Bessel function of the second kind of a whole order, int32; NaN for negative orders; float32, float64."""
    ...
