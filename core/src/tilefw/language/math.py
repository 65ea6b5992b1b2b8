"""Elementwise functions. Each works on tiles and on scalars; tiles broadcast; names are those of `tl` and `tl.math`."""

from __future__ import annotations

import enum
from typing import Any

from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor


class PropagateNan(enum.Enum):
    """What `minimum`, `maximum` and `clamp` give when an operand is NaN: with NONE the number, with ALL the NaN."""

    NONE = 0
    ALL = 0xFFFF


@builtin
def abs(x: Any) -> tensor:
    """|x| for any integer or float type; the smallest signed integer stays as it is."""
    ...


@builtin
def ceil(x: Any) -> tensor:
    """The least whole number not below `x`; float32, float64."""
    ...


@builtin
def floor(x: Any) -> tensor:
    """The greatest whole number not above `x`; float32, float64."""
    ...


@builtin
def cos(x: Any) -> tensor:
    """Cosine of `x` in radians; float32, float64."""
    ...


@builtin
def sin(x: Any) -> tensor:
    """Sine of `x` in radians; float32, float64."""
    ...


@builtin
def exp(x: Any) -> tensor:
    """e to the power `x`; float32, float64."""
    ...


@builtin
def exp2(x: Any) -> tensor:
    """2 to the power `x`; float32, float64."""
    ...


@builtin
def log(x: Any) -> tensor:
    """Natural logarithm; float32, float64."""
    ...


@builtin
def log2(x: Any) -> tensor:
    """Logarithm to base 2; float32, float64."""
    ...


@builtin
def sqrt(x: Any) -> tensor:
    """Square root, fast where the target has a fast form; float32, float64."""
    ...


@builtin
def sqrt_rn(x: Any) -> tensor:
    """Square root, rounded to nearest as IEEE 754 demands; float32."""
    ...


@builtin
def rsqrt(x: Any) -> tensor:
    """1 / sqrt(x); float32, float64."""
    ...


@builtin
def erf(x: Any) -> tensor:
    """The error function; float32, float64."""
    ...


@builtin
def sigmoid(x: Any) -> tensor:
    """1 / (1 + exp(-x)); float32, float64."""
    ...


@builtin
def fma(x: Any, y: Any, z: Any) -> tensor:
    """x * y + z with a single rounding; any float type with arithmetic."""
    ...


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    """x / y on floats (fp16 and bf16 in float32); `ieee_rounding=True` rounds to nearest as IEEE 754 demands.

    `approx=True` permits a less accurate division of float32; tilefw does not use the permission.
    """
    ...


@builtin
def div_rn(x: Any, y: Any) -> tensor:
    """x / y rounded to nearest as IEEE 754 demands; float32."""
    ...


@builtin
def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the double-width unsigned product; 32- and 64-bit integers."""
    ...


@builtin
def cdiv(x: Any, div: Any) -> Any:
    """(x + (div - 1)) // div: the quotient rounded up for positive integers; folds when both are known at compile time."""
    ...


@builtin
def add(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x + y. `sanitize_overflow` concerns Triton's overflow sanitizer, which tilefw does not have."""
    ...


@builtin
def sub(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x - y; see `add`."""
    ...


@builtin
def mul(x: Any, y: Any, sanitize_overflow: bool = True) -> tensor:
    """x * y; see `add`."""
    ...


@builtin
def minimum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The smaller of `x` and `y`; of a number and a NaN the number, or the NaN with PropagateNan.ALL."""
    ...


@builtin
def maximum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The larger of `x` and `y`; NaN as in `minimum`."""
    ...


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """`x` brought into [min, max]; a NaN in `x` gives `min`, or NaN with PropagateNan.ALL. Undefined when min > max."""
    ...


@builtin
def where(condition: Any, x: Any, y: Any) -> tensor:
    """`x` where `condition` is true, else `y`; both are evaluated. `x` and `y` promote as in arithmetic, all three broadcast."""
    ...


@builtin
def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """(i, j) of a row-major size_i x size_j matrix, renumbered column-major within each group of `size_g` rows."""
    ...
