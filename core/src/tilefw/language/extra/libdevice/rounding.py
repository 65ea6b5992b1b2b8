"""`tl.extra.libdevice`: arithmetic rounded in a direction."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import library
from tilefw.language.tensor import tensor


@library
def add_rn(x: Any, y: Any) -> tensor:
    """x + y rounded to nearest, ties to even, never merged with another operation; float32, float64."""
    ...


@library
def add_rd(x: Any, y: Any) -> tensor:
    """x + y rounded down; float32, float64."""
    ...


@library
def add_ru(x: Any, y: Any) -> tensor:
    """x + y rounded up; float32, float64."""
    ...


@library
def add_rz(x: Any, y: Any) -> tensor:
    """x + y rounded towards zero; float32, float64."""
    ...


@library
def sub_rn(x: Any, y: Any) -> tensor:
    """x - y rounded to nearest, ties to even, never merged with another operation; float32, float64."""
    ...


@library
def sub_rd(x: Any, y: Any) -> tensor:
    """x - y rounded down; float32, float64."""
    ...


@library
def sub_ru(x: Any, y: Any) -> tensor:
    """x - y rounded up; float32, float64."""
    ...


@library
def sub_rz(x: Any, y: Any) -> tensor:
    """x - y rounded towards zero; float32, float64."""
    ...


@library
def mul_rn(x: Any, y: Any) -> tensor:
    """x * y rounded to nearest, ties to even, never merged with another operation; float32, float64."""
    ...


@library
def mul_rd(x: Any, y: Any) -> tensor:
    """x * y rounded down; float32, float64."""
    ...


@library
def mul_ru(x: Any, y: Any) -> tensor:
    """x * y rounded up; float32, float64."""
    ...


@library
def mul_rz(x: Any, y: Any) -> tensor:
    """x * y rounded towards zero; float32, float64."""
    ...


@library
def div_rd(x: Any, y: Any) -> tensor:
    """x / y rounded down; float32, float64."""
    ...


@library
def div_ru(x: Any, y: Any) -> tensor:
    """x / y rounded up; float32, float64."""
    ...


@library
def div_rz(x: Any, y: Any) -> tensor:
    """x / y rounded towards zero; float32, float64."""
    ...


@library
def fma_rd(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z rounded down; float32, float64."""
    ...


@library
def fma_ru(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z rounded up; float32, float64."""
    ...


@library
def fma_rz(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z rounded towards zero; float32, float64."""
    ...


@library
def rcp_rn(x: Any) -> tensor:
    """1 / x rounded to nearest, ties to even; float32, float64."""
    ...


@library
def rcp_rd(x: Any) -> tensor:
    """1 / x rounded down; float32, float64."""
    ...


@library
def rcp_ru(x: Any) -> tensor:
    """1 / x rounded up; float32, float64."""
    ...


@library
def rcp_rz(x: Any) -> tensor:
    """1 / x rounded towards zero; float32, float64."""
    ...


@library
def sqrt_rd(x: Any) -> tensor:
    """Square root rounded down; float32, float64."""
    ...


@library
def sqrt_ru(x: Any) -> tensor:
    """Square root rounded up; float32, float64."""
    ...


@library
def sqrt_rz(x: Any) -> tensor:
    """Square root rounded towards zero; float32, float64."""
    ...
