"""Access patterns as few bursts: which vectors at which points, and which rows of which blocks those are.

A run is an arithmetic progression of vectors over equally spaced points, and the whole of it repeated. A loop nest costs as many
runs as its loops have iterations outside the two innermost ones that do not continue one another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div
from tilefw_spatial.program import RowAllocation
from tilefw_spatial.stream_program import AccessPattern


@dataclass(frozen=True, slots=True)
class AccessRun:
    """`count` vectors `vector + i * step` at points `point + i * spacing`; all of it `repeats` times, `period` points and `jump`
    vectors further each time."""

    point: int
    vector: int
    count: int
    step: int
    spacing: int = 1
    repeats: int = 1
    period: int = 0
    jump: int = 0

    def rows(self) -> Iterator[AccessRun]:
        """The repetitions one by one."""
        if self.repeats == 1:
            yield self
            return
        for k in range(self.repeats):
            point, vector = self.point + k * self.period, self.vector + k * self.jump
            yield AccessRun(point, vector, self.count, self.step, self.spacing)

    def points(self) -> NDArray[np.int64]:
        """Every point, [repeats, count]."""
        return _grid(self.point, self.repeats, self.period, self.count, self.spacing)

    def vectors(self) -> NDArray[np.int64]:
        """The vector at each point, [repeats, count]."""
        return _grid(self.vector, self.repeats, self.jump, self.count, self.step)

    @property
    def last_point(self) -> int:
        """The last point."""
        return self.point + (self.repeats - 1) * self.period + (self.count - 1) * self.spacing

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest vector."""
        corners = [
            self.vector + k * self.jump + i * self.step for k in (0, self.repeats - 1) for i in (0, self.count - 1)
        ]
        return min(corners), max(corners)


def _grid(start: int, outer: int, outer_step: int, inner: int, inner_step: int) -> NDArray[np.int64]:
    return start + outer_step * np.arange(outer)[:, None] + inner_step * np.arange(inner)[None, :]


@dataclass(frozen=True, slots=True)
class RowAccess:
    """What one queue does of a run: `count` rows from `row` on, `step` apart, on consecutive cycles from `point` on; all of it
    `repeats` times, `period` cycles and `jump` rows further each time."""

    block: int
    point: int
    row: int
    count: int
    step: int
    repeats: int = 1
    period: int = 0
    jump: int = 0

    @property
    def end(self) -> int:
        """The point behind the last."""
        return self.point + (self.repeats - 1) * self.period + self.count


def runs(domain: tuple[int, ...], pattern: AccessPattern, every: int = 1) -> list[AccessRun]:
    """The runs of an access pattern, in order of time. Where `every` points make one, it is over every `every`-th point."""
    if pattern.table is not None:
        found = _of_table(pattern.table)
    else:
        found = _of_strides(domain, pattern.start, pattern.strides)
    return found if every == 1 else [_stretched(run, every) for run in found]


def _stretched(run: AccessRun, every: int) -> AccessRun:
    return replace(run, point=run.point * every, spacing=run.spacing * every, period=run.period * every)


def _of_strides(domain: tuple[int, ...], start: int, strides: tuple[int, ...]) -> list[AccessRun]:
    loops = _collapsed(domain, strides)
    (count, step), (repeats, jump) = loops[-1], loops[-2] if len(loops) > 1 else (1, 0)
    outer = loops[:-2]
    size = count * repeats
    found: list[AccessRun] = []
    for number, index in enumerate(product(*(range(extent) for extent, _ in outer))):
        vector = start + sum(i * stride for i, (_, stride) in zip(index, outer, strict=True))
        found.append(AccessRun(number * size, vector, count, step, 1, repeats, count if repeats > 1 else 0, jump))
    return found


def _collapsed(domain: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Loops (extent, stride), outermost first, without those of one iteration; one that goes on where the next ends is one with
    it."""
    loops: list[tuple[int, int]] = []
    for extent, stride in reversed([*zip(domain, strides, strict=True)]):
        if extent == 1:
            continue
        if loops and stride == loops[0][0] * loops[0][1]:
            loops[0] = (loops[0][0] * extent, loops[0][1])
        else:
            loops.insert(0, (extent, stride))
    return loops or [(1, 0)]


def _of_table(table: NDArray[np.int64]) -> list[AccessRun]:
    """Greedily the longest progressions, from the first point on."""
    last = len(table) - 1
    steps = np.diff(table)
    ends = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), last]  # points where a progression of one step ends
    found: list[AccessRun] = []
    point = 0
    while point <= last:
        if point == last:
            end, step = point, 0
        else:
            end, step = ends[bisect_right(ends, point)], int(steps[point])
        found.append(AccessRun(point, int(table[point]), end - point + 1, step))
        point = end + 1
    return found


def row_accesses(found: Iterable[AccessRun], allocation: RowAllocation) -> list[RowAccess]:
    """What the row blocks of an array have to do for these runs."""
    result: list[RowAccess] = []
    for run in found:
        low, high = run.bounds()
        if allocation.groups == 1 and low // allocation.segment == high // allocation.segment:
            result += _in_one_block(run, low // allocation.segment, allocation.segment)
        else:
            for row in run.rows():
                for part in _by_segment(row, allocation.segment):
                    result += _by_group(part, allocation)
    return result


def _in_one_block(run: AccessRun, block: int, segment: int) -> Iterator[RowAccess]:
    row = run.vector - block * segment
    if run.spacing == 1:
        yield RowAccess(block, run.point, row, run.count, run.step, run.repeats, run.period, run.jump)
    else:
        for part in run.rows():
            yield _spaced(part, block, part.vector - block * segment, part.step)


def _spaced(run: AccessRun, block: int, row: int, step: int) -> RowAccess:
    """One row each `spacing` cycles: a burst of one, repeated."""
    if run.spacing == 1 or run.count == 1:
        return RowAccess(block, run.point, row, run.count, step if run.count > 1 else 0)
    return RowAccess(block, run.point, row, 1, 0, run.count, run.spacing, step)


def _by_segment(run: AccessRun, segment: int) -> Iterator[AccessRun]:
    """A run without repetitions, divided where it goes from one segment to another."""
    first = 0
    while first < run.count:
        vector = run.vector + first * run.step
        count = run.count - first
        if run.step > 0:
            count = min(count, ceil_div(segment - vector % segment, run.step))
        elif run.step < 0:
            count = min(count, vector % segment // -run.step + 1)
        yield AccessRun(run.point + first * run.spacing, vector, count, run.step, run.spacing)
        first += count


def _by_group(run: AccessRun, allocation: RowAllocation) -> Iterator[RowAccess]:
    """A run within one segment, divided among the groups, which its vectors reach cyclically."""
    segment, within = divmod(run.vector, allocation.segment)
    period = min(run.count, allocation.groups // gcd(allocation.groups, run.step))
    for k in range(period):
        count = (run.count - k - 1) // period + 1
        row, group = divmod(within + k * run.step, allocation.groups)
        part = AccessRun(run.point + k * run.spacing, run.vector, count, run.step, run.spacing * period)
        yield _spaced(part, segment * allocation.groups + group, row, run.step * period // allocation.groups)

