"""ring_attention: attention where each rank has queries, keys and values of its part of a sequence, and keys and values go round.

After Liu, Zaharia and Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023. Each rank passes a
part's keys and values on to the next rank, which has a place for each part and so never waits for room; meanwhile queries meet the
parts that are there, this rank's own first, and keep the peak and the sum of their weights. Passing on and attending are programs
of one kernel (specialised) or two kernels at once (producer_consumer). Fused, queries load the parts from the ranks that have them;
in bulk, all parts are gathered before.
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
from tilefw.kernels.distributed.meeting import SymmetricNode, launch_together, leaves_its_result, meet, others, words
from tilefw.kernels.distributed.rank_results import Arrays, RankResult, normal
from tilefw.kernels.distributed.requirements import require_form, require_shape
from tilefw.kernels.online_softmax import base_two


@tilefw.jit
def pass_on(k_ptr, v_ptr, keys_ptr, values_ptr, flags_ptr, first, step, size, BLOCK: tl.constexpr):
    """Every part but the last one to the next rank: this rank's own, then each as it arrives; its share of `step` programs."""
    ranks, here = tld.num_ranks(), tld.rank()
    following = (here + 1) % ranks
    for turn in range(ranks - 1):
        source = (here + ranks - turn) % ranks
        place = source.to(tl.int64) * size
        k_part, v_part = k_ptr, v_ptr
        if turn > 0:
            tld.wait(flags_ptr + source, value=step)
            k_part, v_part = keys_ptr + place, values_ptr + place
        for block in range(first, tl.cdiv(size, BLOCK), step):
            offsets = block * BLOCK + tl.arange(0, BLOCK)
            tld.put(k_part + offsets, keys_ptr + place + offsets, following, mask=offsets < size)
            tld.put(v_part + offsets, values_ptr + place + offsets, following, mask=offsets < size)
        tld.signal(flags_ptr + source, following, op="add")


