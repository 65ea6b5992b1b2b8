"""Causal attention as newer models have it: a sliding window, a sink for each head, soft-capped scores, heads that share keys.

A sink (Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023; learnt, as in gpt-oss) is one more logit of
the softmax that has no value. Soft-capping (Gemma 2, 2024) is cap · tanh(score / cap). With a window of w, a query sees itself and
the w - 1 keys before it: tiles before the window are not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.attention_sight import keys_in_sight, refuse_bad_heads
from tilefw.kernels.online_softmax import LN_2, LOG2_E, attend, base_two, take_scores
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def attend_tile(
    q, k_ptr, v_ptr, acc, peak, total, query, start, keys, past, scale, soft_cap,
    MASKED: tl.constexpr, WINDOW: tl.constexpr, CAPPED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Softmax state (acc, peak, total) after the tile of keys from `start` on; MASKED where some may be out of sight."""
    d = tl.arange(0, BLOCK_D)
    key = start + tl.arange(0, BLOCK_N)
    k_ptrs = k_ptr + key[None, :] * BLOCK_D + d[:, None]
    v_ptrs = v_ptr + key[:, None] * BLOCK_D + d[None, :]
    if MASKED:
        k = tl.load(k_ptrs, mask=key[None, :] < keys, other=0.0)
        v = tl.load(v_ptrs, mask=key[:, None] < keys, other=0.0)
    else:
        k = tl.load(k_ptrs)
        v = tl.load(v_ptrs)
    scores = tl.dot(q, k)
    if CAPPED:  # `scale` has 1 / cap in it, and the cap comes with powers of two
        scores = soft_cap * tl.extra.libdevice.tanh(scores * scale)
    else:
        scores = scores * scale
    if MASKED:
        place = query[:, None] + past
        seen = (key[None, :] < keys) & (key[None, :] <= place)
        if WINDOW > 0:
            seen = seen & (key[None, :] > place - WINDOW)
        scores = tl.where(seen, scores, -float("inf"))
    weights, shrink, peak, total = take_scores(scores, peak, total)
    return tl.dot(weights.to(v.dtype), v, acc * shrink[:, None]), peak, total


