"""Quotients and remainders of integers of 32 and 64 bits by constants: shifts, and the high half of a product with a multiplier.

Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), figures 4.1 and 5.2, with N of the type's
bits: no reciprocal is taken, and what is uniform stays in scalar registers.
"""

from __future__ import annotations

from tilefw.api.simt import Code, Const, Element
from tilefw_amd.select.rules.instruction import BITS


def _constant(t: str, value: int) -> Const:
    return Const(t, value & (1 << BITS[t]) - 1)


def unsigned_quotient(code: Code, t: str, n: Element, d: int) -> Element:
    """n / d unsigned, d > 0."""
    if d & (d - 1) == 0:
        return code(f"shru.{t}", n, _constant(t, d.bit_length() - 1))
    bits = (d - 1).bit_length()
    multiplier = (1 << BITS[t]) * ((1 << bits) - d) // d + 1
    high = code(f"mulhu.{t}", n, _constant(t, multiplier))
    half = code(f"shru.{t}", code(f"subi.{t}", n, high), _constant(t, 1))  # high + n may carry
    return code(f"shru.{t}", code(f"addi.{t}", half, high), _constant(t, bits - 1))


def signed_quotient(code: Code, t: str, n: Element, d: int) -> Element:
    """n / d toward zero, d a signed number that is not 0."""
    size = abs(d)
    if size & (size - 1) == 0:
        quotient = _by_power(code, t, n, size.bit_length() - 1)
    else:
        quotient = _by_multiplier(code, t, n, size)
    return code(f"subi.{t}", _constant(t, 0), quotient) if d < 0 else quotient


def _by_power(code: Code, t: str, n: Element, exponent: int) -> Element:
    """A shift rounds down: what is negative is first raised by the divisor less one."""
    if exponent == 0:
        return n
    sign = code(f"shrs.{t}", n, _constant(t, BITS[t] - 1)) if exponent > 1 else n
    raised = code(f"addi.{t}", n, code(f"shru.{t}", sign, _constant(t, BITS[t] - exponent)))
    return code(f"shrs.{t}", raised, _constant(t, exponent))


def _by_multiplier(code: Code, t: str, n: Element, d: int) -> Element:
    bits = (d - 1).bit_length()
    multiplier = 1 + (1 << (BITS[t] + bits - 1)) // d - (1 << BITS[t])  # negative: n is added to the product's high half
    high = code(f"addi.{t}", n, code(f"mulhs.{t}", n, _constant(t, multiplier)))
    return code(f"subi.{t}", code(f"shrs.{t}", high, _constant(t, bits - 1)), code(f"shrs.{t}", n, _constant(t, BITS[t] - 1)))


def remainder(code: Code, t: str, n: Element, d: int, signed: bool) -> Element:
    """n - n / d * d."""
    if not signed and d & (d - 1) == 0:
        return code(f"andi.{t}", n, _constant(t, d - 1))
    quotient = (signed_quotient if signed else unsigned_quotient)(code, t, n, d)
    return code(f"subi.{t}", n, code(f"muli.{t}", quotient, _constant(t, d)))