@tilefw.jit
def attend_parts(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, flags_ptr, first, step, heads, s, d, scale, SOURCE: tl.constexpr,
    PUSHERS: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Tiles of queries. SOURCE: parts are "gathered", "arriving" (from so many PUSHERS), or with each "peer"."""
    ranks, here = tld.num_ranks(), tld.rank()
    tiles = tl.cdiv(s, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    for tile in range(first, heads * tiles, step):
        head, rows = tile // tiles, tile % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
        offsets = (head * s + rows[:, None]) * d + dims[None, :]
        inside = (rows[:, None] < s) & (dims[None, :] < d)
        q = tl.load(q_ptr + offsets, mask=inside, other=0)
        acc, total = tl.zeros((BLOCK_M, BLOCK_D), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
        peak = tl.full((BLOCK_M,), -float("inf"), tl.float32)
        for turn in range(ranks):
            source = (here + ranks - turn) % ranks
            place = source.to(tl.int64) * heads * s * d
            k_part, v_part = k_ptr, v_ptr
            if SOURCE == "peer":
                k_part, v_part = tld.at(k_ptr, source), tld.at(v_ptr, source)
            elif turn > 0:
                if SOURCE == "arriving":
                    tld.wait(flags_ptr + source, value=PUSHERS)
                k_part, v_part = keys_ptr + place, values_ptr + place
            end = s
            if CAUSAL:
                end = tl.where(source > here, 0, s)
            acc, peak, total = take_part(
                q, k_part, v_part, acc, peak, total, head, here * s + rows, source * s, s, d, end, scale, CAUSAL, BLOCK_N, BLOCK_D
            )
        out = acc / total[:, None]  # every query sees a key: of its own rank's part
        tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def attend_gathered(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, heads, s, d, scale, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    attend_parts(
        q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, keys_ptr, tl.program_id(0), tl.num_programs(0), heads, s, d, scale,
        "gathered", 0, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
    )


@tilefw.jit
def attend_peers(
    q_ptr, k_ptr, v_ptr, out_ptr, words_ptr, heads, s, d, scale, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    meet(words_ptr)
    attend_parts(
        q_ptr, k_ptr, v_ptr, k_ptr, v_ptr, out_ptr, words_ptr, tl.program_id(0), tl.num_programs(0), heads, s, d, scale,
        "peer", 0, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
    )
    meet(words_ptr)


@tilefw.jit
def produce(k_ptr, v_ptr, keys_ptr, values_ptr, flags_ptr, size, BLOCK: tl.constexpr):
    pass_on(k_ptr, v_ptr, keys_ptr, values_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), size, BLOCK)


@tilefw.jit
def consume(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, flags_ptr, heads, s, d, scale, PUSHERS: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    attend_parts(
        q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), heads, s, d, scale,
        "arriving", PUSHERS, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
    )


@tilefw.jit
def pass_on_beside_attend(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, flags_ptr, heads, s, d, scale, PUSHERS: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    program = tl.program_id(0)
    if program < PUSHERS:
        pass_on(k_ptr, v_ptr, keys_ptr, values_ptr, flags_ptr, program, PUSHERS, heads * s * d, BLOCK)
    else:
        attend_parts(
            q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, out_ptr, flags_ptr, program - PUSHERS, tl.num_programs(0) - PUSHERS, heads,
            s, d, scale, "arriving", PUSHERS, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
        )


FORMS = ("bulk", "producer_consumer", "fused", "specialised")
PUSHERS = 1


@leaves_its_result
def ring_attention(
    node: SymmetricNode, q: Any, k: Any, v: Any, form: str = "specialised", *, causal: bool = False, programs: int = 3,
    block: int = 32, **launch: Any,
) -> Any:
    """Attention of each rank's queries to all ranks' keys; q, k and v are (heads, positions, head size), the ranks' parts in their
    order. Causal, a query sees the positions up to its own. Raises LaunchError TFW0872."""
    require_form("ring_attention", form, FORMS, programs=programs, block=block)
    heads, s, d = shape = require_shape("q", q, (None, None, None))
    require_shape("k", k, shape)
    require_shape("v", v, shape)
    out = node.zeros(shape, q.dtype, name="out")
    sizes = (heads, s, d, base_two(1 / math.sqrt(d)))
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_D": max(tilefw.next_power_of_2(d), 16), "CAUSAL": causal}
    if form == "fused":
        node.launch(attend_peers, (programs,), q, k, v, out, words(node, programs), *sizes, **blocks, **launch)
        return out
    if form == "bulk":
        keys, values = (all_gather(node, part, programs=programs, **launch) for part in (k, v))
        node.launch(attend_gathered, (programs,), q, k, v, keys, values, out, *sizes, **blocks, **launch)
        return out
    keys = node.zeros((node.num_ranks, *shape), k.dtype, name="keys of all ranks")
    values = node.zeros((node.num_ranks, *shape), v.dtype, name="values of all ranks")
    flags = node.zeros((node.num_ranks,), "int32", name="flags of parts")
    attending = (q, k, v, keys, values, out, flags, *sizes)
    if form == "producer_consumer":
        launch_together(
            node, (produce, PUSHERS, (k, v, keys, values, flags, heads * s * d), {"BLOCK": 256}),
            (consume, others(programs), attending, blocks | {"PUSHERS": PUSHERS}), **launch,
        )
        return out
    grid = (PUSHERS + others(programs),)
    node.launch(pass_on_beside_attend, grid, *attending, PUSHERS=PUSHERS, BLOCK=256, **blocks, **launch)
    return out


def draw(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    """Two heads of n positions a rank."""
    q, k, v = (normal(rng, ranks, (2, n, 24), dtype) for _ in range(3))
    return q, k, v


def expected(q: Arrays, k: Arrays, v: Arrays, causal: bool = False) -> list[RankResult]:
    keys, values = np.concatenate(k, 1), np.concatenate(v, 1)
    s, scale = q[0].shape[1], base_two(1 / math.sqrt(q[0].shape[-1])) * math.log(2)
    places = np.arange(len(q) * s)
    return [
        attended(part, keys, values, scale, places <= rank * s + np.arange(s)[:, None] if causal else True)
        for rank, part in enumerate(q)
    ]
