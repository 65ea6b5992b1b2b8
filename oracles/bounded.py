"""Running error analysis: float64 values that carry a bound on how far a right single-precision kernel may stray.

Each operation adds the rounding that a kernel may do (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
chapters 2-4) to the errors that its operands bring. Contraction to fma and any order of a sum stay within the bounds.
The errors of approximate instructions are the documented ones (PTX ISA: ex2, lg2, sin, cos, div.full, sqrt, rsqrt;
CUDA C++ Programming Guide, "Mathematical Functions", for libdevice).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

F32 = 2.0**-24  # unit roundoff, half an ulp of 1
TINY = 2.0**-126  # a subnormal result may be flushed
# Unit roundoff, least normal and largest finite number of the formats a kernel stores to.
FORMATS = {
    np.dtype(t): (float(ml_dtypes.finfo(t).eps) / 2, float(ml_dtypes.finfo(t).smallest_subnormal), float(ml_dtypes.finfo(t).max))
    for t in (
        np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2fnuz,
    )
}


@dataclass(frozen=True)
class Bounded:
    """Arrays of one shape: the exact result in float64, and a bound on the absolute error of the kernel's."""

    value: np.ndarray
    error: np.ndarray

    @property
    def magnitude(self) -> np.ndarray:
        return np.abs(self.value) + self.error

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error)

    def __add__(self, other: Bounded | float) -> Bounded:
        other = lift(other)
        return rounded(self.value + other.value, self.error + other.error)

    __radd__ = __add__

    def __sub__(self, other: Bounded | float) -> Bounded:
        return self + -lift(other)

    def __rsub__(self, other: float) -> Bounded:
        return -self + other

    def __mul__(self, other: Bounded | float) -> Bounded:
        other = lift(other)
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error + self.error * other.error
        return rounded(self.value * other.value, error)

    __rmul__ = __mul__

    def __truediv__(self, other: Bounded | float) -> Bounded:
        """`div.full.f32`: 2 ulp (PTX ISA, div); a division rounded to nearest is within that."""
        other = lift(other)
        value = self.value / other.value
        room = np.abs(other.value) - other.error
        if np.any(room <= 0):
            raise ValueError("the divisor's bound reaches zero: the case is badly conditioned")
        return rounded(value, (self.error + np.abs(value) * other.error) / room, roundings=4)

    def __rtruediv__(self, other: float) -> Bounded:
        return lift(other) / self

    def __getitem__(self, index: object) -> Bounded:
        return Bounded(self.value[index], self.error[index])

    def sum(self, axis: int, keepdims: bool = False) -> Bounded:
        """A sum in any order: n - 1 roundings of at most the sum of magnitudes."""
        size = self.magnitude.sum(axis=axis, keepdims=keepdims)
        error = self.error.sum(axis=axis, keepdims=keepdims) + self.value.shape[axis] * F32 * 1.01 * size
        return Bounded(self.value.sum(axis=axis, keepdims=keepdims), error)

    def max(self, axis: int, keepdims: bool = False) -> Bounded:
        return Bounded(self.value.max(axis=axis, keepdims=keepdims), self.error.max(axis=axis, keepdims=keepdims))


def lift(x: Bounded | np.ndarray | float) -> Bounded:
    """An exact operand. A Python number is one that the kernel rounds to single precision."""
    if isinstance(x, Bounded):
        return x
    if isinstance(x, (int, float)):
        return Bounded(np.float64(x), np.float64(abs(x) * F32))
    value = np.asarray(x).astype(np.float64)
    return Bounded(value, np.zeros_like(value))


def rounded(value: np.ndarray, error: np.ndarray, roundings: int = 1) -> Bounded:
    """A result with `roundings` half-ulp roundings in single precision on top of the errors that were brought."""
    return Bounded(value, error + roundings * F32 * (np.abs(value) + error) + TINY)


def monotone(function: Callable[[np.ndarray], np.ndarray], x: Bounded, ulps: float) -> Bounded:
    """A monotone function: the spread over the argument's interval, plus `ulps` ulp of the function's own."""
    value = function(x.value)
    with np.errstate(over="ignore"):
        spread = np.maximum(np.abs(function(x.value + x.error) - value), np.abs(function(x.value - x.error) - value))
    return rounded(value, spread, roundings=int(np.ceil(2 * ulps)))


def exp(x: Bounded) -> Bounded:
    """exp(x) as ex2.approx(x * log2 e): the product's rounding grows with |x|, ex2 has 2^-22 relative (PTX ISA, ex2)."""
    scaled = Bounded(x.value, x.error + 2 * F32 * x.magnitude)
    return monotone(np.exp, scaled, ulps=4)


def exp2(x: Bounded) -> Bounded:
    return monotone(np.exp2, x, ulps=4)


def log(x: Bounded) -> Bounded:
    """lg2.approx is absolutely accurate to 2^-22 near 1 (PTX ISA, lg2); times ln 2."""
    result = monotone(np.log, x, ulps=3)
    return Bounded(result.value, result.error + 2.0**-22)


def lipschitz(function: Callable[[np.ndarray], np.ndarray], x: Bounded, ulps: float, slope: float = 1.0) -> Bounded:
    """A function whose slope is bounded by `slope`: sin, cos, tanh, erf."""
    return rounded(function(x.value), slope * x.error, roundings=int(np.ceil(2 * ulps)))


def sqrt(x: Bounded) -> Bounded:
    """sqrt.approx: 2^-23 relative, and rsqrt's 2^-22.9 (PTX ISA); both below 2 ulp."""
    return monotone(np.sqrt, x, ulps=2)


def dot(a: np.ndarray, b: np.ndarray, initial: Bounded | None = None) -> Bounded:
    """A B summed in float32 in any order, each addition truncated at worst (2 F32), exact products."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    value, size = a @ b, np.abs(a) @ np.abs(b)
    error = (a.shape[-1] + 1) * 2 * F32 * 1.01 * size
    return Bounded(value, error) if initial is None else rounded(value + initial.value, error + initial.error)


def stored(x: Bounded, dtype: object) -> Bounded:
    """The value rounded to the element type it is stored in."""
    unit, step, _ = FORMATS[np.dtype(dtype)]
    return Bounded(x.value, x.error + unit * x.magnitude + step)


def select(condition: np.ndarray, x: Bounded, y: Bounded) -> Bounded:
    return Bounded(np.where(condition, x.value, y.value), np.where(condition, x.error, y.error))
