"""Host arrays that nobody has written: `tilefw.empty` makes them, and the check `uninitialised_host` tells what is left of them.

NumPy does not say which elements of `np.empty` were ever assigned. An array made here is filled with a pattern that no program
writes by chance: groups of eight bytes that depend on a secret of the process and on their place in the array. A group that still
holds its pattern has not been written; a copy of the array is as unwritten as the array.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_GROUP = 8
_SECRET = np.frombuffer(os.urandom(_GROUP), np.uint64)[0]
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: neighbours' patterns have nothing in common


def empty(shape: Any, dtype: Any = float) -> np.ndarray:
    """A new array, as `numpy.empty` makes it, whose elements count as unwritten until something is assigned to them.

    `shape` and `dtype` are NumPy's. The check `uninitialised_host` reports a kernel that reads an element which neither the host
    nor the kernel has written. An array of fewer than 8 bytes, and the last bytes of one whose size is not a multiple of 8, count
    as written.
    """
    array = np.empty(shape, dtype)
    _mark(array)
    return array


def empty_like(prototype: Any, dtype: Any = None) -> np.ndarray:
    """A new array of the shape and element type of another one, unwritten as that of `empty`."""
    array = np.empty_like(prototype, dtype=dtype, order="C", subok=False)
    _mark(array)
    return array


def mark_memory(start: int, nbytes: int) -> None:
    """The bytes from address `start` on count as unwritten, as an array's of `empty`."""
    _mark(np.frombuffer(memoryview((ctypes.c_ubyte * nbytes).from_address(start)), np.uint8))


def _mark(array: np.ndarray) -> None:
    groups = _groups(array.ravel(order="K").view(np.uint8) if array.size else np.zeros(0, np.uint8))
    groups[...] = _pattern(groups.size)


def _groups(raw: np.ndarray) -> np.ndarray:
    """Bytes by eight, as numbers; without what is left at their end."""
    return raw[: raw.size // _GROUP * _GROUP].view(np.uint64)


def _pattern(count: int) -> np.ndarray:
    mixed = (np.arange(1, count + 1, dtype=np.uint64) * _FACTOR) ^ _SECRET
    return mixed ^ (mixed >> np.uint64(29))


def unwritten(raw: np.ndarray) -> np.ndarray | None:
    """Which bytes of an array's memory nobody has written since `empty` made it; None where all are written."""
    groups = _groups(raw)
    same = groups == _pattern(groups.size)
    if not same.any():
        return None
    found = np.zeros(raw.size, np.bool_)
    found[: same.size * _GROUP] = np.repeat(same, _GROUP)
    return found


def mark_again(raw: np.ndarray, left: np.ndarray) -> None:
    """Of an array's memory those groups of eight bytes count as unwritten that are `left` so as a whole: one of which a part was
    written keeps what it holds."""
    groups = _groups(raw)
    whole = left[: groups.size * _GROUP].reshape(-1, _GROUP).all(axis=1)
    groups[...] = np.where(whole, _pattern(groups.size), groups)


@contextmanager
def in_place_of_numpys() -> Iterator[None]:
    """What `numpy.empty` and `numpy.empty_like` make meanwhile counts as unwritten too."""
    before = np.empty, np.empty_like

    def marked(made: np.ndarray) -> np.ndarray:
        if type(made) is np.ndarray and not made.dtype.hasobject:
            _mark(made)
        return made

    def plain(*args: Any, **keywords: Any) -> np.ndarray:
        return marked(before[0](*args, **keywords))

    def like(*args: Any, **keywords: Any) -> np.ndarray:
        return marked(before[1](*args, **keywords))

    np.empty, np.empty_like = plain, like
    try:
        yield
    finally:
        np.empty, np.empty_like = before
