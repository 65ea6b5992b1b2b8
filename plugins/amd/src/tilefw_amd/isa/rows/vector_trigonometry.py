"""Pieces of 2/pi, for the argument reduction of f64 sines (CDNA3 ISA, "VOP3A": V_TRIG_PREOP_F64)."""

from __future__ import annotations

from functools import cache

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.precision import exponent, rounding_of, scaled

CHAPTER = Chapter()
row = CHAPTER.row

BITS = 1201
_WORDS = 19  # of 64 bits


@cache
def two_over_pi() -> int:
    """floor(2/pi * 2**1201), with pi by Machin's formula, 64 guard bits further than needed."""
    guard = BITS + 64

    def arctangent_of_inverse(n: int) -> int:
        term, total, k = (1 << guard) // n, 0, 0
        while term:
            total += -(term // (2 * k + 1)) if k % 2 else term // (2 * k + 1)
            term //= n * n
            k += 1
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    return (1 << (guard + 1 + BITS)) // pi


def _word(index: int) -> int:
    """64 bits of 2/pi from the top; zero beyond its end."""
    aligned = two_over_pi() << (_WORDS * 64 - BITS)
    return aligned >> (64 * (_WORDS - 1 - index)) & (1 << 64) - 1 if index < _WORDS else 0


@row("v_trig_preop_f64 d:f64, a:f64, b:u32", vop3=0x292, unit="valu64", section="VOP3A")
def v_trig_preop_f64(m):
    """53 bits of 2/pi, as a number: piece b & 31, moved on by as many places as the exponent of a exceeds 1077 (biased)."""
    rounding = rounding_of(m, "f64")

    def meaning(lanes, a, b):
        place = exponent(lanes, a, "f64")
        first = lanes.mul(lanes.and_(b, lanes.const(31, 32)), lanes.const(53, 32))
        limit = lanes.const(1077, 32)
        first = lanes.add(first, lanes.sub(lanes.max(place, limit, False), limit))
        scale = lanes.sub(lanes.const(-53, 32), first)
        far = lanes.compare(place, lanes.const(1968, 32), "ge", False)
        scale = lanes.select(far, lanes.add(scale, lanes.const(128, 32)), scale)
        number = lanes.int_to_float(_bits_from(lanes, first), False, "f64")
        return scaled(lanes, number, scale, "f64", rounding, False)

    return meaning


def _bits_from(lanes, first):
    """53 bits of 2/pi from place `first` on, counted from the top."""
    index, offset = lanes.shr(first, lanes.const(6, 32), False), lanes.and_(first, lanes.const(63, 32))
    high = low = lanes.const(0, 64)
    for word in range(_WORDS):
        here = lanes.compare(index, lanes.const(word, 32), "eq", False)
        high = lanes.select(here, lanes.const(_word(word), 64), high)
        low = lanes.select(here, lanes.const(_word(word + 1), 64), low)
    joined = lanes.or_(lanes.shl(high, offset), lanes.shr(low, lanes.sub(lanes.const(64, 32), offset), False))
    return lanes.shr(joined, lanes.const(11, 32), False)
