"""The layout of a buffer that copies fill wave by wave: what a wave's lanes copy lands in one piece, in the order of the lanes.

The lowest offset bits are then those of an element within a lane's copy, the next those of the lane, the rest those of waves and
further copies. Which elements a wave copies is the coalesced access's choice, which of them a lane copies is free: so banks are
kept apart by the order in which lanes take their pieces, a XOR swizzle where that must be. Neighbours stay within a line of memory
where that costs no bank conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from operator import xor

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.pattern import Banks, LayoutSide, side
from tilefw.simt.layout.shared import SharedLayout

_LINE_BYTES = 64  # what neighbouring lanes had best read together
_MOST = 3  # so many bits are tried as a sum


def copied_layout(shared: SharedLayout, width: int, lanes: int, waves: int) -> LinearLayout:
    """The layout of copies that fill a buffer so, of `width` elements, by waves of so many lanes. Of a small buffer some waves have
    copies of what others copy."""
    element, lane = log2(width), log2(width) + log2(lanes)
    wave = lane + log2(waves)
    bases = (*shared.bases, *[0] * (wave - len(shared.bases)))
    return LinearLayout(shared.shape, (*bases[:element], *bases[wave:]), bases[element:lane], bases[lane:wave])


@lru_cache(maxsize=256)
def consecutive(copies: LinearLayout, width: int, bits: int, readers: tuple[LinearLayout, ...], banks: Banks) -> SharedLayout:
    """The buffer's layout for elements of `bits` bits, `width` of them a copy, that coalesced `copies` fill: whose lanes have all
    different elements, and whose first registers are the copy's."""
    sides = [side(layout, bits, banks, reads=True) for layout in readers]
    near = copies.lane[: log2(max(1, _LINE_BYTES * 8 // (width * bits)))]
    tried = [_arrange(copies, log2(width), near[:count], sides, bits, banks) for count in range(len(near), -1, -1)]
    return min(tried, key=lambda shared: sum(each.best(shared, banks)[0] for each in sides))


def _arrange(
    copies: LinearLayout, width: int, near: Sequence[int], sides: Sequence[LayoutSide], bits: int, banks: Banks
) -> SharedLayout:
    """The layout in which the lanes `near` are the first. What leads to the same banks again is chosen outside of what a side's
    lanes meet, first of what a wave copies, then of the rest."""
    low = (*copies.register[:width], *near)
    patterns = [(each, each.pattern(low, banks)) for each in sides]
    met = [(f2.Subspace((*low[: p.width], *p.together)), p.slots()) for _, p in patterns]
    rank, piece, row = copies.bits, width + len(copies.lane), log2(max(1, banks.row * 8 // bits))
    taken, inside = f2.Subspace(low), []
    for _ in range(max(0, piece - max(row, len(low)))):
        inside.append(_outside(copies.lane, taken, met))
    lanes = [basis for basis in copies.lane if taken.add(basis)]
    others, beyond = f2.Subspace((*low, *copies.lane)), []
    for _ in range(rank - piece):
        beyond.append(_outside(f2.identity(rank), others, met))
    return SharedLayout(copies.shape, (*low, *lanes, *inside, *sorted(beyond, key=int.bit_length)))


def _outside(bits: Sequence[int], taken: f2.Subspace, met: Sequence[tuple[f2.Subspace, float]]) -> int:
    """The sum of the fewest bits that is independent of what is `taken` and in none of the spans `met`, or in those that weigh
    least; it is taken, and met, from then on."""
    best = min(_sums(bits, taken), key=lambda basis: sum(weight for span, weight in met if basis in span))
    for span in (taken, *(span for span, _ in met)):
        span.add(best)
    return best


def _sums(bits: Sequence[int], taken: f2.Subspace) -> Iterator[int]:
    for count in range(1, _MOST + 1):
        for some in combinations(bits[::-1], count):
            if (basis := reduce(xor, some)) not in taken:
                yield basis
