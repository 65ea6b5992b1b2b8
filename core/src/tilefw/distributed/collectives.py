"""Collectives carried out by the host, for comparison with what kernels do: the arrays of all ranks in, those of all ranks out.

Floats are added in float64 and rounded once; integers wrap around as the device's do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilefw.api.errors import LaunchError, UsageError

Arrays = Sequence[np.ndarray]

_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}


def all_reduce(arrays: Arrays, op: str = "sum") -> list[np.ndarray]:
    """Every rank has the `sum`, `max` or `min` of all ranks' elements."""
    if op not in _REDUCTIONS:
        raise UsageError(f"a reduction is one of {', '.join(_REDUCTIONS)}, not {op!r}", code="TFW0902")
    kind = arrays[0].dtype
    wide = [array if np.issubdtype(kind, np.integer) else array.astype(np.float64) for array in arrays]
    total = _REDUCTIONS[op](np.stack(wide), axis=0, dtype=wide[0].dtype) if op == "sum" else _REDUCTIONS[op](np.stack(wide), axis=0)
    return [total.astype(kind) for _ in arrays]


def all_gather(arrays: Arrays) -> list[np.ndarray]:
    """Every rank has the arrays of all ranks, one behind the other along the first axis."""
    return [np.concatenate(arrays) for _ in arrays]


def reduce_scatter(arrays: Arrays, op: str = "sum") -> list[np.ndarray]:
    """Each rank has its part, along the first axis, of what `all_reduce` gives. Raises LaunchError TFW0872."""
    return [_parts(total, len(arrays))[rank] for rank, total in enumerate(all_reduce(arrays, op))]


def all_to_all(arrays: Arrays) -> list[np.ndarray]:
    """Each rank has, in the order of the ranks, that part of every rank's array which is for it. Raises LaunchError TFW0872."""
    parts = [_parts(array, len(arrays)) for array in arrays]
    return [np.concatenate([part[rank] for part in parts]) for rank in range(len(arrays))]


def broadcast(arrays: Arrays, root: int = 0) -> list[np.ndarray]:
    """Every rank has the array of one."""
    return [arrays[root].copy() for _ in arrays]


def _parts(array: np.ndarray, ranks: int) -> list[np.ndarray]:
    if array.ndim == 0 or array.shape[0] % ranks:
        raise LaunchError(f"an array of shape {list(array.shape)} has no {ranks} equal parts along its first axis", code="TFW0872")
    return np.split(array, ranks)
