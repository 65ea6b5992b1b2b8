"""Numbers of the matrix unit as integers: products and sums are exact, and rounded to fp32 by shifting integers.

A finite number of an element type is an integer times 2 ** -SCALE[dtype]; infinities and NaN are Python floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

Number = int | float

# Bits of fraction and bias of the exponent: IEEE 754-2019 §3.6, bfloat16, OCP OFP8 §5.
_FORMS = {"fp16": (10, 15, 16), "bf16": (7, 127, 16), "fp8e5": (2, 15, 8), "fp8e4nv": (3, 7, 8), "fp32": (23, 127, 32)}
SCALE = {"int8": 0, **{name: bias - 1 + fraction for name, (fraction, bias, _) in _FORMS.items()}}

QUIET_NAN, INFINITY, SIGN = 0x7FC00000, 0x7F800000, 1 << 31


@cache
def number(dtype: str, code: int) -> Number:
    """The number of a code: an integer in units of 2 ** -SCALE[dtype], or an infinity or NaN."""
    if dtype == "int8":
        return code - 256 if code > 127 else code
    fraction_bits, _, width = _FORMS[dtype]
    negative, rest = code >> width - 1, code & (1 << width - 1) - 1
    exponent, fraction = rest >> fraction_bits, rest & (1 << fraction_bits) - 1
    top = (1 << width - 1 - fraction_bits) - 1
    if dtype == "fp8e4nv":
        if rest == 0x7F:  # no infinities, one NaN of either sign
            return math.nan
    elif exponent == top:
        return math.nan if fraction else (-math.inf if negative else math.inf)
    value = fraction if exponent == 0 else (fraction | 1 << fraction_bits) << exponent - 1
    return -value if negative else value


def dot(x: Sequence[Number], y: Sequence[Number]) -> Number:
    """The sum of products: an integer in the units of both, or infinity or NaN as IEEE's operations give."""
    total: int = 0
    special: set[float] = set()
    for a, b in zip(x, y, strict=True):
        if isinstance(a, int) and isinstance(b, int):
            total += a * b
        else:
            special.add(_special(a, b))
    if not special:
        return total
    return special.pop() if len(special) == 1 else math.nan


def _special(a: Number, b: Number) -> float:
    if a != a or b != b or a == 0 or b == 0:
        return math.nan
    return math.inf if (a > 0) == (b > 0) else -math.inf


def rounded(value: Number, scale: int) -> int:
    """The bits of the fp32 nearest to value · 2 ** -scale, ties to even. Zero is +0; what is rounded to zero keeps its sign."""
    if isinstance(value, float):
        return QUIET_NAN if value != value else INFINITY | (SIGN if value < 0 else 0)
    sign, magnitude = (SIGN, -value) if value < 0 else (0, value)
    if not magnitude:
        return 0
    unit = max(magnitude.bit_length() - 24 - scale, -149)  # exponent of the last place that is kept
    shift = unit + scale
    kept = magnitude << -shift if shift <= 0 else _shifted(magnitude, shift)
    bits = (unit + 149 << 23) + kept  # the hidden bit raises the exponent by one
    return sign | min(bits, INFINITY)


def _shifted(magnitude: int, shift: int) -> int:
    kept, rest = magnitude >> shift, magnitude & (1 << shift) - 1
    half = 1 << shift - 1
    return kept + (rest > half or (rest == half and kept & 1))


def add(x: int, y: int) -> int:
    """The sum of two fp32, as bits, rounded to nearest even; all NaN are one."""
    a, b = number("fp32", x), number("fp32", y)
    if isinstance(a, int) and isinstance(b, int):
        if a + b:
            return rounded(a + b, SCALE["fp32"])
        return SIGN if x == y == SIGN else 0
    return rounded(a + b if isinstance(a, float) and isinstance(b, float) else (a if isinstance(a, float) else b), 0)


def wrapped(value: int) -> int:
    """The low 32 bits."""
    return value & 0xFFFFFFFF
