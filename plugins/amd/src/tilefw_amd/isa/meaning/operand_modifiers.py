"""Modifiers of operands: neg, abs and op_sel of sources, clamp, omod and op_sel of results (CDNA3 ISA, section "VOP3A", "VOP3P").

Each function makes an adapter that the binding puts before or behind a meaning, or None where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw_amd.isa.row import Mode
from tilefw_amd.isa.types import Type

Adapter = Callable[[Any, Any], Any]

# OMOD's codes as powers of two (CDNA3 ISA 6.2.2, "Instruction outputs").
OMOD = {1: 1, 2: 2, 3: -1}
# The pattern of 1.0 and the place of the exponent by format.
_ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "tf32": 0x3F800000, "f64": 0x3FF0000000000000}
_SIGN_BIT = {"f16": 15, "bf16": 15, "f32": 31, "tf32": 31, "f64": 63}


def source(kind: Type, neg: int, abs_: int) -> Adapter | None:
    """Absolute value first, then the sign flipped; both are bits alone, so that NaN and subnormals pass unchanged."""
    if not neg and not abs_:
        return None
    fmt = kind.format
    if not fmt:
        return None  # the bits stand in the encoding, and integer instructions do not look at them
    fmt = "f32" if fmt == "tf32" else fmt
    if neg and abs_:
        return lambda lanes, a: lanes.fneg(lanes.fabs(a, fmt), fmt)
    if neg:
        return lambda lanes, a: lanes.fneg(a, fmt)
    return lambda lanes, a: lanes.fabs(a, fmt)


def low_half(lanes: Any, a: Any) -> Any:
    return lanes.truncate(a, 16)


def high_half(lanes: Any, a: Any) -> Any:
    return lanes.truncate(lanes.shr(a, lanes.const(16, 32), False), 16)


def low_byte(lanes: Any, a: Any) -> Any:
    return lanes.truncate(a, 8)


def half(high: int) -> Adapter:
    """One half of a register of 32 bits, as op_sel says."""
    return high_half if high else low_half


def result(kind: Type, clamp: int, omod: int, mode: Mode) -> Adapter | None:
    """omod multiplies by 2, 4 or 1/2; clamp limits to [0, 1], with NaN to 0 when MODE.DX10_CLAMP is set.

    CDNA3 ISA 6.2.2: omod does nothing while MODE.IEEE is set or results may be subnormal; where it acts it flushes them, and -0
    becomes +0. The mode is asked when the instruction executes, as only then it must be known.
    """
    if not kind.format or not (clamp or omod):
        return None
    fmt = "f32" if kind.format == "tf32" else kind.format
    if not omod:
        return lambda lanes, a: _clamped(lanes, a, fmt, mode.dx10_clamp)

    def finished(lanes: Any, a: Any) -> Any:
        flushes, rounding = (mode.flush32, mode.round32) if fmt == "f32" else (mode.flush64, mode.round64)
        value = a if mode.ieee or not flushes else _scaled(lanes, a, fmt, OMOD[omod], rounding)
        return _clamped(lanes, value, fmt, mode.dx10_clamp) if clamp else value

    return finished


def _scaled(lanes: Any, a: Any, fmt: str, exponent: int, rounding: str) -> Any:
    bits = _SIGN_BIT[fmt] + 1
    zero = lanes.const(0, bits)
    scaled = lanes.fmul(a, lanes.const(_power_of_two(fmt, exponent), bits), fmt, rounding, True)
    return lanes.select(lanes.fcompare(scaled, zero, "eq", fmt), zero, scaled)


def _power_of_two(fmt: str, exponent: int) -> int:
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[fmt]
    return _ONE[fmt] + (exponent << mantissa)


def _clamped(lanes: Any, a: Any, fmt: str, nan_to_zero: bool) -> Any:
    bits = _SIGN_BIT[fmt] + 1
    zero, one = lanes.const(0, bits), lanes.const(_ONE[fmt], bits)
    limited = lanes.fmin(lanes.fmax(a, zero, fmt), one, fmt)
    if nan_to_zero:
        return limited  # maximumNumber(NaN, 0) is 0
    return lanes.select(lanes.fcompare(a, a, "nan", fmt, True), a, limited)
