"""What NumPy says in float64 that each rank must have, with the greatest error of each element, and inputs drawn for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]
"""One for each rank."""
SINGLE = 2.0**-24
"""Half a unit in the last place of fp32, in which all sums are."""
TINY = 1e-300
"""A bound of nothing but a result's own rounding; a bound of zero says that the result is exact."""
# Half a unit in the last place, and half the least subnormal number.
ROUNDING = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134), "float32": (SINGLE, 2.0**-150)}


@dataclass(frozen=True, slots=True)
class RankResult:
    """One rank's result in float64, and the greatest error of each element."""

    value: np.ndarray
    bound: np.ndarray

    def holds(self, result: np.ndarray) -> bool:
        """Whether a result is within the bound."""
        error = np.abs(result.astype(np.float64).reshape(self.value.shape) - self.value)
        return bool((error <= self.bound_of(result.dtype)).all())

    def bound_of(self, dtype: np.dtype[Any]) -> np.ndarray:
        """The bound with the rounding to a result's own type."""
        return np.where(self.bound > 0, rounded_to(dtype, self), 0)

    def part(self, ranks: int, rank: int) -> RankResult:
        """A rank's part of it along the first axis."""
        return RankResult(np.split(self.value, ranks)[rank], np.split(self.bound, ranks)[rank])


def rounded_to(dtype: np.dtype[Any], result: RankResult) -> np.ndarray:
    """The greatest error of a result that is rounded to a type."""
    half, least = ROUNDING[dtype.name]
    return result.bound + half * (np.abs(result.value) + result.bound) + least


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def normal(rng: np.random.Generator, ranks: int, shape: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    """Normal numbers of a type, others on each rank."""
    import ml_dtypes  # noqa: F401 - so that NumPy knows the names of narrow floats

    return [rng.standard_normal(shape).astype(np.dtype(dtype)) for _ in range(ranks)]


def exact(value: np.ndarray) -> RankResult:
    return RankResult(wide(value), np.zeros(value.shape))


def summed(x: Arrays) -> RankResult:
    """Of n terms in any order: (n - 1) roundings, each of at most the sum of the magnitudes (Higham, section 4.2)."""
    each = np.stack([wide(part) for part in x])
    return RankResult(each.sum(0), len(x) * SINGLE * np.abs(each).sum(0) + TINY)


def multiplied(a: Arrays, b: Arrays) -> RankResult:
    """The sum of all products: a matrix unit may cut where it adds, twice a rounding for each term but one; fp32 rounds terms."""
    pairs = [(wide(left), wide(right)) for left, right in zip(a, b, strict=True)]
    terms = 2 * sum(left.shape[1] for left, _ in pairs) + len(pairs)
    value, magnitude = (np.sum([x @ y for x, y in of], 0) for of in (pairs, [(np.abs(x), np.abs(y)) for x, y in pairs]))
    return RankResult(value, terms * SINGLE * magnitude + TINY)
