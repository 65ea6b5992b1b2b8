"""distributed_decode: attention of one query a sequence to keys and values that lie over all ranks, as many on each as it says.

Flash-decoding (Dao, Haziza, Massa, Sizov, 2023) with the splits on ranks: each rank attends to the keys that it has and sends the
result and its log-sum-exp to all ranks; behind all ranks' signals every rank weights the parts by exp(lse - the largest lse).
Queries of the heads that share keys are one tile. Both are done by every program (fused) or by two kernels at once
(producer_consumer); in bulk, parts are made, gathered and joined by a launch each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.all_gather import all_gather
from tilefw.kernels.distributed.attention_parts import take_part
from tilefw.kernels.distributed.attention_results import attended
from tilefw.kernels.distributed.meeting import SymmetricNode, launch_together, leaves_its_result, others, store_to_all
from tilefw.kernels.distributed.rank_results import Arrays, RankResult, normal
from tilefw.kernels.distributed.requirements import require_counts, require_form, require_shape
from tilefw.kernels.online_softmax import base_two, take_scores


@tilefw.jit
def attend_own_keys(
    q, k_ptr, v_ptr, keys, d, scale, BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr
):
    """(result, log-sum-exp in powers of two) of a tile of queries; of no key they are 0 and -inf."""
    acc, total = tl.zeros((BLOCK_G, BLOCK_D), tl.float32), tl.zeros((BLOCK_G,), tl.float32)
    peak = tl.full((BLOCK_G,), -float("inf"), tl.float32)
    acc, peak, total = take_part(q, k_ptr, v_ptr, acc, peak, total, 0, 0, 0, keys, d, keys, scale, False, BLOCK_N, BLOCK_D)
    some = tl.where(total > 0, total, 1.0)
    return acc / some[:, None], tl.where(total > 0, peak + tl.log2(some), -float("inf"))


@tilefw.jit
def make_parts(
    q_ptr, k_ptr, v_ptr, lengths_ptr, parts_ptr, lse_ptr, flags_ptr, units, kv_heads, group, capacity, d, scale,
    SENDS: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """This rank's parts: to all ranks, at its place, with a signal for each; or to `parts` as they are."""
    ranks, here = tld.num_ranks(), tld.rank()
    heads, dims = tl.arange(0, BLOCK_G), tl.arange(0, BLOCK_D)
    for unit in range(tl.program_id(0), units, tl.num_programs(0)):
        rows = unit * group + heads
        offsets, inside = rows[:, None] * d + dims[None, :], (heads[:, None] < group) & (dims[None, :] < d)
        q = tl.load(q_ptr + offsets, mask=inside, other=0)
        first = tl.cast(unit, tl.int64) * capacity * d
        keys = tl.load(lengths_ptr + unit // kv_heads)
        part, lse = attend_own_keys(q, k_ptr + first, v_ptr + first, keys, d, scale, BLOCK_G, BLOCK_N, BLOCK_D)
        if SENDS:
            place = here.to(tl.int64) * units * group
            store_to_all(parts_ptr + place * d, part, offsets, inside)
            store_to_all(lse_ptr + place, lse, rows, heads < group)
            for turn in range(ranks):
                tld.signal(flags_ptr + unit, (here + turn + 1) % ranks, op="add")
        else:
            tl.store(parts_ptr + offsets, part, mask=inside)
            tl.store(lse_ptr + rows, lse, mask=heads < group)


@tilefw.jit
def join_parts(
    parts_ptr, lse_ptr, out_ptr, flags_ptr, units, group, d, WAITS: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_D: tl.constexpr
):
    """All ranks' parts, from rank 0 on: the same bits on every rank."""
    ranks = tld.num_ranks()
    heads, dims = tl.arange(0, BLOCK_G), tl.arange(0, BLOCK_D)
    for unit in range(tl.program_id(0), units, tl.num_programs(0)):
        if WAITS:
            tld.wait(flags_ptr + unit, value=ranks)
        rows = unit * group + heads
        offsets, inside = rows[:, None] * d + dims[None, :], (heads[:, None] < group) & (dims[None, :] < d)
        acc, total = tl.zeros((BLOCK_G, BLOCK_D), tl.float32), tl.zeros((BLOCK_G,), tl.float32)
        peak = tl.full((BLOCK_G,), -float("inf"), tl.float32)
        for source in range(ranks):
            place = tl.cast(source, tl.int64) * units * group
            lse = tl.load(lse_ptr + place + rows, mask=heads < group, other=-float("inf"))
            shares, shrink, peak, total = take_scores(lse[:, None], peak, total)
            acc = acc * shrink[:, None] + shares * tl.load(parts_ptr + place * d + offsets, mask=inside, other=0)
        out = acc / tl.where(total > 0, total, 1.0)[:, None]  # a sequence may have no key at all
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def make_parts_and_join(
    q_ptr, k_ptr, v_ptr, lengths_ptr, parts_ptr, lse_ptr, flags_ptr, out_ptr, units, kv_heads, group, capacity, d, scale,
    BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    make_parts(
        q_ptr, k_ptr, v_ptr, lengths_ptr, parts_ptr, lse_ptr, flags_ptr, units, kv_heads, group, capacity, d, scale, True, BLOCK_G,
        BLOCK_N, BLOCK_D,
    )
    join_parts(parts_ptr, lse_ptr, out_ptr, flags_ptr, units, group, d, True, BLOCK_G, BLOCK_D)


FORMS = ("bulk", "producer_consumer", "fused")


@leaves_its_result
def distributed_decode(
    node: SymmetricNode, q: Any, k: Any, v: Any, lengths: Any, form: str = "fused", *, programs: int = 2, block: int = 32,
    **launch: Any,
) -> Any:
    """softmax(q · kᵀ / √d) · v on every rank. q, the same on all, is (sequences, heads, d); k and v are (sequences, heads of keys,
    capacity, d), of which a rank has `lengths` of each sequence. Raises LaunchError TFW0872."""
    require_form("distributed_decode", form, FORMS, programs=programs, block=block)
    sequences, kv_heads, capacity, d = shape = require_shape("k", k, (None, None, None, None))
    require_shape("v", v, shape)
    require_shape("lengths", lengths, (sequences,))
    require_counts("lengths", lengths, capacity)
    _, heads, _ = require_shape("q", q, (sequences, None, d))
    group = part_of_heads(heads, kv_heads)
    units, ranks = sequences * kv_heads, node.num_ranks
    out = node.zeros((sequences, heads, d), q.dtype, name="out")
    tile = {"BLOCK_G": max(tilefw.next_power_of_2(group), 16), "BLOCK_D": max(tilefw.next_power_of_2(d), 16)}
    sizes = (units, kv_heads, group, capacity, d, base_two(1 / math.sqrt(d)))
    flags = node.zeros((units,), "int32", name="flags of parts")
    held = 1 if form == "bulk" else ranks
    parts = node.zeros((held, sequences, heads, d), "float32", name="parts")
    lse = node.zeros((held, sequences, heads), "float32", name="log-sum-exps")
    making, joining = (q, k, v, lengths, parts, lse, flags), (out, flags, units, group, d)
    if form == "bulk":
        node.launch(make_parts, (programs,), *making, *sizes, SENDS=False, BLOCK_N=block, **tile, **launch)
        gathered = [all_gather(node, each, programs=programs, **launch) for each in (parts, lse)]
        node.launch(join_parts, (programs,), *gathered, *joining, WAITS=False, **tile, **launch)
    elif form == "producer_consumer":
        launch_together(
            node, (make_parts, others(programs), (*making, *sizes), {"SENDS": True, "BLOCK_N": block, **tile}),
            (join_parts, 1, (parts, lse, *joining), {"WAITS": True, **tile}), **launch,
        )
    else:
        node.launch(make_parts_and_join, (programs,), *making, out, *sizes, BLOCK_N=block, **tile, **launch)
    return out


def part_of_heads(heads: int, kv_heads: int) -> int:
    """How many heads of queries share a head of keys. Raises LaunchError TFW0872."""
    if heads % kv_heads:
        raise tilefw.LaunchError(f"{heads} heads of queries do not share {kv_heads} heads of keys evenly", code="TFW0872")
    return heads // kv_heads


def draw(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    """Three sequences of up to n keys a rank, all n on one rank at least; the last sequence has none on some."""
    q = normal(rng, 1, (3, 4, 24), dtype) * ranks
    k, v = (normal(rng, ranks, (3, 2, n, 24), dtype) for _ in range(2))
    lengths = rng.integers(0, n + 1, (ranks, 3)).astype(np.int32)
    lengths[:, 2] = 0
    lengths[np.arange(3) % ranks, np.arange(3)] = n
    return q, k, v, list(lengths)


def expected(q: Arrays, k: Arrays, v: Arrays, lengths: Arrays) -> list[RankResult]:
    """Joining adds some 16 roundings to each part's weight."""
    sequences, heads, d = q[0].shape
    group, scale = heads // k[0].shape[1], base_two(1 / math.sqrt(d)) * math.log(2)
    value, bound = np.empty((sequences, heads, d)), np.empty((sequences, heads, d))
    for sequence in range(sequences):
        keys, values = (
            np.concatenate([part[sequence, :, : int(held[sequence])] for part, held in zip(parts, lengths, strict=True)], 1)
            for parts in (k, v)
        )
        one = attended(
            q[0][sequence, :, None], keys.repeat(group, 0), values.repeat(group, 0), scale, roundings=16
        )
        value[sequence], bound[sequence] = one.value[:, 0], one.bound[:, 0]
    return [RankResult(value, bound)] * len(q)
