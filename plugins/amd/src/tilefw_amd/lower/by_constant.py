"""Quotients and remainders of integers of 32 bits by constants: shifts and the high half of a product with a multiplier.

Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), figures 4.1 and 5.2, with N = 32: no
reciprocal is taken, and what is uniform stays in scalar registers.
"""

from __future__ import annotations

from tilefw.api.simt import Code, Element
from tilefw_amd.lower.instruction import i32

_N = 32


def unsigned_quotient(code: Code, n: Element, d: int) -> Element:
    """n / d of unsigned 32 bits, d > 0."""
    if d & (d - 1) == 0:
        return code("shru.i32", n, i32(d.bit_length() - 1))
    bits = (d - 1).bit_length()
    multiplier = (1 << _N) * ((1 << bits) - d) // d + 1
    high = code("mulhu.i32", n, i32(multiplier))
    half = code("shru.i32", code("subi.i32", n, high), i32(1))  # high + n may have 33 bits
    return code("shru.i32", code("addi.i32", half, high), i32(bits - 1))


def signed_quotient(code: Code, n: Element, d: int) -> Element:
    """n / d toward zero, d a signed number of 32 bits that is not 0."""
    size = abs(d)
    if size & (size - 1) == 0:
        quotient = _by_power(code, n, size.bit_length() - 1)
    else:
        quotient = _by_multiplier(code, n, size)
    return code("subi.i32", i32(0), quotient) if d < 0 else quotient


def _by_power(code: Code, n: Element, exponent: int) -> Element:
    """A shift rounds down: what is negative is first raised by the divisor less one."""
    if exponent == 0:
        return n
    sign = code("shrs.i32", n, i32(_N - 1))
    raised = code("addi.i32", n, code("shru.i32", sign, i32(_N - exponent)))
    return code("shrs.i32", raised, i32(exponent))


def _by_multiplier(code: Code, n: Element, d: int) -> Element:
    bits = (d - 1).bit_length()
    multiplier = 1 + (1 << (_N + bits - 1)) // d - (1 << _N)  # negative: n is added to the product's high half
    high = code("addi.i32", n, code("mulhs.i32", n, i32(multiplier)))
    return code("subi.i32", code("shrs.i32", high, i32(bits - 1)), code("shrs.i32", n, i32(_N - 1)))


def remainder(code: Code, n: Element, d: int, signed: bool) -> Element:
    """n - n / d * d."""
    if not signed and d & (d - 1) == 0:
        return code("andi.i32", n, i32(d - 1))
    quotient = (signed_quotient if signed else unsigned_quotient)(code, n, d)
    return code("subi.i32", n, code("muli.i32", quotient, i32(d)))
