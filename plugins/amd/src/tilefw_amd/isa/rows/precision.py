"""What MODE gives each float format, and the parts of formats that several chapters need: fields, NaNs, scaling, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilefw_amd.isa.row import Modifiers


@dataclass(frozen=True, slots=True)
class BinaryFormat:
    """An IEEE format by its bits (IEEE 754-2019, table 3.5); the properties are patterns."""

    bits: int
    mantissa: int
    bias: int

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def exponents(self) -> int:
        """The exponent of infinities and NaN, the largest."""
        return 2 * self.bias + 1

    @property
    def infinity(self) -> int:
        return self.exponents << self.mantissa

    @property
    def quiet(self) -> int:
        """The smallest quiet NaN."""
        return self.infinity | 1 << (self.mantissa - 1)

    @property
    def one(self) -> int:
        return self.power(0)

    def power(self, exponent: int) -> int:
        """2**exponent, as a normal number."""
        return (self.bias + exponent) << self.mantissa


SHAPES = {"f16": BinaryFormat(16, 10, 15), "f32": BinaryFormat(32, 23, 127), "f64": BinaryFormat(64, 52, 1023)}
FLOATS = tuple(SHAPES)


def rounding_of(m: Modifiers, fmt: str) -> str:
    """MODE.FP_ROUND has one field for f32, and one for f64 and f16 (CDNA3 ISA, "Mode register")."""
    return m.mode.round32 if fmt == "f32" else m.mode.round64


def flush_of(m: Modifiers, fmt: str) -> bool:
    """MODE.FP_DENORM has one field for f32, and one for f64 and f16 (CDNA3 ISA, "Mode register")."""
    return m.mode.flush32 if fmt == "f32" else m.mode.flush64


def unit_of(fmt: str) -> str:
    return "valu64" if fmt == "f64" else "valu"


def refuse(m: Modifiers, *names: str) -> None:
    """ValueError, which stops the launch at the instruction, for a modifier that assemblers take but no manual explains."""
    for name in names:
        value = getattr(m, name)
        if any(value) if isinstance(value, tuple) else value:
            raise ValueError(f"{name} on operands of 32 bits: its effect on the chip is not documented")


def exponent(lanes: Any, a: Any, fmt: str) -> Any:
    """The biased exponent, as 32 bits: 0 for zero and subnormals, the largest for infinities and NaN."""
    shape = SHAPES[fmt]
    field = lanes.and_(lanes.shr(a, lanes.const(shape.mantissa, 32), False), lanes.const(shape.exponents, shape.bits))
    if shape.bits == 32:
        return field
    return lanes.truncate(field, 32) if shape.bits == 64 else lanes.zero_extend(field, 32)


def is_signaling(lanes: Any, a: Any, fmt: str) -> Any:
    """Twice the pattern drops the sign; a signaling NaN then lies strictly between infinity and the smallest quiet NaN."""
    shape = SHAPES[fmt]
    first = 2 * shape.infinity + 1
    above = lanes.sub(lanes.add(a, a), lanes.const(first, shape.bits))
    return lanes.compare(above, lanes.const(2 * shape.quiet - first, shape.bits), "lt", False)


def is_nan(lanes: Any, a: Any, fmt: str) -> Any:
    return lanes.fclass(a, "notanumber", fmt)


def flushed(lanes: Any, a: Any, fmt: str, flush: bool) -> Any:
    """Subnormals to zero of their sign, if `flush`."""
    return lanes.fneg(lanes.fneg(a, fmt, True), fmt) if flush else a


def nudged(lanes: Any, a: Any, chance: Any, cut: int) -> Any:
    """The f32 `a` with the highest `cut` bits of `chance` added to its lowest: cut off there, it is rounded up by chance. (The
    manual's pseudocode rounds to nearest once more after the sum, and lets no carry out of the mantissa. That would not be
    stochastic rounding, which its text says it is.)"""
    moved = lanes.add(a, lanes.shr(chance, lanes.const(32 - cut, 32), False))
    return lanes.select(lanes.fclass(a, "finite", "f32"), moved, a)


def scaled(lanes: Any, a: Any, amount: Any, fmt: str, rounding: str, flush: bool) -> Any:
    """a * 2**amount, rounded once; `amount` is a signed number of 32 bits."""
    a = flushed(lanes, a, fmt, flush)
    if fmt == "f64":
        result = _scaled_f64(lanes, a, amount, rounding)
    else:
        # f64 holds any product with a power up to 2**±400 exactly, and further ones leave every narrower format the same way.
        near = _limited(lanes, amount, -400, 400)
        exact = lanes.fmul(lanes.fconvert(a, fmt, "f64"), _power_f64(lanes, near), "f64")
        result = lanes.fconvert(exact, "f64", fmt, rounding)
    return flushed(lanes, result, fmt, flush)


def _limited(lanes: Any, amount: Any, low: int, high: int) -> Any:
    return lanes.max(lanes.min(amount, lanes.const(high, 32), True), lanes.const(low, 32), True)


def _power_f64(lanes: Any, amount: Any) -> Any:
    """2**amount for -1022 <= amount <= 1023."""
    biased = lanes.zero_extend(lanes.add(amount, lanes.const(1023, 32)), 64)
    return lanes.shl(biased, lanes.const(52, 32))


def _scaled_f64(lanes: Any, a: Any, amount: Any, rounding: str) -> Any:
    """In three factors. Downwards the first two leave more than 53 places to go, so that only the last one can round to a
    subnormal that is not zero anyway."""
    rest, result = amount, a
    for _ in range(2):
        deep = lanes.compare(rest, lanes.const(-1022, 32), "lt", True)
        step = lanes.select(deep, lanes.const(53 - 1022, 32), lanes.min(rest, lanes.const(1023, 32), True))
        result = lanes.fmul(result, _power_f64(lanes, step), "f64", rounding)
        rest = lanes.sub(rest, step)
    return lanes.fmul(result, _power_f64(lanes, _limited(lanes, rest, -1022, 1023)), "f64", rounding)
