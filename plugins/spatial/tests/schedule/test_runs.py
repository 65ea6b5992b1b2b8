"""Runs and row accesses of an access pattern read its vectors, at its points, in the rows of the array's allocation."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api.integers import ceil_div
from tilefw_spatial.program import RowAllocation, SliceRows
from tilefw_spatial.schedule.runs import row_accesses, runs
from tilefw_spatial.stream_program import AccessPattern, Array

VECTORS = 4000


@st.composite
def patterns(draw: st.DrawFn) -> tuple[tuple[int, ...], AccessPattern]:
    domain = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=4)))
    strides = tuple(draw(st.sampled_from((-13, -1, 0, 1, 2, 3, 4, 6, 12, 40))) for _ in domain)
    array = Array("x", "fp32", VECTORS, "in")
    pattern = AccessPattern(array, 2000, strides)
    if draw(st.booleans()):
        table = np.array([v for _, v in _accessed(domain, pattern)], np.int64)
        noise = draw(st.lists(st.integers(0, len(table) - 1), max_size=3))
        table[noise] += 7
        pattern = AccessPattern(array, 0, (), table)
    return domain, pattern


def _accessed(domain: tuple[int, ...], pattern: AccessPattern) -> list[tuple[int, int]]:
    """Point and vector, by the definition of an access pattern."""
    if pattern.table is not None:
        return [*enumerate(pattern.table.tolist())]
    found = []
    for point, index in enumerate(product(*map(range, domain))):
        found.append((point, pattern.start + sum(i * s for i, s in zip(index, pattern.strides, strict=True))))
    return found


def _allocation(groups: int, rows: int) -> RowAllocation:
    segment = groups * rows
    blocks = ceil_div(VECTORS, segment) * groups
    planes = tuple(tuple(SliceRows(f"plane{byte}.{place}", 0, 100 * place) for place in range(blocks)) for byte in range(2))
    return RowAllocation("fp16", VECTORS, planes, groups, segment)


@given(patterns(), st.integers(1, 5))
def test_runs_are_the_access_pattern(case: tuple[tuple[int, ...], AccessPattern], every: int) -> None:
    domain, pattern = case
    found = []
    for run in runs(domain, pattern, every):
        found += zip(run.points().ravel().tolist(), run.vectors().ravel().tolist(), strict=True)
        assert run.bounds() == (run.vectors().min(), run.vectors().max())
    assert found == [(point * every, vector) for point, vector in _accessed(domain, pattern)]


@given(patterns(), st.integers(1, 3), st.sampled_from((1, 2, 8)), st.sampled_from((7, 64, 500, 4000)))
def test_row_accesses_are_the_rows_of_the_access_pattern(
    case: tuple[tuple[int, ...], AccessPattern], every: int, groups: int, rows: int
) -> None:
    domain, pattern = case
    allocation = _allocation(groups, rows)
    found = {}
    for access in row_accesses(runs(domain, pattern, every), allocation):
        for k in range(access.repeats):
            for i in range(access.count):
                point = access.point + k * access.period + i
                assert point < access.end and point not in found
                found[point] = (
                    access.block, allocation.planes[0][access.block].row + access.row + k * access.jump + i * access.step
                )
    expected = {}
    for point, vector in _accessed(domain, pattern):
        segment, within = divmod(vector, allocation.segment)
        place = segment * allocation.groups + within % allocation.groups
        expected[point * every] = (place, allocation.planes[0][place].row + within // allocation.groups)
    assert found == expected


def test_a_nest_of_two_loops_is_one_run() -> None:
    array = Array("x", "fp32", VECTORS, "in")
    run, *_ = runs((5, 100, 3, 4), AccessPattern(array, 0, (700, 5, 4, 1)))
    assert (run.count, run.repeats, run.jump) == (12, 100, 5)
    assert len(runs((5, 100, 3, 4), AccessPattern(array, 0, (1200, 12, 4, 1)))) == 1