@tilefw.jit
def windowed_attention(
    q_ptr, k_ptr, v_ptr, sinks_ptr, out_ptr, lse_ptr, heads, queries, keys, scale, soft_cap,
    GROUP: tl.constexpr, WINDOW: tl.constexpr, CAPPED: tl.constexpr, SINKS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)  # of all sequences
    query = first + tl.arange(0, BLOCK_M)
    places = (head * queries + query)[:, None] * BLOCK_D + tl.arange(0, BLOCK_D)[None, :]
    k_base = k_ptr + head // GROUP * keys * BLOCK_D
    v_base = v_ptr + head // GROUP * keys * BLOCK_D
    q = tl.load(q_ptr + places, mask=query[:, None] < queries, other=0.0)

    if SINKS:  # the softmax has begun with one logit
        peak = tl.zeros([BLOCK_M], dtype=tl.float32) + tl.load(sinks_ptr + head % heads) * LOG2_E
        total = tl.full([BLOCK_M], 1.0, dtype=tl.float32)
    else:
        peak = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
        total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    past = keys - queries
    full, end = keys_in_sight(first, past, keys, True, BLOCK_M, BLOCK_N)
    begin = 0
    edge = 0  # the end of the tiles that the window cuts
    if WINDOW > 0:
        begin = tl.maximum(first + past - WINDOW + 1, 0) // BLOCK_N * BLOCK_N
        edge = tl.minimum(tl.cdiv(tl.maximum(first + BLOCK_M + past - WINDOW, 0), BLOCK_N) * BLOCK_N, full)
    base2 = scale if CAPPED else scale * LOG2_E
    cap = soft_cap * LOG2_E
    for start in range(edge, full, BLOCK_N):
        acc, peak, total = attend_tile(
            q, k_base, v_base, acc, peak, total, query, start, keys, past, base2, cap, False, WINDOW, CAPPED, BLOCK_N, BLOCK_D,
        )
    # Tiles that the window cuts and those that the diagonal cuts, in one loop: the softmax asks for no order.
    for tile in range(0, edge - begin + end - full, BLOCK_N):
        start = begin + tile if tile < edge - begin else full + tile - (edge - begin)
        acc, peak, total = attend_tile(
            q, k_base, v_base, acc, peak, total, query, start, keys, past, base2, cap, True, WINDOW, CAPPED, BLOCK_N, BLOCK_D,
        )
    tl.store(out_ptr + places, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=query[:, None] < queries)
    tl.store(lse_ptr + head * queries + query, (peak + tl.log2(total)) * LN_2, mask=query < queries)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_bad_heads("windowed_attention", {**p, "causal": True})
    few, many, size = (p["batch"], p["kv_heads"]), (p["batch"], p["heads"]), p["head_size"]
    shapes = {"q": (*many, p["queries"], size), "k": (*few, p["keys"], size), "v": (*few, p["keys"], size)}
    scale = 1 / math.sqrt(size)
    arguments = {
        **{f"{name}_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]) for name, shape in shapes.items()},
        "sinks_ptr": inputs.draw(rng, "normal", (p["heads"],), "fp32") if p["sinks"] else None,
        "out_ptr": inputs.empty(shapes["q"], p["dtype"]), "lse_ptr": inputs.empty(shapes["q"][:3], "fp32"),
        "heads": p["heads"], "queries": p["queries"], "keys": p["keys"],
        "scale": scale / p["soft_cap"] if p["soft_cap"] else scale, "soft_cap": p["soft_cap"],
    }
    constexprs = {
        "GROUP": p["heads"] // p["kv_heads"], "WINDOW": p["window"], "CAPPED": p["soft_cap"] > 0, "SINKS": p["sinks"],
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_D": size,
    }
    grid = (ceil_div(p["queries"], p["block_m"]), p["batch"] * p["heads"], 1)
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, grid, ("out_ptr", "lse_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Block of queries by block, tiles that all of its queries see first: each tile's weights are rounded under its own peak."""
    q, k, v = (formats.decode(launch.buffer(f"{name}_ptr").array, p["dtype"]) for name in "qkv")
    k, v = (np.repeat(part, p["heads"] // p["kv_heads"], axis=1) for part in (k, v))
    scores = _scores(p, launch, q @ k.swapaxes(-1, -2))
    out, lse = np.empty(q.shape), np.empty(q.shape[:-1])
    start = np.full((*q.shape[:2], 1), -np.inf), np.zeros((*q.shape[:2], 1))
    if p["sinks"]:
        sinks = launch.buffer("sinks_ptr").array * np.float32(LOG2_E.value)
        start = np.broadcast_to(sinks.astype(np.float64)[:, None], start[0].shape), np.ones(start[1].shape)
    key = np.arange(p["keys"])
    for first in range(0, p["queries"], p["block_m"]):
        place = np.arange(first, first + p["block_m"])[:, None] + p["keys"] - p["queries"]
        seen = (key <= place) & ((key > place - p["window"]) | (p["window"] == 0))
        tiles = [np.arange(n, min(n + p["block_n"], p["keys"])) for n in range(0, p["keys"], p["block_n"])]
        tiles = [tile for tile in tiles if seen[:, tile].any()]
        whole = [tile.size == p["block_n"] and bool(seen[:, tile].all()) for tile in tiles]
        order = np.concatenate([tiles[index] for index in np.argsort(np.logical_not(whole), kind="stable")])
        rows = slice(first, min(first + p["block_m"], p["queries"]))
        shown = np.where(seen[: rows.stop - first], scores[..., rows, :], -np.inf)
        acc, peak, total = attend(shown[..., order], v[..., order, :], p["block_n"], p["dtype"], *start)
        out[..., rows, :], lse[..., rows] = acc / total[..., None], (peak + np.log2(total)) * math.log(2)
    return {"out_ptr": out, "lse_ptr": lse}


def _scores(p: Parameters, launch: Launch, products: np.ndarray) -> np.ndarray:
    scale = launch.arguments["scale"]
    assert isinstance(scale, float)
    if p["soft_cap"]:
        return np.tanh(products * float(np.float32(scale))) * base_two(p["soft_cap"])
    return products * base_two(scale)


SPEC = KernelSpec("windowed_attention", windowed_attention, _prepare, _expected)
