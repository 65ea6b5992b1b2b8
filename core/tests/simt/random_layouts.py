"""Random layouts: any linear map that covers a tile, with copies in zero and in dependent thread bits, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilefw.api.integers import log2
from tilefw.simt.layout import LinearLayout, f2

shapes = st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), min_size=1, max_size=3).map(tuple)


@st.composite
def bases(draw: Any, rank: int) -> list[int]:
    """A basis: index bits in any order, in about half of the cases with sums of others."""
    found = [1 << i for i in draw(st.permutations(range(rank)))]
    pair = st.tuples(st.integers(0, max(0, rank - 1)), st.integers(0, max(0, rank - 1)))
    for a, b in draw(st.one_of(st.just([]), st.lists(pair, max_size=2 * rank))):
        if a != b:
            found[a] ^= found[b]
    return found


@st.composite
def layouts(draw: Any, shape: tuple[int, ...], lanes: int, waves: int) -> LinearLayout:
    """A layout that covers `shape`; thread bits that are left over are zero or repeat sums of other bits."""
    rank, threads = sum(log2(s) for s in shape), log2(lanes) + log2(waves)
    basis = draw(bases(rank))
    held = draw(st.integers(max(0, rank - 6), rank))  # at most 64 registers
    spread = min(held, threads)
    part, registers = basis[:spread], tuple(basis[spread:])
    for _ in range(threads - spread):
        repeat = f2.apply(basis, draw(st.integers(0, (1 << rank) - 1))) if draw(st.booleans()) else 0
        part.insert(draw(st.integers(0, len(part))), repeat)
    return LinearLayout(shape, registers, tuple(part[: log2(lanes)]), tuple(part[log2(lanes) :]))


@st.composite
def pairs(draw: Any, widths: tuple[int, ...] = (32,), most_waves: int = 4) -> tuple[LinearLayout, LinearLayout]:
    """Two layouts of one tile on one machine; the second often differs in part only, so that conversions stay within waves."""
    shape = draw(shapes)
    lanes = draw(st.sampled_from(widths))
    waves = draw(st.sampled_from([w for w in (1, 2, 4, 8) if w <= most_waves]))
    first = draw(layouts(shape, lanes, waves))
    if draw(st.booleans()):
        return first, draw(layouts(shape, lanes, waves))
    bits = list(first.register + first.lane)
    mixed = [bits[i] for i in draw(st.permutations(range(len(bits))))]
    for a, b in draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=4)):
        if bits and a % len(bits) != b % len(bits):
            mixed[a % len(bits)] ^= mixed[b % len(bits)]
    lane = tuple(mixed[: len(first.lane)])
    span = f2.Subspace()
    register = tuple(e for e in mixed[len(first.lane) :] if span.add(e))
    second = LinearLayout(shape, register, lane, first.wave)
    return first, second if second.covers else first
