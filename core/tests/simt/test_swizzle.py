"""Shared layouts: conflicts are what a walk over lanes and banks counts, and chosen layouts are as free of them as theory says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS
from random_layouts import bases, pairs

from tilefw.api.integers import ceil_div, log2
from tilefw.simt.description import ChipDescription
from tilefw.simt.layout import LinearLayout, blocked, f2, swizzle
from tilefw.simt.layout.pattern import LayoutSide, banks_of, side
from tilefw.simt.layout.shared import SharedLayout
from tilefw.simt.lower import fragment_load, shared_access

PLAIN = replace(BLOCKS, fragment_loads=())
CHIPS = {"32 banks": PLAIN, "16 banks": replace(PLAIN, banks=16), "8-byte accesses": replace(PLAIN, shared_access_bytes=8)}


def cycles(addresses: list[list[int]], width: int, chip: ChipDescription) -> int:
    """The cycles of accesses of `width` bytes, one list of addresses for each; lanes that fill all banks go together."""
    total, group = 0, max(1, chip.banks * chip.bank_bytes // width)
    for access in addresses:
        for first in range(0, len(access), group):
            each = range(ceil_div(width, chip.bank_bytes))
            words = {a // chip.bank_bytes + i for a in access[first : first + group] for i in each}
            banks = [w % chip.banks for w in words]
            total += max(banks.count(b) for b in set(banks))
    return total


def walked(shared: SharedLayout, layout: LinearLayout, bits: int, chip: ChipDescription) -> int:
    """The extra cycles of all accesses of one wave that are emitted."""
    how, size = shared_access.plan(shared, layout, bits, banks_of(chip), 0), bits // 8
    lanes = [f2.apply(how.thread, lane) for lane in range(chip.lanes)]
    addresses = [[(lane ^ c) * size for lane in lanes] for c in how.constants]
    groups = max(1, -(-chip.lanes * how.width * size // (chip.banks * chip.bank_bytes)))
    return cycles(addresses, how.width * size, chip) - groups * len(addresses)


@settings(max_examples=200, deadline=None)
@given(pairs(most_waves=2), st.sampled_from([8, 16, 32, 64]), st.sampled_from(sorted(CHIPS)), st.data())
def test_the_formula_counts_what_a_walk_counts(layouts, bits, name, data):
    layout, chip = layouts[0], CHIPS[name]
    shared = SharedLayout(layout.shape, tuple(data.draw(bases(layout.bits))))
    accesses = len(shared_access.plan(shared, layout, bits, banks_of(chip), 0).constants)
    assert swizzle.bank_conflicts(shared, layout, bits, chip) * accesses == walked(shared, layout, bits, chip)


def slots(side: LayoutSide, shared: SharedLayout) -> float:
    return side.best(shared, banks_of(PLAIN))[0]


@settings(max_examples=200, deadline=None)
@given(pairs(most_waves=2), st.sampled_from([8, 16, 32, 64]))
def test_a_writer_and_a_reader_never_cost_more_than_their_common_vector_without_conflicts(layouts, bits):
    """The theorem: two sides that both take their common vector need no conflicts. Others are chosen only where cheaper."""
    banks = banks_of(PLAIN)
    writer, reader = (side(layout, bits, banks) for layout in layouts)
    common = f2.intersection(layouts[0].register, layouts[1].register)[: log2(16 * 8 // bits)]
    bound = writer.pattern(common, banks).slots() + reader.pattern(common, banks).slots()
    shared = swizzle.choose(layouts[0].shape, bits, layouts[:1], layouts[1:], PLAIN)
    assert f2.rank(shared.bases) == layouts[0].bits
    assert slots(writer, shared) + slots(reader, shared) <= bound


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (16, 256), (32, 32)])
def test_a_transpose_is_free_of_conflicts(shape, bits):
    width = 128 // bits
    writer, reader = blocked(shape, (1, 0), width, 32, 4), blocked(shape, (0, 1), width, 32, 4)
    shared = swizzle.choose(shape, bits, [writer], [reader], PLAIN)
    assert walked(shared, writer, bits, PLAIN) == walked(shared, reader, bits, PLAIN) == 0


def fragment(rows: int, columns: int, bits: int, along_rows: bool) -> LinearLayout:
    """What 32 lanes hold of 16-byte rows: words by lane bits 0-1, rows by lane bits 2-4; or the same of columns."""
    inner = 32 // bits
    step = [1 << i for i in range(log2(columns if along_rows else rows))]
    other = [1 << i for i in range(log2(rows if along_rows else columns))]
    step, other = ([b * (1 if along_rows else columns) for b in step], [b * (columns if along_rows else 1) for b in other])
    word = log2(inner)
    register = (*step[:word], *other[3:], *step[word + 2 :])
    return LinearLayout((rows, columns), register, (*step[word : word + 2], *other[:3]), ())


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize(("bits", "along_rows"), [(8, True), (16, True), (16, False), (32, True)])
@pytest.mark.parametrize("shape", [(64, 32), (64, 64), (32, 128)])
def test_fragment_loads_read_rows_of_distinct_banks_that_wide_writers_fill(shape, bits, along_rows, copied):
    width = 128 // bits
    writer, reader = blocked(shape, (1, 0), width, 32, 1), fragment(*shape, bits, along_rows)
    shared = swizzle.choose(
        shape, bits, [] if copied else [writer], [reader], BLOCKS, [(writer, width)] if copied else []
    )
    how = shared_access.plan(shared, writer, bits, banks_of(BLOCKS), 0)
    assert how.width == width and how.order[:width] == tuple(range(width))
    assert walked(shared, writer, bits, BLOCKS) == 0
    read = fragment_load.match(shared, reader, bits, BLOCKS.fragment_loads)
    assert read is not None and read.transposed is not along_rows
    rows = [[f2.apply(read.thread, 8 * m + r) ^ c for r in range(8)] for c in read.constants for m in range(read.count)]
    assert cycles(rows, 16, BLOCKS) == len(rows)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_what_copies_take_stays_together_and_in_order(width):
    shape = (32, 64)
    writer, reader = blocked(shape, (1, 0), width, 32, 4), blocked(shape, (0, 1), 8, 32, 4)
    shared = swizzle.choose(shape, 16, [], [reader], PLAIN, [(writer, width)])
    assert shared.bases[: log2(width)] == writer.register[: log2(width)]
    assert swizzle.bank_conflicts(shared, writer, 16, PLAIN) == 0


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_copies_of_one_sector_of_memory_land_in_one_row(order):
    """Whichever dim is in a row in memory: else the card reads the sector once for each row."""
    shape, bits = (64, 64), 16
    writer = blocked(shape, order, 8, 32, 4)
    shared = swizzle.choose(shape, bits, [], [fragment(*shape, bits, order == (1, 0))], BLOCKS, [(writer, 8)])
    how = shared_access.plan(shared, writer, bits, banks_of(BLOCKS), 0)
    addresses = [(f2.apply(how.thread, lane) ^ c) * bits // 8 for c in how.constants for lane in range(32)]
    halves = zip(addresses[::2], addresses[1::2], strict=True)
    assert {(a ^ b) for a, b in halves} == {16}
    assert walked(shared, writer, bits, BLOCKS) == 0


def test_a_layout_without_copies_or_sides_is_row_major():
    shared = swizzle.choose((16, 64), 16, [], [], PLAIN)
    assert shared.bases == tuple(1 << i for i in range(10))


def test_a_narrow_reader_shortens_the_vector_of_a_wide_writer_to_be_free_of_conflicts():
    """Four elements along a row by one: vectors of four leave the reader 8 banks for 16 rows, vectors of two all."""
    writer, reader = blocked((64, 64), (1, 0), 4, 32, 4), blocked((64, 64), (0, 1), 4, 32, 4)
    shared = swizzle.choose((64, 64), 32, [writer], [reader], PLAIN)
    banks = banks_of(PLAIN)
    cost = slots(side(writer, 32, banks), shared) + slots(side(reader, 32, banks), shared)
    assert cost <= 144 + 160 and walked(shared, reader, 32, PLAIN) == 0
