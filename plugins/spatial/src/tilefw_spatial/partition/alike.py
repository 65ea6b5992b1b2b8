"""Whether arrays of several chips lie alike, so that vector v of one is vector v of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from tilefw_spatial.stream_program import Array, StreamProgram


def same(left: object, right: object) -> bool:
    """Whether two facts are equal, tables of numbers within them too."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and np.array_equal(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if is_dataclass(left) and type(left) is type(right):
        return all(same(getattr(left, field.name), getattr(right, field.name)) for field in fields(left))
    return left == right


def same_data(left: Array, right: Array) -> bool:
    """Whether two arrays have the same elements of the host's buffers in the same lanes of the same vectors."""
    shape = (left.dtype, left.vectors, left.groups, left.role) == (right.dtype, right.vectors, right.groups, right.role)
    return shape and same(left.transfers, right.transfers) and same(left.data, right.data)


def results_alike(programs: Sequence[StreamProgram]) -> bool:
    """Whether all chips make the same results in the same lanes."""
    return all(same_data(a, b) for program in programs[1:] for a, b in zip(programs[0].results, program.results, strict=True))
