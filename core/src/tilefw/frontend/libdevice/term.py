"""Run-time values with Python's operators, in which the functions of libdevice are written.

A product is never merged with a sum that follows: it is made by `fma` with -0, so algorithms that compute rounding errors
see the operations that they name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import tilefw.language as tl
from tilefw.frontend.arithmetic import COMPARISONS
from tilefw.frontend.builder import Builder
from tilefw.frontend.casts import bitcast, cast, constant
from tilefw.frontend.values import RuntimeValue

Number: TypeAlias = "Term | int | float"


@dataclass(frozen=True, slots=True)
class Format:
    """A float type as algorithms see it."""

    dtype: tl.dtype
    bits: tl.dtype  # the signed integer of the same width
    width: int
    fraction: int  # stored bits of the significand
    bias: int

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        """The bits of infinity, which are also the mask of the exponent."""
        return (2 * self.bias + 1) << self.fraction

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return (2.0 - 2.0**-self.fraction) * 2.0**self.bias

    @property
    def smallest_normal(self) -> float:
        """The smallest normal value."""
        return 2.0 ** (1 - self.bias)


FORMATS = {"fp32": Format(tl.float32, tl.int32, 32, 23, 127), "fp64": Format(tl.float64, tl.int64, 64, 52, 1023)}


class Term:
    """A run-time value and the builder that appends to it. A Python number takes the type of the other operand."""

    __slots__ = ("b", "value")

    def __init__(self, b: Builder, value: RuntimeValue) -> None:
        self.b = b
        self.value = value

    @property
    def dtype(self) -> tl.dtype:
        return self.value.dtype

    @property
    def format(self) -> Format:
        """The float format of the term."""
        return FORMATS[self.dtype.name]

    def constant(self, number: int | float) -> Term:
        """A number in the term's type and shape; integers wrap to the width."""
        if self.dtype.is_int():
            number = int(number) & ((1 << self.dtype.int_bitwidth) - 1)
            if self.dtype.is_int_signed() and number >> (self.dtype.int_bitwidth - 1):
                number -= 1 << self.dtype.int_bitwidth
        return Term(self.b, constant(self.b, number, self.dtype, self.value.shape))

    def row(self, name: str, *others: Number) -> Term:
        """A row of the elementwise table whose result has the term's type."""
        return Term(self.b, self.b.row(name, self.value, *(self._same(other).value for other in others)))

    def _same(self, other: Number) -> Term:
        return other if isinstance(other, Term) else self.constant(other)

    def _compare(self, operator: str, other: Number) -> Term:
        return Term(self.b, self.b.compare(COMPARISONS[operator](self.dtype), self.value, self._same(other).value))

    def _is_float(self) -> bool:
        return self.dtype.is_floating()

    def __add__(self, other: Number) -> Term:
        return self.row("addf" if self._is_float() else "addi", other)

    def __sub__(self, other: Number) -> Term:
        return self.row("subf" if self._is_float() else "subi", other)

    def __mul__(self, other: Number) -> Term:
        return self.row("fma", other, -0.0) if self._is_float() else self.row("muli", other)

    def __radd__(self, other: int | float) -> Term:
        return self._same(other) + self

    def __rsub__(self, other: int | float) -> Term:
        return self._same(other) - self

    def __rmul__(self, other: int | float) -> Term:
        return self * other

    def __truediv__(self, other: Number) -> Term:
        return self.row("div_rn", other)

    def __rtruediv__(self, other: int | float) -> Term:
        return self._same(other) / self

    def __neg__(self) -> Term:
        return self.row("negf") if self._is_float() else self._same(0) - self

    def __abs__(self) -> Term:
        return self.row("absf" if self._is_float() else "absi")

    def __and__(self, other: Number) -> Term:
        return self.row("andi", other)

    def __or__(self, other: Number) -> Term:
        return self.row("ori", other)

    def __xor__(self, other: Number) -> Term:
        return self.row("xori", other)

    def __invert__(self) -> Term:
        return self.row("xori", 1 if self.dtype.is_bool() else -1)

    def __lshift__(self, other: Number) -> Term:
        return self.row("shl", other)

    def __rshift__(self, other: Number) -> Term:
        return self.row("shrs" if self.dtype.is_int_signed() else "shru", other)

    def __lt__(self, other: Number) -> Term:
        return self._compare("<", other)

    def __le__(self, other: Number) -> Term:
        return self._compare("<=", other)

    def __gt__(self, other: Number) -> Term:
        return self._compare(">", other)

    def __ge__(self, other: Number) -> Term:
        return self._compare(">=", other)

    def equals(self, other: Number) -> Term:
        """Whether both are equal, as int1; false with a NaN."""
        return self._compare("==", other)

    def is_nan(self) -> Term:
        """Whether a float is NaN, as int1."""
        return Term(self.b, self.b.row("isnan", self.value, type=self.value.type.with_element_ty(tl.int1)))

    def where(self, then: Number, otherwise: Number) -> Term:
        """`then` where this int1 holds, else `otherwise`; one of them is a term."""
        known = then if isinstance(then, Term) else otherwise
        assert isinstance(known, Term)
        first, second = known._same(then), known._same(otherwise)
        return Term(self.b, self.b.row("select", self.value, first.value, second.value))

    def fma(self, factor: Number, addend: Number) -> Term:
        """self * factor + addend, rounded once."""
        return self.row("fma", factor, addend)

    def to(self, dtype: tl.dtype, rounding: str | None = None) -> Term:
        """The value converted, as `tensor.to` does."""
        return Term(self.b, cast(self.b, self.value, dtype, rounding))

    def as_type(self, dtype: tl.dtype) -> Term:
        """The same bits as another type."""
        return Term(self.b, bitcast(self.b, self.value, dtype))

    def bits(self) -> Term:
        """The bits of a float, as the signed integer of its width."""
        return self.as_type(self.format.bits)


