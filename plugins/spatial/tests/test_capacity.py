"""Needs are counted in closed form: buffers beyond the chip are refused at once, by their bytes, whatever their size."""

from __future__ import annotations

import time
import tracemalloc
from functools import reduce

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from stream_evaluator import cells

import tilefw
import tilefw.language as tl
from tilefw.api import DTYPES, Artifact, CapacityError
from tilefw.api.integers import ceil_div
from tilefw_spatial import limits
from tilefw_spatial.arrange.affine_lanes import maps_of
from tilefw_spatial.footprint import distinct
from tilefw_spatial.graph import AccessMap, Along, Axis
from tilefw_spatial.index_tables import AffineTable, IndexInterval, even, run, taken, taken_valid, together
from tilefw_spatial.lower.below import Below, negative
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile
from tilefw_spatial.machine import load
from tilefw_spatial.program import Transfer

LANES = load().lanes


@tilefw.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    access_map = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + access_map, tl.load(x_ptr + access_map, mask=access_map < n) * 2.0, mask=access_map < n)


@tilefw.jit
def first_of_many(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    access_map = tl.arange(0, BLOCK)
    tl.store(y_ptr + access_map, tl.load(x_ptr + access_map))


@tilefw.jit
def in_steps(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    access_map = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + access_map)
    for step in range(n):
        x = x * x + step
    tl.store(y_ptr + access_map, x)


@tilefw.jit
def with_many_control_flows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    access_map = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + access_map)
    for _ in range(tl.program_id(0)):
        x = x * x + 1.0
    tl.store(y_ptr + access_map, x)


@tilefw.jit
def to_both(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    access_map = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + access_map) + 1.0
    tl.store(x_ptr + access_map, x)
    tl.store(y_ptr + access_map, x)


def compiled(kernel, n: int, block: int, programs: int, elements: int) -> Artifact:
    """The program of one launch, made anew; `elements` are those of each buffer."""
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i64"}
    extents = {"x_ptr": 4 * elements, "y_ptr": 4 * elements}
    return tilefw.compile(kernel, "spatial-sdm1", signature, {"BLOCK": block}, grid=(programs,), scalars={"n": n}, extents=extents)


@pytest.mark.parametrize(("n", "block"), [(57 * 10**6, 128), (10**9, 1 << 12), (10**10, 1 << 16), (10**12, 1 << 20)])
def test_buffers_beyond_the_chip_are_refused_at_once_and_by_their_bytes(n: int, block: int) -> None:
    begin = time.process_time()
    with pytest.raises(CapacityError, match=f"need at least {8 * n} bytes of memory") as caught:
        compiled(scale, n, block, ceil_div(n, block), n)
    assert time.process_time() - begin < 3  # 0.1 to 0.6 s where nothing else runs
    error = caught.value
    assert (error.code, error.resource, error.unit) == ("TFW0690", "memory", "bytes")
    assert (error.needed, error.available) == (8 * n, 220 << 20)
    assert error.note == f"bytes: {4 * n} of 'x_ptr' loaded, {4 * n} of 'y_ptr' stored"
    assert error.place is not None and error.help


