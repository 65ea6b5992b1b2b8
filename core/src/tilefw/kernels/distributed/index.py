"""The collectives by name: their forms and usual sizes, inputs for them, and what each rank must have of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tilefw.kernels.distributed import (
    all_gather,
    all_gather_matmul,
    all_reduce,
    all_to_all,
    distributed_decode,
    matmul_all_reduce,
    matmul_reduce_scatter,
    moe_dispatch_combine,
    pipeline_send_recv,
    reduce_scatter,
    ring_attention,
    rmsnorm_all_reduce,
)
from tilefw.kernels.distributed.rank_results import Arrays, RankResult, exact, multiplied, normal, summed
from tilefw.kernels.distributed.requirements import SUMMED


@dataclass(frozen=True, slots=True)
class Collective:
    """`run(node, *symmetric arrays, form, **launch keywords)`. `draw` makes each argument's arrays, by a generator, for so many
    ranks, `n` elements, rows or the like of each (`counts` says of what), and an element type of `dtypes`, the usual one first.
    `n` is the usual size, `small` one of which few programs have work, and which no block divides. Launch keywords of `meaning`
    change what is expected."""

    name: str
    forms: tuple[str, ...]
    run: Callable[..., Any]
    draw: Callable[[np.random.Generator, int, int, str], tuple[Arrays, ...]]
    expected: Callable[..., list[RankResult]]
    counts: str = "elements"
    n: int = 1000
    small: int = 777
    dtypes: tuple[str, ...] = SUMMED
    meaning: tuple[str, ...] = ()

    def wrong(self, results: Any, arguments: tuple[Arrays, ...], launch: Mapping[str, Any] = MappingProxyType({})) -> list[int]:
        """The ranks whose results, of a launch with these keywords, are beyond the bounds."""
        said = {name: launch[name] for name in self.meaning if name in launch}
        return [rank for rank, one in enumerate(self.expected(*arguments, **said)) if not one.holds(results[rank])]


def _parts(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    return (normal(rng, ranks, (n,), dtype),)


def _parts_for_each(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    return _parts(rng, ranks, n * ranks, dtype)


def _gathered(x: Arrays) -> list[RankResult]:
    return [exact(np.concatenate(x))] * len(x)


def _exchanged(x: Arrays) -> list[RankResult]:
    return [exact(np.concatenate([np.split(part, len(x))[rank] for part in x])) for rank in range(len(x))]


def _reduced(x: Arrays) -> list[RankResult]:
    return [summed(x)] * len(x)


def _scattered(x: Arrays) -> list[RankResult]:
    return [summed(x).part(len(x), rank) for rank in range(len(x))]


def _rows_and_columns(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    k, columns = max(2 * n // 3, 1), n + 5
    return normal(rng, ranks, (n, k), dtype), normal(rng, 1, (k, columns), dtype) * ranks


def _terms_and_columns(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    k, columns = max(2 * n // 3, 1), n + 5
    return normal(rng, ranks, (ranks * n, k), dtype), normal(rng, ranks, (k, columns), dtype)


def _shares_of_terms(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    k, columns = max(2 * n // 3, 1), n + 5
    return normal(rng, ranks, (n, k), dtype), normal(rng, ranks, (k, columns), dtype)


def _multiplied_rows(a: Arrays, b: Arrays) -> list[RankResult]:
    return [multiplied([np.concatenate(a)], [b[0]])] * len(a)


def _scattered_products(a: Arrays, b: Arrays) -> list[RankResult]:
    return [multiplied(a, b).part(len(a), rank) for rank in range(len(a))]


def _reduced_products(a: Arrays, b: Arrays) -> list[RankResult]:
    return [multiplied(a, b)] * len(a)


_MATRICES: Mapping[str, Any] = {"counts": "rows", "n": 64, "small": 45, "dtypes": ("float16", "bfloat16", "float32")}
_POSITIONS: Mapping[str, Any] = {**_MATRICES, "counts": "positions", "meaning": ("causal",)}
_KEYS: Mapping[str, Any] = {**_MATRICES, "counts": "keys"}
_ALL = (
    Collective("all_gather", tuple(all_gather.FORMS), all_gather.all_gather, _parts, _gathered),
    Collective("all_reduce", all_reduce.FORMS, all_reduce.all_reduce, _parts, _reduced),
    Collective("all_to_all", tuple(all_to_all.FORMS), all_to_all.all_to_all, _parts_for_each, _exchanged),
    Collective("reduce_scatter", tuple(reduce_scatter.FORMS), reduce_scatter.reduce_scatter, _parts_for_each, _scattered),
    Collective(
        "all_gather_matmul", all_gather_matmul.FORMS, all_gather_matmul.all_gather_matmul, _rows_and_columns, _multiplied_rows,
        **_MATRICES,
    ),
    Collective(
        "matmul_reduce_scatter", matmul_reduce_scatter.FORMS, matmul_reduce_scatter.matmul_reduce_scatter, _terms_and_columns,
        _scattered_products, **_MATRICES,
    ),
    Collective(
        "matmul_all_reduce", matmul_all_reduce.FORMS, matmul_all_reduce.matmul_all_reduce, _shares_of_terms, _reduced_products,
        **_MATRICES,
    ),
    Collective(
        "rmsnorm_all_reduce", rmsnorm_all_reduce.FORMS, rmsnorm_all_reduce.rmsnorm_all_reduce, rmsnorm_all_reduce.draw,
        rmsnorm_all_reduce.expected, counts="rows", n=64, small=45, meaning=("eps",),
    ),
    Collective(
        "ring_attention", ring_attention.FORMS, ring_attention.ring_attention, ring_attention.draw, ring_attention.expected,
        **_POSITIONS,
    ),
    Collective(
        "distributed_decode", distributed_decode.FORMS, distributed_decode.distributed_decode, distributed_decode.draw,
        distributed_decode.expected, **_KEYS,
    ),
    Collective(
        "pipeline_send_recv", pipeline_send_recv.FORMS, pipeline_send_recv.pipeline_send_recv, pipeline_send_recv.draw,
        pipeline_send_recv.expected, **_MATRICES,
    ),
    Collective(
        "moe_dispatch_combine", moe_dispatch_combine.FORMS, moe_dispatch_combine.moe_dispatch_combine, moe_dispatch_combine.draw,
        moe_dispatch_combine.expected, **_MATRICES,
    ),
)
COLLECTIVES: Mapping[str, Collective] = MappingProxyType({one.name: one for one in _ALL})
