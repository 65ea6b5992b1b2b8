"""Is an array what the reference expects? Error over bound for every element; nobody types a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.tile.reference.value import Array, EvaluatedValue

MOST_FREE = 0.01  # a case with more undecided elements than this tests too little: "bad case" (architecture, section 6)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on one array.

    `worst` is the largest error over its bound (0 where all is equal, infinity where an exact element differs), at
    `worst_index`, where `actual` was found and `expected` within `bound` was due. `free_fraction` is the part of elements
    that the reference leaves open; above 1 % the case is `bad` and not ok. `wrong` counts elements out of bounds.
    """

    ok: bool
    worst: float
    worst_index: tuple[int, ...] | None
    free_fraction: float
    elements: int
    wrong: int = 0
    actual: float | int | None = None
    expected: float | int | None = None
    bound: float = 0.0
    bad: bool = False

    def __str__(self) -> str:
        if self.bad and not self.wrong:
            return f"bad case: {self.free_fraction:.1%} of {self.elements} elements are undecided"
        if self.ok:
            return f"ok: {self.elements} elements, largest error {self.worst:.3g} of its bound"
        where = "" if self.worst_index is None else f" at {list(self.worst_index)}: {self.actual!r}, expected {self.expected!r}"
        return f"{self.wrong} of {self.elements} elements are wrong; worst{where} ± {self.bound:.3g}"


def compare(actual: Array, expected: EvaluatedValue) -> Comparison:
    """`actual`, an array of the output's element type, against reference values, bounds and free mask of as many elements.

    A NaN equals any NaN; infinities equal themselves; zeros of either sign are equal where there is a bound, and must
    agree in sign where the reference is exact.
    """
    got = _as_f64(actual)
    shape = got.shape
    want = np.broadcast_to(expected.x.reshape(-1)[: got.size], (got.size,)).reshape(shape)
    err = None if expected.err is None else expected.err.reshape(-1)[: got.size].reshape(shape)
    free = None if expected.free is None else expected.free.reshape(-1)[: got.size].reshape(shape)
    if got.size == 0:
        return Comparison(True, 0.0, None, 0.0, 0)
    ratio = _ratio_of_floats(got, want, err, free) if want.dtype == np.float64 else _ratio_of_integers(got, want, free)
    index = np.unravel_index(int(np.argmax(ratio)), shape)
    worst = float(ratio[index])
    fraction = 0.0 if free is None else float(free.mean())
    wrong = int((ratio > 1.0).sum())
    bad = fraction > MOST_FREE
    return Comparison(
        ok=wrong == 0 and not bad, worst=worst, worst_index=tuple(int(i) for i in index), free_fraction=fraction,
        elements=got.size, wrong=wrong, actual=got[index].item(), expected=want[index].item(),
        bound=0.0 if err is None else float(err[index]), bad=bad,
    )


def _as_f64(array: Any) -> Array:
    """Floats of any format as f64, the rest as it is."""
    array = np.asarray(array)
    if array.dtype.kind in "fV" or array.dtype.name.startswith(("bfloat", "float")):
        with np.errstate(invalid="ignore"):
            return array.astype(np.float64)
    return array


def _ratio_of_floats(got: Array, want: Array, err: Array | None, free: Array | None) -> Array:
    if got.dtype != np.float64:
        got = got.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        exact = same & ((np.signbit(got) == np.signbit(want)) | (got != 0))
        if err is None:
            return np.where(exact, 0.0, np.inf)
        ratio = np.where(err > 0, np.abs(got - want) / err, np.inf)
        ratio = np.where(same & (err > 0) | exact, 0.0, np.where(np.isnan(ratio), np.inf, ratio))
        unbounded = ~np.isfinite(err)
        if free is not None:
            unbounded = unbounded | (free & ~np.isfinite(err))
        return np.where(unbounded, 0.0, ratio)


def _ratio_of_integers(got: Array, want: Array, free: Array | None) -> Array:
    bits = max(1, want.dtype.itemsize * 8)
    left = got.astype(np.int64) if got.dtype.kind != "u" else got.astype(np.uint64).view(np.int64)
    right = want.astype(np.int64)
    mask = np.int64(-1 if bits == 64 or want.dtype == np.bool_ else (1 << bits) - 1)
    ratio = np.where((left & mask) == (right & mask), 0.0, np.inf)
    return ratio if free is None else np.where(free, 0.0, ratio)