def test_of_a_grid_beyond_all_bounds_the_first_programs_are_counted() -> None:
    with pytest.raises(CapacityError, match="need at least") as caught:
        compiled(scale, 10**12, 1024, 10**12 // 1024, 10**12)
    assert caught.value.code == "TFW0690" and caught.value.needed == limits.SOME_PROGRAMS * 1024 * 8


def test_a_launch_that_fills_the_chip_is_compiled_in_the_memory_of_its_tables() -> None:
    n = 28 * 10**6
    tracemalloc.start()
    artifact = compiled(scale, n, 128, ceil_div(n, 128), n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 << 20
    assert artifact.binary is not None and len(artifact.binary) < 1 << 16
    assert artifact.metadata["memory_bytes"] == 8 * n


def test_what_is_stored_twice_counts_once() -> None:
    n = 28 * 10**6  # two arrays of 112 MB fit the chip, three do not
    assert compiled(to_both, n, 128, n // 128, n).metadata["memory_bytes"] == 8 * n


@pytest.mark.parametrize(("kernel", "n", "programs", "unit", "most"), [
    (first_of_many, 1, 1 << 30, "programs", limits.MOST_PROGRAMS),
    (in_steps, 60_000, 1, "operations", limits.MOST_STEPS),
    (with_many_control_flows, 1, 600, "classes of programs", limits.MOST_CLASSES),
])
def test_the_compilers_own_limits_are_told_with_their_figures(kernel, n: int, programs: int, unit: str, most: int) -> None:
    with pytest.raises(CapacityError, match=f"the compiler takes {most}") as caught:
        compiled(kernel, n, 32, programs, 1 << 20)
    error = caught.value
    assert (error.code, error.unit, error.available) == ("TFW0691", unit, most) and error.needed > most
    assert error.place is not None and error.note and error.help


# Closed forms equal their tables --------------------------------------------------------------------------------------------

AFFINE_TABLES = st.builds(AffineTable, st.integers(-50, 50), st.integers(-7, 7), st.integers(1, 40))


@st.composite
def spans(draw: st.DrawFn, count: int) -> IndexInterval:
    low = draw(st.integers(0, count))
    return IndexInterval(low, draw(st.integers(low, count)), count)


@given(AFFINE_TABLES, st.data())
def test_an_affine_table_and_an_interval_are_their_tables(affine: AffineTable, data: st.DataObject) -> None:
    table = np.asarray(affine)
    assert even(table) == (affine if affine.count > 1 else AffineTable(affine.first, 0, 1))
    assert (affine.min(), affine.max(), affine.any()) == (table.min(), table.max(), table.any())
    one, other = data.draw(spans(affine.count)), data.draw(spans(affine.count))
    flags, others = np.asarray(one), np.asarray(other)
    assert (one.any(), one.all(), one.sum()) == (flags.any(), flags.all(), flags.sum())
    assert np.array_equal(np.asarray(run(flags)), flags)
    assert np.array_equal(np.asarray(taken(affine, one)), table[flags])
    assert np.array_equal(np.asarray(together(one, other)), flags & others)
    kept = taken_valid(one, other)
    assert np.array_equal(np.ones(others.sum(), bool) if kept is None else np.asarray(kept), flags[others])


@given(st.lists(AFFINE_TABLES, min_size=1, max_size=3), st.integers(-100, 100))
def test_a_mask_in_closed_form_is_the_sum_compared(affine_tables: list[AffineTable], bound: int) -> None:
    axes = [Axis(f"a{number}", table.count) for number, table in enumerate(affine_tables)]
    terms = [ConstantTerm(np.asarray(table), (axis,)) for table, axis in zip(affine_tables, axes, strict=True)]
    tile = ConstantTile(DTYPES["int64"], (), (*terms, ConstantTerm(np.asarray(-bound))))
    expected = sum((term.over(axes) for term in terms), np.asarray(-bound)) < 0
    found = negative(tile)
    assert found is not None
    assert np.array_equal(np.broadcast_to(found.whole().over(axes), expected.shape), expected)
    (term,) = found.terms
    if isinstance(term, Below) and (parts := term.parts()) is not None:
        both = np.logical_and.reduce([np.broadcast_to(part.over(term.keys), term.data.shape) for part in parts])
        assert np.array_equal(both, term.data)


NUMBERS = st.integers(-7, 7).map(lambda number: number << 60)


@given(st.lists(st.lists(NUMBERS, min_size=2, max_size=3), min_size=1, max_size=3), st.integers(-8, 8), st.integers(-1, 1))
@example([[0, 4 << 60], [0, 4 << 60], [0, 4 << 60]], 8, 0)
@example([[-4 << 60, 4 << 60], [0, 3 << 60]], 7, 0)
def test_a_mask_in_closed_form_holds_where_parts_of_the_sum_leave_64_bits(rows: list[list[int]], far: int, near: int) -> None:
    bound = (far << 60) + near
    sums = reduce(np.add.outer, [np.array(row, object) for row in rows]) - bound
    assume(all(-(1 << 63) <= number < 1 << 63 for number in (*sums.flat, -bound)))
    terms = [ConstantTerm(np.array(row), (Axis(f"a{n}", len(row)),)) for n, row in enumerate(rows)]
    found = negative(ConstantTile(DTYPES["int64"], (), (*terms, ConstantTerm(np.asarray(-bound)))))
    if found is None:
        assert sum(max(map(abs, row)) for row in rows) >= 1 << 62
    else:
        axes = [axis for term in terms for axis in term.keys]
        assert np.array_equal(np.broadcast_to(found.whole().over(axes), sums.shape), sums < 0)


@given(st.integers(1, 4 * LANES), st.integers(-3, 3), st.integers(1, 5), st.data())
def test_affine_lane_positions_move_what_each_position_does(count: int, step: int, chunk: int, data: st.DataObject) -> None:
    span = data.draw(spans(count).filter(IndexInterval.any))
    found = [cells(Transfer(0, 7, maps, LANES, chunk)) for maps in maps_of(AffineTable(2, step, count), span, chunk, LANES)]
    moved = sorted(zip(*(np.concatenate(part).tolist() for part in zip(*found, strict=True)), strict=True))
    assert moved == sorted((9 + step * p, p // LANES * chunk, p % LANES) for p in range(span.low, span.high))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), min_size=1, max_size=4))
def test_elements_are_never_counted_twice(digits: list[tuple[int, int]]) -> None:
    along = tuple(Along(Axis("a", count), AffineTable(0, step, count)) for step, count in digits)
    every = np.ndindex(*(count for _, count in digits))
    accessed_elements = {sum(step * i for (step, _), i in zip(digits, index, strict=True)) for index in every}
    found = distinct(AccessMap(0, 0, along))
    assert 1 <= found <= len(accessed_elements)
    if len(accessed_elements) == np.prod([count for _, count in digits]) and _nested(digits):
        assert found == len(accessed_elements)


def _nested(digits: list[tuple[int, int]]) -> bool:
    """Whether each step is beyond all that smaller ones reach."""
    reach = 0
    for step, count in sorted(digit for digit in digits if digit[1] > 1):
        if step <= reach:
            return False
        reach += step * (count - 1)
    return True
