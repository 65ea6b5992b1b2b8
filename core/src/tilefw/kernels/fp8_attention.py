"""Attention of 8-bit floats with a scale for each head: one block of queries of one head a program.

Weights are rounded to the operands' type between the products, multiplied by 2^8, so that small ones are not lost: the softmax
divides that out again (Shah et al., "FlashAttention-3", 2024). Values lie with their keys in a row, [head size, keys]: then both
products sum along rows, which matrix units read at once.
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
from tilefw.kernels.online_softmax import LN_2, LOG2_E
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters

LIFT = tl.constexpr(8.0)  # of weights, as a power of two: 2^8 is in the range of every 8-bit format


@tilefw.jit
def attend(
    q, k_ptr, v_ptr, acc, peak, total, query, keys, head_size, past, scale, begin, end,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, WHOLE_HEAD: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Softmax state (acc, peak, total) after keys begin … end; MASKED where some of them may be out of sight."""
    d = tl.arange(0, BLOCK_D)
    for start in range(begin, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + key[None, :] * head_size + d[:, None]
        v_ptrs = v_ptr + d[None, :] * keys + key[:, None]
        if MASKED:
            k = tl.load(k_ptrs, mask=(d[:, None] < head_size) & (key[None, :] < keys), other=0.0)
            v = tl.load(v_ptrs, mask=(key[:, None] < keys) & (d[None, :] < head_size), other=0.0)
        elif WHOLE_HEAD:
            k = tl.load(k_ptrs)
            v = tl.load(v_ptrs)
        else:
            k = tl.load(k_ptrs, mask=d[:, None] < head_size, other=0.0)
            v = tl.load(v_ptrs, mask=d[None, :] < head_size, other=0.0)
        scores = tl.dot(q, k)
        if MASKED:
            seen = key[None, :] < keys
            if CAUSAL:
                seen = seen & (key[None, :] <= query[:, None] + past)
            scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        p = tl.exp2(scores * scale - (higher - LIFT)[:, None])
        shrink = tl.exp2(peak - higher)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        peak = higher
    return acc, peak, total


@tilefw.jit
def fp8_attention(
    q_ptr, k_ptr, v_ptr, q_scale_ptr, k_scale_ptr, v_scale_ptr, out_ptr, lse_ptr, heads, queries, keys, head_size, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WHOLE_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)  # of all sequences
    shared = head // heads * (heads // GROUP) + head % heads // GROUP  # the head of keys and values
    query = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    inside = (query[:, None] < queries) & (d[None, :] < head_size)
    places = head * queries * head_size + query[:, None] * head_size + d[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    k_base = k_ptr + shared * keys * head_size
    v_base = v_ptr + shared * keys * head_size

    peak = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    past = keys - queries
    full, end = keys_in_sight(first, past, keys, CAUSAL, BLOCK_M, BLOCK_N)
    base2 = scale * LOG2_E * (tl.load(q_scale_ptr + head) * tl.load(k_scale_ptr + shared))  # powers of two are what chips have
    acc, peak, total = attend(
        q, k_base, v_base, acc, peak, total, query, keys, head_size, past, base2, 0, full,
        False, CAUSAL, WHOLE_HEAD, BLOCK_N, BLOCK_D,
    )
    acc, peak, total = attend(
        q, k_base, v_base, acc, peak, total, query, keys, head_size, past, base2, full, end,
        True, CAUSAL, WHOLE_HEAD, BLOCK_N, BLOCK_D,
    )
    out = acc * (tl.load(v_scale_ptr + shared) / total)[:, None]
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + head * queries + query, (peak - LIFT + tl.log2(total)) * LN_2, mask=query < queries)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_bad_heads("fp8_attention", p)
    few, many, size = (p["batch"], p["kv_heads"]), (p["batch"], p["heads"]), p["head_size"]
    shapes = {"q": (*many, p["queries"], size), "k": (*few, p["keys"], size), "v": (*few, size, p["keys"])}
    arguments = {f"{name}_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]) for name, shape in shapes.items()}
    arguments |= {
        f"{name}_scale_ptr": Buffer(rng.uniform(0.25, 2.0, shape[:2]).astype(np.float32), "fp32") for name, shape in shapes.items()
    }
    arguments |= {
        "out_ptr": inputs.empty(shapes["q"], p["result"]), "lse_ptr": inputs.empty(shapes["q"][:3], "fp32"),
        "heads": p["heads"], "queries": p["queries"], "keys": p["keys"], "head_size": size, "scale": 1 / math.sqrt(size),
    }
    block_d = max(16, tilefw.next_power_of_2(size))
    constexprs = {
        "GROUP": p["heads"] // p["kv_heads"], "CAUSAL": p["causal"], "WHOLE_HEAD": block_d == size,
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_D": block_d,
    }
    grid = (ceil_div(p["queries"], p["block_m"]), p["batch"] * p["heads"], 1)
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, grid, ("out_ptr", "lse_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """By blocks of keys as the kernel goes, since each block's weights are rounded to the operands' type under its own peak."""
    q, k, v = (formats.decode(launch.buffer(f"{name}_ptr").array, p["dtype"]) for name in "qkv")
    of_q, of_k, of_v = (launch.buffer(f"{name}_scale_ptr").array for name in "qkv")
    k, v, of_k, of_v = (np.repeat(part, p["heads"] // p["kv_heads"], axis=1) for part in (k, v, of_k, of_v))
    # The scale for powers of two is one fp32 number for each head, rounded at each step.
    given = launch.arguments["scale"]
    assert isinstance(given, float)
    scale = (np.float32(given) * np.float32(LOG2_E.value) * (of_q * of_k)).astype(np.float64)
    scores = q @ k.swapaxes(-1, -2) * scale[..., None, None]
    if p["causal"]:
        position = np.arange(p["queries"])[:, None] + p["keys"] - p["queries"]
        scores = np.where(np.arange(p["keys"]) <= position, scores, -np.inf)
    peak, total, acc = np.full(scores.shape[:-1], -np.inf), np.zeros(scores.shape[:-1]), np.zeros(q.shape)
    for start in range(0, p["keys"], p["block_n"]):
        block = scores[..., start : start + p["block_n"]]
        higher = np.maximum(peak, block.max(axis=-1))
        weights = np.exp2(block - higher[..., None] + LIFT.value)
        shrink = np.exp2(peak - higher)
        total = total * shrink + weights.sum(axis=-1)
        rounded = formats.decode(formats.encode(weights, p["dtype"]), p["dtype"])
        acc = acc * shrink[..., None] + rounded @ v[..., start : start + p["block_n"]].swapaxes(-1, -2)
        peak = higher
    return {
        "out_ptr": acc * of_v[..., None, None] / total[..., None], "lse_ptr": (peak - LIFT.value + np.log2(total)) * math.log(2),
    }


SPEC = KernelSpec("fp8_attention", fp8_attention, _prepare, _expected)
