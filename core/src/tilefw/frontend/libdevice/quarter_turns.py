"""The remainder of an angle in float64 by quarter turns, for every size: the product with as many bits of 2/pi as matter.

Payne & Hanek, "Radian reduction for trigonometric functions", 1983. Of m * 2**e, m whole, times 2/pi only what is left modulo 4
counts: bits of 2/pi from the place on where their product with 2**e is 2. 192 of them leave 75 good bits where most cancel
(Muller, "Elementary Functions", 3rd edition, 11.2: no float64 is nearer to a multiple of pi/2 than 2**-61).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import tilefw.language as tl
from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.pairs import Pair
from tilefw.frontend.libdevice.term import Term

_WORDS = 20  # the first is zero, so that small exponents find bits too


@cache
def _two_over_pi(bits: int) -> int:
    """2/pi in multiples of 2**-bits, pi by Machin's formula in integers."""
    one = 1 << (bits + 32)

    def inverse_tangent(n: int) -> int:
        total, power, k = 0, one // n, 0
        while power:
            total += power // (2 * k + 1) * (-1) ** k
            power //= n * n
            k += 1
        return total

    pi = 16 * inverse_tangent(5) - 4 * inverse_tangent(239)
    return (one << (bits + 1)) // pi


def _words(like: Term) -> list[Term]:
    """64 zero bits, then those of 2/pi behind the point, in words of 64."""
    bits = _two_over_pi(64 * (_WORDS - 1))
    return [like.constant(bits >> 64 * (_WORDS - 1 - place) & (2**64 - 1)) for place in range(_WORDS)]


def _from(words: list[Term], index: Term, count: int) -> list[Term]:
    """`count` words from a place on, which has five bits; each bit of the place halves what may be meant."""
    for bit in reversed(range(5)):
        step, needed = 1 << bit, count + (1 << bit) - 1
        moves = (index & step).equals(step)
        moved = [*words[step:], *words[-1:] * step]
        words = [moves.where(other, word) for word, other in zip(words[:needed], moved[:needed], strict=True)]
    return words


def by_quarter_turns(x: Term) -> tuple[Term, Pair]:
    """For a finite x >= 1/2: whole quarter turns modulo 4 as uint64, and the angle left, in radians, at most pi / 4."""
    kind = x.format
    bits = x.bits().as_type(tl.uint64)
    whole = bits & ((1 << kind.fraction) - 1) | (1 << kind.fraction)
    place = (bits >> kind.fraction) - kind.bias - kind.fraction + 62
    shift = place & 63
    found = _from(_words(bits), place >> 6, 4)
    first, second, third = ((a << shift) | (b >> 1 >> (63 - shift)) for a, b in pairwise(found))
    middle = whole * second
    carried = whole.row("mulhu", third)
    middle = middle + carried
    top = whole * first + whole.row("mulhu", second) + (middle < carried).to(tl.uint64)
    low = whole * third
    quarters = (top + (1 << 61)) >> 62
    left = (top - (quarters << 62)).as_type(tl.int64)
    parts = (left >> 32, left & 0xFFFFFFFF, middle >> 32, middle & 0xFFFFFFFF, low >> 32)
    total = Pair(x.constant(0.0), x.constant(0.0))
    for index, part in enumerate(parts):
        total = total + part.to(tl.float64) * 2.0 ** (-30 - 32 * index)
    return quarters & 3, total * series.pair(series.exact("pi") / 2, x)


