"""Trigonometric range reduction: x = q*pi/2 + r with |r| <= pi/4, for every finite x.

Moderate x lose q times a three-part pi/2 (Cody and Waite); large x are multiplied by the bits of 2/pi that matter to
them, as integers (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).
"""

from __future__ import annotations

import math

from tilefw.simt.expand import series
from tilefw.simt.expand.builder import Legal, Value
from tilefw.simt.expand.exact import parts
from tilefw.simt.expand.floats import SAME_WIDTH
from tilefw.simt.expand.series import PRECISIONS

# Below this, q fits so few bits that x - q*(first part of pi/2) is exact.
_MODERATE = {"f32": 2.0**22, "f64": 2.0**50}


def quadrant(b: Legal, x: Value) -> tuple[Value, Value]:
    """(r, q modulo 4 as an i32, with whatever in its upper bits)."""
    t = b.type_of(x)
    near, near_q = _cody_waite(b, x)
    far, far_q = _payne_hanek(b, x)
    moderate = b("ltf", b("absf", x), b.real(_MODERATE[t], t))
    return b("select", moderate, near, far), b("select", moderate, near_q, far_q)


def _cody_waite(b: Legal, x: Value) -> tuple[Value, Value]:
    t = b.type_of(x)
    n = b("round_even", b("mulf", x, b.real(2 / math.pi, t)))
    r = x
    for part in series.split_constant("half_pi", t, 3):
        r = b("fma", b("negf", n), b.real(part, t), r)
    if t == "f32":
        return r, b("f2s", n, to="i32")
    # Only n modulo 4 matters; n itself may pass 32 bits.
    quarter = b("mulf", b("floor", b("mulf", n, b.real(0.25, t))), b.real(4.0, t))
    return r, b("f2s", b("subf", n, quarter), to="i32")


def _payne_hanek(b: Legal, x: Value) -> tuple[Value, Value]:
    """|x| = M * 2**E with an integer M. Bits of 2/pi of weight 4/2**E and more only add whole turns, so three words from
    there on times M, modulo 2**(3 words), hold the quadrant in their top two bits and the fraction below."""
    t = b.type_of(x)
    p, i = PRECISIONS[t], SAME_WIDTH[t]
    m, e = parts(b, b("absf", x))
    whole = b("andi", b("bitcast", m, to=i), b.integer((1 << p.mantissa) - 1, i))
    whole = b("ori", whole, b.integer(1 << p.mantissa, i))
    first = b("subi", e, b.i32(p.mantissa + 2 - p.word))  # offset into the bits, behind a leading word of zeros
    low, middle, high = _window(b, first, t)
    zero = b.integer(0, i)
    product_low = b("muli", whole, low)
    carry, product_middle = _add_carry(b, b("muli", whole, middle), b("mulhu", whole, low))
    product_high = b("addi", b("muli", whole, high), b("addi", b("mulhu", whole, middle), carry))
    two, rest = b.integer(2, i), b.integer(p.word - 2, i)
    q = b("shru", product_high, rest)
    fraction = b("ori", b("shl", product_high, two), b("shru", product_middle, rest))
    below = b("ori", b("shl", product_middle, two), b("shru", product_low, rest))
    # From one half on, the next quadrant is nearer: the fraction, read as signed, is already fraction - 1.
    up = b("lts", fraction, zero)
    upper = b("mulf", b("s2f", fraction, to=t), b.real(2.0**-p.word, t))
    turn = b("fma", b("u2f", below, to=t), b.real(2.0 ** (-2 * p.word), t), upper)
    r = b("mulf", turn, b.real(math.pi / 2, t))
    q = q if i == "i32" else b("trunci", q, to="i32")
    q = b("addi", q, b.bits(up))
    negative = b("ltf", x, b.real(0.0, t))
    return b("select", negative, b("negf", r), r), b("select", negative, b("subi", b.i32(0), q), q)


def _add_carry(b: Legal, x: Value, y: Value) -> tuple[Value, Value]:
    total = b("addi", x, y)
    carry = b.bits(b("ltu", total, x))
    return (carry if b.type_of(x) == "i32" else b("extu", carry, to="i64")), total


def _window(b: Legal, first: Value, t: str) -> tuple[Value, Value, Value]:
    """Three words of 2/pi from bit `first` on (an i32), lowest word first."""
    p, i = PRECISIONS[t], SAME_WIDTH[t]
    places = (p.bias + p.word) // p.word + 1
    words = (0, *series.two_over_pi_words(p.word, places + 4))
    log_word = p.word.bit_length() - 1
    index, shift = b("shru", first, b.i32(log_word)), b("andi", first, b.i32(p.word - 1))
    shift = shift if i == "i32" else b("extu", shift, to="i64")
    at = [b("leu", b.i32(k), index) for k in range(1, places + 1)]

    def word(offset: int) -> Value:
        value = b.integer(words[offset], i)
        for k, condition in enumerate(at, start=1):
            value = b("select", condition, b.integer(words[k + offset], i), value)
        return value

    chosen = [word(offset) for offset in range(4)]
    back = b("subi", b.integer(p.word, i), shift)
    joined = [b("ori", b("shl", chosen[k], shift), b("shru", chosen[k + 1], back)) for k in range(3)]
    return joined[2], joined[1], joined[0]
