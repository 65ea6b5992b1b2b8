"""Chooses the layout of a tile in shared memory: widest vectors for its writers and readers, and no bank conflicts.

The offset of an element has three parts: the low bits are a *vector* that one access takes, the bits above it choose the bank,
and those of the *segment* lead to the same banks again. Places that are served together conflict when their words differ in
the segment only. So the segment is spanned by elements outside of what the lanes of any side span: where no plain index bit
is, by the sum of one bit of each side, which makes a XOR swizzle. Two sides always have such a segment ("Linear Layouts",
2025, section on optimal swizzling: two subspaces of one dimension have a common complement); for more sides it is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from tilefw.simt import f2
from tilefw.simt.layout import LinearLayout, log2
from tilefw.simt.shared_layout import SharedLayout
from tilefw.simt.shared_pattern import Banks, Pattern, Side, banks_of, side

if TYPE_CHECKING:
    from tilefw.simt.description import ChipDescription


def choose(
    shape: tuple[int, ...], bits: int, writers: Sequence[LinearLayout], readers: Sequence[LinearLayout],
    description: ChipDescription, copies: Sequence[tuple[LinearLayout, int]] = (),
) -> SharedLayout:
    """The buffer's layout for elements of `bits` bits (8, 16, 32 or 64) that `writers` store and `readers` load.

    `copies` are asynchronous writers: a layout and how many elements one copy takes; those first registers stay together in
    the buffer, in their order. Readers that a fragment load of the chip serves are given its rows where that is cheapest.
    """
    return choose_for(shape, bits, tuple(writers), tuple(readers), banks_of(description), tuple(copies))


def bank_conflicts(shared: SharedLayout, layout: LinearLayout, bits: int, description: ChipDescription) -> int:
    """The cycles that an access of a wave takes beyond those it would take without bank conflicts; 0 means none.

    The access is the one that is emitted: of the widths that the buffer allows the cheapest, which is the widest without conflicts.
    """
    banks = banks_of(description)
    _, pattern, conflicts = side(layout, bits, banks).best(shared, banks)
    return pattern.cycles * ((1 << conflicts) - 1)


@lru_cache(maxsize=256)
def choose_for(
    shape: tuple[int, ...], bits: int, writers: tuple[LinearLayout, ...], readers: tuple[LinearLayout, ...],
    banks: Banks, copies: tuple[tuple[LinearLayout, int], ...] = (),
) -> SharedLayout:
    """`choose` for these banks; remembers what it chose."""
    sides = [Side(layout, bits, log2(width)) for layout, width in copies]
    sides += [side(layout, bits, banks) for layout in writers]
    sides += [side(layout, bits, banks, reads=True) for layout in readers]
    priced: list[tuple[float, tuple[int, ...], list[Pattern]]] = []
    for vector in _vectors(sides, log2(max(1, banks.access * 8 // bits))):
        patterns = [s.pattern(vector, banks) for s in sides]
        priced.append((sum(p.slots() for p in patterns), vector, patterns))
    priced.sort(key=lambda entry: entry[0])
    best: tuple[float, SharedLayout] | None = None
    for bound, vector, patterns in priced:
        if best is not None and best[0] <= bound:
            break
        shared = _arrange(shape, vector, patterns, bits, banks)
        cost = sum(s.best(shared, banks)[0] for s in sides)
        if best is None or cost < best[0]:
            best = cost, shared
    assert best is not None
    return best[1]


def _vectors(sides: Sequence[Side], most: int) -> Iterator[tuple[int, ...]]:
    """Candidates for the low offset bits, up to `most`: what all sides share, what pairs share, each side's own, rows."""
    forced = max((s.layout.register[: s.fixed] for s in sides), key=len, default=())
    spans = [s.layout.register for s in sides]
    common = spans[0] if spans else ()
    for span in spans[1:]:
        common = f2.intersection(common, span)
    found = [common, *(f2.intersection(a, b) for a, b in combinations(spans, 2) if len(spans) > 2), *spans]
    found += [rows.vector for s in sides for rows in s.rows]
    seen = set()
    for vector in found:
        span = f2.Span()
        whole = [v for v in (*forced, *vector) if span.add(v)][: max(most, len(forced))]
        for length in range(len(whole), len(forced) - 1, -1):  # a side that is narrow may conflict under a long vector
            if tuple(whole[:length]) not in seen:
                seen.add(tuple(whole[:length]))
                yield tuple(whole[:length])


def _arrange(
    shape: tuple[int, ...], vector: tuple[int, ...], patterns: Sequence[Pattern], bits: int, banks: Banks
) -> SharedLayout:
    """The layout with these low bits whose segment no side's lanes meet; what is left chooses the bank by plain index bits."""
    rank = sum(log2(s) for s in shape)
    low = _filled(vector, patterns, min(rank, log2(max(1, banks.bytes * 8 // bits))), rank)
    word = low[: log2(max(1, banks.bytes * 8 // bits))]
    row = max(len(low), log2(max(1, banks.row * 8 // bits)))
    segment = _segment(low, [(*word, *low[: p.width], *p.together) for p in patterns], patterns, rank, max(0, rank - row))
    return SharedLayout(shape, (*low, *f2.complete((*low, *segment), rank), *sorted(segment, key=int.bit_length)))


def _filled(vector: tuple[int, ...], patterns: Sequence[Pattern], size: int, rank: int) -> tuple[int, ...]:
    """The vector; where it is shorter than a word (`size` bits), with elements of neighbouring lanes, which then share it."""
    span, low = f2.Span(vector), list(vector)
    lanes = [basis for p in sorted(patterns, key=Pattern.slots, reverse=True) for basis in p.together]
    for basis in (*lanes, *f2.complete(vector, rank)):
        if len(low) >= size:
            break
        if span.add(basis):
            low.append(basis)
    return tuple(low)


def _segment(
    low: tuple[int, ...], met: Sequence[tuple[int, ...]], patterns: Sequence[Pattern], rank: int, size: int
) -> list[int]:
    """`size` elements, independent of `low` and each other, of which no sum lies in the span of any side's `met`, if there are."""
    whole = f2.Span(low)
    spans = [(f2.Span(bases), p.slots()) for bases, p in zip(met, patterns, strict=True)]
    plain = f2.complete(low, rank)[::-1]
    segment: list[int] = []
    for _ in range(size):
        chosen = _outside(plain, whole, spans)
        segment.append(chosen)
        for span in (whole, *(s for s, _ in spans)):
            span.add(chosen)
    return segment


def _outside(plain: Sequence[int], whole: f2.Span, spans: Sequence[tuple[f2.Span, float]]) -> int:
    """An element outside of `whole` and of all spans; where there is none, outside of those that weigh most.

    A sum of as many plain bits as there are spans is enough, if any is: of two sides one bit each.
    """
    least, best = 0.0, 0
    for count in range(1, min(len(plain), len(spans), 3) + 1):
        for bits in combinations(plain[::-1] if count > 1 else plain, count):
            element = sum(bits)
            if element in whole:
                continue
            harm = sum(weight for span, weight in spans if element in span)
            if not harm:
                return element
            if not best or harm < least:
                least, best = harm, element
    if not best:  # no sides at all, or bits that are taken
        best = next(bit for bit in plain if bit not in whole)
    return best
