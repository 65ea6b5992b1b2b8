"""Runs and accesses of a walk touch the vectors of the walk, at its points, in the rows where its home has them."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilefw.api.integers import ceil_div
from tilefw_spatial.program import Home, Rows
from tilefw_spatial.schedule.runs import accesses, runs
from tilefw_spatial.sweep import Array, Walk

VECTORS = 4000


@st.composite
def walks(draw: st.DrawFn) -> tuple[tuple[int, ...], Walk]:
    domain = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=4)))
    strides = tuple(draw(st.sampled_from((-13, -1, 0, 1, 2, 3, 4, 6, 12, 40))) for _ in domain)
    array = Array("x", "fp32", VECTORS, "in")
    walk = Walk(array, 2000, strides)
    if draw(st.booleans()):
        table = np.array([v for _, v in _walked(domain, walk)], np.int64)
        noise = draw(st.lists(st.integers(0, len(table) - 1), max_size=3))
        table[noise] += 7
        walk = Walk(array, 0, (), table)
    return domain, walk


def _walked(domain: tuple[int, ...], walk: Walk) -> list[tuple[int, int]]:
    """Point and vector, by the definition of a walk."""
    if walk.table is not None:
        return [*enumerate(walk.table.tolist())]
    found = []
    for point, index in enumerate(product(*map(range, domain))):
        found.append((point, walk.start + sum(i * s for i, s in zip(index, walk.strides, strict=True))))
    return found


def _home(groups: int, rows: int) -> Home:
    segment = groups * rows
    places = ceil_div(VECTORS, segment) * groups
    planes = tuple(tuple(Rows(f"plane{byte}.{place}", 0, 100 * place) for place in range(places)) for byte in range(2))
    return Home("fp16", VECTORS, planes, groups, segment)


@given(walks(), st.integers(1, 5))
def test_runs_are_the_walk(case: tuple[tuple[int, ...], Walk], every: int) -> None:
    domain, walk = case
    found = []
    for run in runs(domain, walk, every):
        found += zip(run.points().ravel().tolist(), run.vectors().ravel().tolist(), strict=True)
        assert run.bounds() == (run.vectors().min(), run.vectors().max())
    assert found == [(point * every, vector) for point, vector in _walked(domain, walk)]


@given(walks(), st.integers(1, 3), st.sampled_from((1, 2, 8)), st.sampled_from((7, 64, 500, 4000)))
def test_accesses_are_the_rows_of_the_walk(case: tuple[tuple[int, ...], Walk], every: int, groups: int, rows: int) -> None:
    domain, walk = case
    home = _home(groups, rows)
    found = {}
    for access in accesses(runs(domain, walk, every), home):
        for k in range(access.repeats):
            for i in range(access.count):
                point = access.point + k * access.period + i
                assert point < access.end and point not in found
                found[point] = (access.place, home.planes[0][access.place].row + access.row + k * access.jump + i * access.step)
    expected = {}
    for point, vector in _walked(domain, walk):
        segment, within = divmod(vector, home.segment)
        place = segment * home.groups + within % home.groups
        expected[point * every] = (place, home.planes[0][place].row + within // home.groups)
    assert found == expected


def test_a_nest_of_two_loops_is_one_run() -> None:
    array = Array("x", "fp32", VECTORS, "in")
    run, *_ = runs((5, 100, 3, 4), Walk(array, 0, (700, 5, 4, 1)))
    assert (run.count, run.repeats, run.jump) == (12, 100, 5)
    assert len(runs((5, 100, 3, 4), Walk(array, 0, (1200, 12, 4, 1)))) == 1
