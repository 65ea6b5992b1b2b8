"""Chooses the layout of a tile in shared memory: widest vectors for its writers and readers, and no bank conflicts.

The offset of an element has three parts: the low bits are a *vector* that one access takes, the bits above it choose the bank,
and those of the *segment* lead to the same banks again. Places that are served together conflict when their words differ in
the segment only. So the segment is spanned by elements outside of what the lanes of any side span: where no plain index bit
is, by the sum of one bit of each side, which makes a XOR swizzle. Two sides always have such a segment ("Linear Layouts",
2025, section on optimal swizzling: two subspaces of one dimension have a common complement); for more sides it is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.layout.pattern import Banks, LayoutSide, Pattern, banks_of, side
from tilefw.simt.layout.shared import SharedLayout

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


def price(
    shape: tuple[int, ...], bits: int, writers: tuple[LinearLayout, ...], readers: tuple[LinearLayout, ...],
    description: ChipDescription,
) -> tuple[float, int]:
    """Issue slots and accesses of a thread for one round of these writers and readers on the buffer that is chosen for them."""
    banks = banks_of(description)
    shared = choose_for(shape, bits, writers, readers, banks)
    sides = [side(layout, bits, banks) for layout in writers] + [side(layout, bits, banks, reads=True) for layout in readers]
    found = [each.best(shared, banks) for each in sides]
    return sum(slots for slots, _, _ in found), sum(int(pattern.times) for _, pattern, _ in found)


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
    sides = [LayoutSide(layout, bits, log2(width)) for layout, width in copies]
    sides += [side(layout, bits, banks) for layout in writers]
    sides += [side(layout, bits, banks, reads=True) for layout in readers]
    near = tuple(basis for layout, _ in copies for basis in layout.lane)
    search = _SwizzleSearch(shape, bits, sides, banks, near)
    forced = max((s.layout.register[: s.fixed] for s in sides), key=len, default=())
    vectors = _vectors(sides, forced, log2(max(1, banks.access * 8 // bits)))
    search.try_all(vectors)
    if search.conflicts:  # under a shorter vector a side that is narrow anyway may be free of them
        search.try_all(dict.fromkeys(v[:length] for v in vectors for length in range(len(forced), len(v))))
    assert search.best is not None
    return search.best


class _SwizzleSearch:
    """The cheapest layout of those tried, its cost, and whether any that looked cheaper had conflicts. What the lanes `near` copy
    had best lie in one row."""

    def __init__(
        self, shape: tuple[int, ...], bits: int, sides: Sequence[LayoutSide], banks: Banks, near: tuple[int, ...]
    ) -> None:
        self.shape, self.bits, self.sides, self.banks, self.near = shape, bits, sides, banks, near
        self.best: SharedLayout | None = None
        self.cost = 0.0
        self.conflicts = False

    def try_all(self, vectors: Iterable[tuple[int, ...]]) -> None:
        """Try these for the low offset bits, the most promising first, until none can be better."""
        priced = []
        for vector in vectors:
            patterns = [s.pattern(vector, self.banks) for s in self.sides]
            priced.append((sum(p.slots() for p in patterns), vector, patterns))
        for bound, vector, patterns in sorted(priced, key=lambda entry: entry[0]):
            if self.best is not None and self.cost <= bound:
                return
            shared = _arrange(self.shape, vector, patterns, self.bits, self.banks, self.near)
            found = [s.best(shared, self.banks) for s in self.sides]
            cost = sum(slots for slots, _, _ in found)
            self.conflicts |= cost > bound
            if self.best is None or cost < self.cost:
                self.best, self.cost = shared, cost


def _vectors(sides: Sequence[LayoutSide], forced: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """Candidates for the low offset bits, up to `most`: what all sides share, then what pairs share, each side's own, rows.

    All begin with `forced`.
    """
    spans = [s.layout.register for s in sides]
    common = spans[0] if spans else ()
    for span in spans[1:]:
        common = f2.intersection(common, span)
    found = [common]
    for a, b in combinations(spans, 2):
        both = common if len(spans) == 2 else (*common, *f2.intersection(a, b))
        found += [(*both, *a), (*both, *b)]
    found += [*spans, *(rows.vector for s in sides for rows in s.rows), *(read.cells for s in sides for read in s.columns)]
    kept: dict[tuple[int, ...], None] = {}
    for vector in found:
        span = f2.Subspace()
        kept[tuple([v for v in (*forced, *vector) if span.add(v)][: max(most, len(forced))])] = None
    return list(kept)


def _arrange(
    shape: tuple[int, ...], vector: tuple[int, ...], patterns: Sequence[Pattern], bits: int, banks: Banks, near: tuple[int, ...]
) -> SharedLayout:
    """The layout with these low bits whose segment no side's lanes meet; what is left chooses the bank: neighbours among the lanes
    that copy, then plain index bits. A sector of memory (32 bytes) whose halves are copied to two rows is read twice: measured on
    an H200, where a third of the sectors that attention read were such."""
    rank = sum(log2(s) for s in shape)
    low = _filled(vector, patterns, min(rank, log2(max(1, banks.bytes * 8 // bits))), rank)
    word = low[: log2(max(1, banks.bytes * 8 // bits))]
    row = max(len(low), log2(max(1, banks.row * 8 // bits)))
    segment = _segment(low, [(*word, *low[: p.width], *p.together) for p in patterns], patterns, rank, max(0, rank - row))
    span = f2.Subspace((*low, *segment))
    bank = [basis for basis in (*near, *f2.identity(rank)) if span.add(basis)]
    return SharedLayout(shape, (*low, *bank, *sorted(segment, key=int.bit_length)))


def _filled(vector: tuple[int, ...], patterns: Sequence[Pattern], size: int, rank: int) -> tuple[int, ...]:
    """The vector; where it is shorter than a word (`size` bits), with elements of neighbouring lanes, which then share it."""
    span, low = f2.Subspace(vector), list(vector)
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
    whole = f2.Subspace(low)
    spans = [(f2.Subspace(bases), p.slots()) for bases, p in zip(met, patterns, strict=True)]
    plain = f2.complete(low, rank)[::-1]
    segment: list[int] = []
    for _ in range(size):
        chosen = _outside(plain, whole, spans)
        segment.append(chosen)
        for span in (whole, *(s for s, _ in spans)):
            span.add(chosen)
    return segment


def _outside(plain: Sequence[int], whole: f2.Subspace, spans: Sequence[tuple[f2.Subspace, float]]) -> int:
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
