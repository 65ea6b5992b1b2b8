"""rmsnorm_all_reduce: the ranks' rows added up and normalised by their root mean square, on every rank.

In bulk, one launch adds up and another one normalises. In one shot every rank loads all ranks' rows and normalises each of them; in
two shots a row has an owner, which adds it up, normalises it and stores it to all. A row is one tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.all_reduce import all_reduce
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result, meet, store_to_all, sum_of_ranks, words
from tilefw.kernels.distributed.rank_results import SINGLE, Arrays, RankResult, normal, summed, wide
from tilefw.kernels.distributed.requirements import require_form, require_shape, require_summed

EPS = 1e-5


@tilefw.jit
def normalised(row, weight_ptr, columns, inside, n, eps):
    """row · weight over the root of the mean of its squares, in float32."""
    weight = tl.load(weight_ptr + columns, mask=inside, other=0).to(tl.float32)
    return row * tl.rsqrt(tl.sum(row * row, axis=0) / n + eps) * weight


@tilefw.jit
def normalise_rows(sums_ptr, weight_ptr, out_ptr, m, n, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    for row in range(tl.program_id(0), m, tl.num_programs(0)):
        total = tl.load(sums_ptr + row * n + columns, mask=inside, other=0).to(tl.float32)
        result = normalised(total, weight_ptr, columns, inside, n, eps)
        tl.store(out_ptr + row * n + columns, result.to(out_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def reduce_rows_in_one_shot(x_ptr, weight_ptr, out_ptr, words_ptr, m, n, eps, BLOCK: tl.constexpr):
    meet(words_ptr)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    for row in range(tl.program_id(0), m, tl.num_programs(0)):
        total = sum_of_ranks(x_ptr, row * n + columns, inside)
        result = normalised(total, weight_ptr, columns, inside, n, eps)
        tl.store(out_ptr + row * n + columns, result.to(out_ptr.dtype.element_ty), mask=inside)
    meet(words_ptr)


@tilefw.jit
def reduce_rows_in_two_shots(x_ptr, weight_ptr, out_ptr, words_ptr, m, n, eps, BLOCK: tl.constexpr):
    meet(words_ptr)
    columns = tl.arange(0, BLOCK)
    inside, ranks = columns < n, tld.num_ranks()
    for row in range(tl.program_id(0) * ranks + tld.rank(), m, tl.num_programs(0) * ranks):
        total = sum_of_ranks(x_ptr, row * n + columns, inside)
        result = normalised(total, weight_ptr, columns, inside, n, eps)
        store_to_all(out_ptr, result.to(out_ptr.dtype.element_ty), row * n + columns, inside)
    meet(words_ptr)


FUSED = {"one_shot": reduce_rows_in_one_shot, "two_shot": reduce_rows_in_two_shots}
FORMS = ("bulk", *FUSED)


@leaves_its_result
def rmsnorm_all_reduce(
    node: SymmetricNode, x: Any, weight: Any, form: str = "two_shot", *, eps: float = EPS, programs: int = 2, **launch: Any
) -> Any:
    """The rows of the sum of the matrices x, normalised and times weight, on every rank. Raises LaunchError TFW0872."""
    require_form("rmsnorm_all_reduce", form, FORMS, programs=programs)
    require_summed("rmsnorm_all_reduce", x.dtype)
    m, n = require_shape("x", x, (None, None))
    require_shape("weight", weight, (n,))
    out, block = node.zeros((m, n), x.dtype, name="normalised rows"), tilefw.next_power_of_2(n)
    if form == "bulk":
        sums = all_reduce(node, x, "two_shot", programs=programs, out_dtype="float32", **launch)
        node.launch(normalise_rows, (programs,), sums, weight, out, m, n, eps, BLOCK=block, **launch)
        return out
    node.launch(FUSED[form], (programs,), x, weight, out, words(node, programs), m, n, eps, BLOCK=block, **launch)
    return out


def draw(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    """n rows of each rank, and one weight for all."""
    return normal(rng, ranks, (n, n + 5), dtype), normal(rng, 1, (n + 5,), dtype) * ranks


def expected(x: Arrays, weight: Arrays, eps: float = EPS) -> list[RankResult]:
    """The bound carries the sums' error through x · (mean(x²) + eps)^(-1/2); 8 roundings are beside those of the n squares."""
    sums, factor = summed(x), wide(weight[0])
    mean = (sums.value**2).mean(-1, keepdims=True) + float(np.float32(eps))
    squares = (2 * np.abs(sums.value) * sums.bound + sums.bound**2).mean(-1, keepdims=True) / mean
    relative = 0.5 * squares * (1 + squares) + (sums.value.shape[-1] / 2 + 8) * SINGLE
    value = sums.value / np.sqrt(mean) * factor
    bound = np.abs(factor) * sums.bound / np.sqrt(mean) * (1 + relative) + np.abs(value) * relative
    return [RankResult(value, bound)] * len(x)