def with_sign_of(magnitude: Term, sign: Term) -> Term:
    """|magnitude| with the sign bit of `sign`, that of zeros and NaN too."""
    kind = sign.format
    bits = (magnitude.bits() & ~kind.sign) | (sign.bits() & kind.sign)
    return bits.as_type(kind.dtype)


def power_of_two(exponent: Term, kind: Format) -> Term:
    """2 to an integer power of the width of `kind`, whose result is normal in it."""
    return ((exponent + kind.bias) << kind.fraction).as_type(kind.dtype)


def scaled(x: Term, exponent: Term) -> Term:
    """x * 2**exponent, rounded once; the int32 `exponent` may have any value.

    A factor below the normal range is applied in steps, each of which leaves enough bits above it that only the last rounds.
    """
    kind = x.format
    down, up = 1 - kind.bias + kind.fraction + 1, kind.bias
    for _ in range(2):
        far, small = exponent > up, exponent < 1 - kind.bias
        x = far.where(x * 2.0**up, small.where(x * 2.0**down, x))
        exponent = far.where(exponent - up, small.where(exponent - down, exponent))
    exponent = (exponent > up).where(up, exponent)
    exponent = (exponent < 1 - kind.bias).where(1 - kind.bias, exponent)
    return x * power_of_two(exponent.to(kind.bits), kind)


def fraction_and_exponent(x: Term) -> tuple[Term, Term]:
    """A finite x other than zero as m * 2**e: m with 1 <= |m| < 2, and e as an int32."""
    kind = x.format
    small = abs(x) < kind.smallest_normal
    bits = small.where(x * 2.0 ** (kind.fraction + 1), x).bits()
    exponent = ((bits & kind.infinity) >> kind.fraction) - kind.bias
    exponent = small.where(exponent - (kind.fraction + 1), exponent)
    fraction = (bits & ~kind.infinity) | (kind.bias << kind.fraction)
    return fraction.as_type(kind.dtype), exponent.to(tl.int32)
