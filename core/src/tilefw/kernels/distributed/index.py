"""The collectives by name: their forms, inputs for them, what NumPy says of these in float64, and how far off a result may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tilefw.kernels.distributed import all_gather, all_gather_matmul, all_reduce, all_to_all, matmul_reduce_scatter, reduce_scatter

Arrays = Sequence[np.ndarray]
_SINGLE = 2.0**-24  # half a unit in the last place of fp32, in which all sums are


@dataclass(frozen=True, slots=True)
class RankResult:
    """One rank's result in float64, and the greatest error of each element."""

    value: np.ndarray
    bound: np.ndarray


@dataclass(frozen=True, slots=True)
class Collective:
    """`run(node, *symmetric arrays, form, **launch keywords)`. `draw` makes each argument's arrays, by a generator, for so many
    ranks, elements or rows of each, and an element type."""

    name: str
    forms: tuple[str, ...]
    run: Callable[..., Any]
    draw: Callable[[np.random.Generator, int, int, str], tuple[Arrays, ...]]
    expected: Callable[..., list[RankResult]]

    def wrong(self, results: Any, arguments: tuple[Arrays, ...]) -> list[int]:
        """The ranks whose results are beyond the bounds."""
        return [rank for rank, one in enumerate(self.expected(*arguments)) if not _holds(results[rank], one)]


def _holds(result: np.ndarray, one: RankResult) -> bool:
    error = np.abs(result.astype(np.float64).reshape(one.value.shape) - one.value)
    return bool((error <= _rounded(result, one)).all())


def _rounded(result: np.ndarray, one: RankResult) -> np.ndarray:
    """The bound, with the rounding to the result's own type."""
    half = {"float16": 2.0**-11, "float32": _SINGLE}[result.dtype.name]
    return np.where(one.bound > 0, one.bound + half * (np.abs(one.value) + one.bound) + 2.0**-25 * (result.dtype == np.float16), 0)


def _parts(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    return ([rng.standard_normal(n).astype(dtype) for _ in range(ranks)],)


def _parts_for_each(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    return _parts(rng, ranks, n * ranks, dtype)


def _exact(value: np.ndarray) -> RankResult:
    return RankResult(value.astype(np.float64), np.zeros(value.shape))


def _sum(x: Arrays) -> RankResult:
    """Of n terms in any order: (n - 1) roundings, each of at most the sum of the magnitudes (Higham, section 4.2)."""
    each = np.stack([part.astype(np.float64) for part in x])
    return RankResult(each.sum(0), len(x) * _SINGLE * np.abs(each).sum(0) + 1e-300)


def _of_rank(whole: RankResult, ranks: int, rank: int) -> RankResult:
    return RankResult(np.split(whole.value, ranks)[rank], np.split(whole.bound, ranks)[rank])


def _gathered(x: Arrays) -> list[RankResult]:
    return [_exact(np.concatenate(x))] * len(x)


def _exchanged(x: Arrays) -> list[RankResult]:
    return [_exact(np.concatenate([np.split(part, len(x))[rank] for part in x])) for rank in range(len(x))]


def _reduced(x: Arrays) -> list[RankResult]:
    return [_sum(x)] * len(x)


def _scattered(x: Arrays) -> list[RankResult]:
    return [_of_rank(_sum(x), len(x), rank) for rank in range(len(x))]


def _rows_and_columns(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    k, columns = 2 * n // 3, n + 5
    b = rng.standard_normal((k, columns)).astype(dtype)
    return [rng.standard_normal((n, k)).astype(dtype) for _ in range(ranks)], [b] * ranks


def _terms_and_columns(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    k, columns = 2 * n // 3, n + 5
    a = [rng.standard_normal((ranks * n, k)).astype(dtype) for _ in range(ranks)]
    return a, [rng.standard_normal((k, columns)).astype(dtype) for _ in range(ranks)]


def _product(a: Arrays, b: Arrays) -> RankResult:
    """The sum of all products; a term of it is exact in fp32, and a matrix unit may cut where it adds: twice a rounding."""
    wide = [(left.astype(np.float64), right.astype(np.float64)) for left, right in zip(a, b, strict=True)]
    terms = 2 * sum(left.shape[1] for left, _ in wide) + len(wide)
    value, magnitude = (np.sum([x @ y for x, y in pairs], 0) for pairs in (wide, [(np.abs(x), np.abs(y)) for x, y in wide]))
    return RankResult(value, terms * _SINGLE * magnitude + 1e-300)


def _multiplied_rows(a: Arrays, b: Arrays) -> list[RankResult]:
    return [_product([np.concatenate(a)], [b[0]])] * len(a)


def _scattered_products(a: Arrays, b: Arrays) -> list[RankResult]:
    return [_of_rank(_product(a, b), len(a), rank) for rank in range(len(a))]


_ALL = (
    Collective("all_gather", tuple(all_gather.FORMS), all_gather.all_gather, _parts, _gathered),
    Collective("all_reduce", (*all_reduce.FORMS, "ring"), all_reduce.all_reduce, _parts, _reduced),
    Collective("all_to_all", tuple(all_to_all.FORMS), all_to_all.all_to_all, _parts_for_each, _exchanged),
    Collective("reduce_scatter", tuple(reduce_scatter.FORMS), reduce_scatter.reduce_scatter, _parts_for_each, _scattered),
    Collective(
        "all_gather_matmul", all_gather_matmul.FORMS, all_gather_matmul.all_gather_matmul, _rows_and_columns, _multiplied_rows
    ),
    Collective(
        "matmul_reduce_scatter", matmul_reduce_scatter.FORMS, matmul_reduce_scatter.matmul_reduce_scatter, _terms_and_columns,
        _scattered_products,
    ),
)
COLLECTIVES: Mapping[str, Collective] = MappingProxyType({one.name: one for one in _ALL})
