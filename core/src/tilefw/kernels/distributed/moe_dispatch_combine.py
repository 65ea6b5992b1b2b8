"""moe_dispatch_combine: rows go in 8 bits to the ranks of the experts that they chose, and come back, weighted and added up.

How many rows an expert gets of a rank is known when they are sent: the signal behind them is their count and one. A row has a
scale, a power of two, so that its greatest element is below 256 (E4M3 ends at 448: OCP's OFP8, table 1). An expert is a product;
its rows go back to the places that came with them. Fused, every program does all three; in bulk each is a launch.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result
from tilefw.kernels.distributed.rank_results import SINGLE, TINY, Arrays, RankResult, normal, wide
from tilefw.kernels.distributed.requirements import require_form, require_shape

LARGEST = tl.constexpr(7)  # the exponent of a row's greatest element when it is sent


@tilefw.jit
def dispatch(
    x_ptr, chosen_ptr, payload_ptr, scales_ptr, places_ptr, counts_ptr, experts, choices, top, d, capacity, BLOCK_D: tl.constexpr
):
    """This rank's rows to their experts, in the order of the rows, and a signal to each expert."""
    ranks, here, dims = tld.num_ranks(), tld.rank(), tl.arange(0, BLOCK_D)
    for expert in range(tl.program_id(0), experts * ranks, tl.num_programs(0)):
        peer, pair = expert // experts, expert % experts * ranks + here
        count = 0
        for choice in range(choices):
            if tl.load(chosen_ptr + choice) == expert:
                row = tl.load(x_ptr + choice // top * d + dims, mask=dims < d, other=0).to(tl.float32)
                exponent = tl.maximum((tl.max(tl.abs(row), axis=0).to(tl.int32, bitcast=True) >> 23) - LARGEST, 1)
                slot = tl.cast(pair, tl.int64) * capacity + count
                sent = (row * ((254 - exponent) << 23).to(tl.float32, bitcast=True)).to(tl.float8e4nv)
                tld.store(payload_ptr + slot * d + dims, sent, peer, mask=dims < d)
                tld.store(scales_ptr + slot, (exponent << 23).to(tl.float32, bitcast=True), peer)
                tld.store(places_ptr + slot, choice, peer)
                count += 1
        tld.signal(counts_ptr + pair, peer, value=count + 1)


@tilefw.jit
def run_experts(
    payload_ptr, scales_ptr, places_ptr, counts_ptr, w_ptr, returned_ptr, done_ptr, experts, d, capacity, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Each expert's rows of each rank times its weight, back to the places that they came from."""
    ranks = tld.num_ranks()
    for pair in range(tl.program_id(0), experts * ranks, tl.num_programs(0)):
        source, expert = pair % ranks, tl.cast(pair // ranks, tl.int64)
        tld.wait(counts_ptr + pair, value=0, comparison="!=")
        count = tl.load(counts_ptr + pair) - 1
        first = tl.cast(pair, tl.int64) * capacity
        for begin in range(0, count, BLOCK_M):
            rows = begin + tl.arange(0, BLOCK_M)
            scales = tl.load(scales_ptr + first + rows, mask=rows < count, other=0)
            places = tl.load(places_ptr + first + rows, mask=rows < count, other=0)
            for column in range(0, d, BLOCK_N):
                columns = column + tl.arange(0, BLOCK_N)
                total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
                for inner in range(0, d, BLOCK_K):
                    terms = inner + tl.arange(0, BLOCK_K)
                    inside = (rows[:, None] < count) & (terms[None, :] < d)
                    a = tl.load(payload_ptr + (first + rows[:, None]) * d + terms[None, :], mask=inside, other=0.0)
                    inside = (terms[:, None] < d) & (columns[None, :] < d)
                    b = tl.load(w_ptr + (expert * d + terms[:, None]) * d + columns[None, :], mask=inside, other=0)
                    total = tl.dot(a.to(tl.float32).to(b.dtype), b, total, input_precision="ieee")
                inside = (rows[:, None] < count) & (columns[None, :] < d)
                tld.store(returned_ptr + places[:, None] * d + columns[None, :], total * scales[:, None], source, mask=inside)
        tld.signal(done_ptr, source, op="add")


@tilefw.jit
def combine(returned_ptr, weights_ptr, out_ptr, done_ptr, experts, rows, top, d, BLOCK_D: tl.constexpr):
    """What all experts made of a row, weighted and added up; a choice below 0 is none."""
    tld.wait(done_ptr, value=experts * tld.num_ranks())
    dims = tl.arange(0, BLOCK_D)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        total = tl.zeros((BLOCK_D,), tl.float32)
        for choice in range(row * top, (row + 1) * top):
            total += tl.load(weights_ptr + choice) * tl.load(returned_ptr + choice * d + dims, mask=dims < d, other=0)
        tl.store(out_ptr + row * d + dims, total.to(out_ptr.dtype.element_ty), mask=dims < d)


@tilefw.jit
def dispatch_and_combine(
    x_ptr, chosen_ptr, weights_ptr, w_ptr, out_ptr, payload_ptr, scales_ptr, places_ptr, counts_ptr, returned_ptr, done_ptr,
    experts, n, top, d, capacity, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr,
):
    dispatch(x_ptr, chosen_ptr, payload_ptr, scales_ptr, places_ptr, counts_ptr, experts, n * top, top, d, capacity, BLOCK_D)
    run_experts(
        payload_ptr, scales_ptr, places_ptr, counts_ptr, w_ptr, returned_ptr, done_ptr, experts, d, capacity, BLOCK, BLOCK, BLOCK
    )
    combine(returned_ptr, weights_ptr, out_ptr, done_ptr, experts, n, top, d, BLOCK_D)


FORMS = ("bulk", "fused")


@leaves_its_result
def moe_dispatch_combine(
    node: SymmetricNode, x: Any, chosen: Any, weights: Any, w: Any, form: str = "fused", *, capacity: int | None = None,
    programs: int = 2, block: int = 32, **launch: Any,
) -> Any:
    """Rows of x (rows, d), each the sum over its choices (rows, top) of weight times the chosen expert's product; w (experts of the
    rank, d, d). `capacity` is how many rows an expert takes of a rank. Raises LaunchError TFW0872."""
    require_form("moe_dispatch_combine", form, FORMS, programs=programs, block=block, capacity=1 if capacity is None else capacity)
    n, d = require_shape("x", x, (None, None))
    _, top = require_shape("chosen", chosen, (n, None))
    require_shape("weights", weights, (n, top))
    experts, *_ = require_shape("w", w, (None, d, d))
    capacity = n * top if capacity is None else capacity
    _require_room(chosen, experts * node.num_ranks, capacity)
    pairs = (experts, node.num_ranks)
    payload = node.zeros((*pairs, capacity, d), ml_dtypes.float8_e4m3fn, name="payload")
    scales = node.zeros((*pairs, capacity), "float32", name="scales")
    places = node.zeros((*pairs, capacity), "int32", name="places")
    counts, done = node.zeros(pairs, "int32", name="counts"), node.zeros((1,), "int32", name="done")
    out, returned = node.zeros((n, d), x.dtype, name="out"), node.zeros((n * top, d), "float32", name="returned rows")
    tile, sent = {"BLOCK_D": tilefw.next_power_of_2(d)}, (payload, scales, places, counts)
    if form == "fused":
        given = (x, chosen, weights, w, out, *sent, returned, done, experts, n, top, d, capacity)
        node.launch(dispatch_and_combine, (programs,), *given, BLOCK=block, **tile, **launch)
        return out
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    node.launch(dispatch, (programs,), x, chosen, *sent, experts, n * top, top, d, capacity, **tile, **launch)
    node.launch(run_experts, (programs,), *sent, w, returned, done, experts, d, capacity, **blocks, **launch)
    node.launch(combine, (programs,), returned, weights, out, done, experts, n, top, d, **tile, **launch)
    return out


def _require_room(chosen: Any, experts: int, capacity: int) -> None:
    for rank, each in enumerate(chosen):
        taken = each[each >= 0]
        if taken.size and taken.max() >= experts:
            raise tilefw.LaunchError(f"rank {rank} chose expert {taken.max()}, and there are {experts}", code="TFW0872")
        most = int(np.bincount(taken).max()) if taken.size else 0
        if most > capacity:
            raise tilefw.LaunchError(
                f"rank {rank} sends {most} rows to one expert, which takes {capacity} of a rank", code="TFW0872",
                help=f"give it room: capacity={most}, or drop choices (-1)",
            )


def draw(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    """Two experts a rank and two choices a row, the first ones of most; a tenth are dropped."""
    d = max(2 * n // 3, 1)
    chosen = [np.minimum(rng.geometric(0.4, (n, 2)) - 1, 2 * ranks - 1).astype(np.int32) for _ in range(ranks)]
    for each in chosen:
        each[rng.random(each.shape) < 0.1] = -1
    weights = [rng.random((n, 2)).astype(np.float32) for _ in range(ranks)]
    return normal(rng, ranks, (n, d), dtype), chosen, weights, normal(rng, ranks, (2, d, d), dtype)


def expected(x: Arrays, chosen: Arrays, weights: Arrays, w: Arrays) -> list[RankResult]:
    """Rows as they are sent are exact: ml_dtypes rounds to 8 bits as the kernel does, and scales are powers of two."""
    experts, found = wide(np.concatenate(w)), []
    for rows, choices, shares in zip(map(wide, x), chosen, map(wide, weights), strict=True):
        greatest = np.abs(rows).max(-1, keepdims=True)
        scale = np.exp2(np.floor(np.log2(np.where(greatest > 0, greatest, 1.0))) - LARGEST.value)
        sent = wide((rows / scale).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)) * scale
        shares = np.where(choices >= 0, shares, 0.0)[..., None]
        value = (shares * np.einsum("nd,nkde->nke", sent, experts[choices])).sum(1)
        magnitude = (shares * np.einsum("nd,nkde->nke", np.abs(sent), np.abs(experts)[choices])).sum(1)
        found.append(RankResult(value, (2 * rows.shape[1] + choices.shape[1] + 1) * SINGLE * magnitude + TINY))
    return found
