"""The programs of the grid as a product of axes: each number that the kernel derives from a program's id depends on few of them.

A kernel that makes a row and a column of blocks from one id, in whatever order, has two axes here. The factors are found from
the numbers themselves: each partitions the programs, and partitions that are independent of each other are the axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.graph import Axis
from tilefw_spatial.lower.constant_tile import ConstantTerm, Key

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """Some programs of a grid: `numbers[i, j, …]` is the program at index i of the first axis, j of the second, and so on."""

    grid: tuple[int, int, int]
    axes: tuple[Axis, ...]
    numbers: Labels

    @property
    def count(self) -> int:
        return self.numbers.size

    def id_along(self, axis: int) -> ConstantTerm:
        """The programs' ids along an axis of the grid; axis 0 runs fastest."""
        x, y, _ = self.grid
        ids = (self.numbers % x, self.numbers // x % y, self.numbers // (x * y))[axis]
        keys: tuple[Key, ...] = self.axes
        return ConstantTerm(ids, keys).minimal()


def flat(grid: tuple[int, int, int], numbers: Labels) -> Programs:
    """Programs along one axis."""
    return Programs(grid, (Axis("program", numbers.size),), numbers)


def factored(programs: Programs, quantities: Sequence[Labels]) -> Programs:
    """The programs of one axis as a product of axes, found from numbers that each of them has."""
    factors = _factors(quantities, programs.count)
    names = "program" if len(factors) == 1 else "program{}"
    axes = tuple(Axis(names.format(i), int(labels.max()) + 1) for i, labels in enumerate(factors))
    numbers = np.empty([axis.extent for axis in axes], np.int64)
    numbers[tuple(factors)] = programs.numbers
    return Programs(programs.grid, axes, numbers)


def labels_of(numbers: Labels) -> Labels:
    """For each number how many different smaller ones there are. Those of programs mostly ascend, and need no sorting."""
    flat = numbers.reshape(-1)
    steps = np.diff(flat)
    if (steps >= 0).all():
        return np.concatenate(([0], np.cumsum(steps > 0))) if flat.size else flat
    return np.unique(flat, return_inverse=True)[1].reshape(-1)


def _factors(quantities: Sequence[Labels], count: int) -> list[Labels]:
    """Independent partitions that together distinguish all programs; the programs themselves where there are none."""
    labelled = [labels_of(quantity) for quantity in quantities]
    chosen: list[Labels] = []
    joint = np.zeros(count, np.int64)
    for labels in sorted(labelled, key=lambda labels: int(labels.max())):
        factor = _independent(joint, labels)
        if factor is not None:
            chosen.append(factor)
            joint = _joined(joint, factor)
    if chosen and int(joint.max()) + 1 == count:
        return chosen
    rest = _ranks(joint, np.arange(count))
    return [np.arange(count)] if rest is None else [*chosen, rest]


def _independent(joint: Labels, labels: Labels) -> Labels | None:
    """What `labels` distinguishes beyond `joint`, as a factor of equal extent for all of it; None where that is nothing or no
    factor."""
    both = _joined(joint, labels)
    classes, combined = int(joint.max()) + 1, int(both.max()) + 1
    if combined == classes:
        return None
    if combined == classes * (int(labels.max()) + 1):
        return labels
    return _ranks(joint, both)


def _ranks(joint: Labels, finer: Labels) -> Labels | None:
    """The number of each class of `finer` within its class of `joint`; None where these hold different counts."""
    pairs, inverse = np.unique(np.stack([joint, finer]), axis=1, return_inverse=True)
    counts = np.bincount(pairs[0])
    if (counts != counts[0]).any():
        return None
    return (np.arange(pairs.shape[1]) % counts[0])[inverse.reshape(-1)]


def _joined(a: Labels, b: Labels) -> Labels:
    return labels_of(a * (int(b.max()) + 1) + b)


def extent(axes: Iterable[Axis]) -> int:
    """How many indices a product of axes has."""
    return prod(axis.extent for axis in axes)
