"""Gradients of attention: dq, dk and dv from the log-sum-exp of the forward pass, no matrix of weights in memory.

Dao, "FlashAttention-2", 2023, algorithm 2. A program makes dk and dv of a block of keys over all queries that see them, or dq of a
block of queries over all keys that they see, so that no sum crosses programs. `delta` is Σ out · dout of each query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.attention_sight import refuse_bad_heads
from tilefw.kernels.online_softmax import LOG2_E, base_two
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def of_keys(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, kv_head, first, queries, keys, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """dk and dv of the block of keys from `first` on; scores stand transposed, keys by queries, as both products want them."""
    key = first + tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    places = (kv_head * keys + key)[:, None] * BLOCK_D + d[None, :]
    k = tl.load(k_ptr + places, mask=key[:, None] < keys, other=0.0)
    v = tl.load(v_ptr + places, mask=key[:, None] < keys, other=0.0)
    dk = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    past = keys - queries
    begin = tl.maximum(first - past, 0) // BLOCK_M * BLOCK_M if CAUSAL else 0
    for head in range(kv_head * GROUP, kv_head * GROUP + GROUP):
        for start in range(begin, queries, BLOCK_M):
            query = start + tl.arange(0, BLOCK_M)
            row = head * queries + query
            # Rows past the end are zeros: they add nothing to either sum.
            inside = query[:, None] < queries
            q = tl.load(q_ptr + row[:, None] * BLOCK_D + d[None, :], mask=inside, other=0.0)
            dout = tl.load(dout_ptr + row[:, None] * BLOCK_D + d[None, :], mask=inside, other=0.0)
            lse = tl.load(lse_ptr + row, mask=query < queries, other=0.0)
            delta = tl.load(delta_ptr + row, mask=query < queries, other=0.0)
            weights = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * LOG2_E) - (lse * LOG2_E)[None, :])
            if CAUSAL:
                weights = tl.where(key[:, None] <= query[None, :] + past, weights, 0.0)
            dv = tl.dot(weights.to(dout.dtype), dout, dv)
            dscores = weights * (tl.dot(v, tl.trans(dout)) - delta[None, :])
            dk = tl.dot(dscores.to(q.dtype), q, dk)
    tl.store(dk_ptr + places, (dk * scale).to(dk_ptr.dtype.element_ty), mask=key[:, None] < keys)
    tl.store(dv_ptr + places, dv.to(dv_ptr.dtype.element_ty), mask=key[:, None] < keys)


@tilefw.jit
def of_queries(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, head, first, queries, keys, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """dq of the block of queries from `first` on."""
    query = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    row = head * queries + query
    places = row[:, None] * BLOCK_D + d[None, :]
    q = tl.load(q_ptr + places, mask=query[:, None] < queries, other=0.0)
    dout = tl.load(dout_ptr + places, mask=query[:, None] < queries, other=0.0)
    lse = tl.load(lse_ptr + row, mask=query < queries, other=0.0)
    delta = tl.load(delta_ptr + row, mask=query < queries, other=0.0)
    dq = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    past = keys - queries
    end = tl.minimum(first + BLOCK_M + past, keys) if CAUSAL else keys
    for start in range(0, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        key_places = (head // GROUP * keys + key)[:, None] * BLOCK_D + d[None, :]
        k = tl.load(k_ptr + key_places, mask=key[:, None] < keys, other=0.0)
        v = tl.load(v_ptr + key_places, mask=key[:, None] < keys, other=0.0)
        weights = tl.exp2(tl.dot(q, tl.trans(k)) * (scale * LOG2_E) - (lse * LOG2_E)[:, None])
        seen = key[None, :] < keys
        if CAUSAL:
            seen = seen & (key[None, :] <= query[:, None] + past)
        dscores = tl.where(seen, weights * (tl.dot(dout, tl.trans(v)) - delta[:, None]), 0.0)
        dq = tl.dot(dscores.to(k.dtype), k, dq)
    tl.store(dq_ptr + places, (dq * scale).to(dq_ptr.dtype.element_ty), mask=query[:, None] < queries)


@tilefw.jit
def attention_backward(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, queries, keys, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    kv_head = tl.program_id(1)  # of all sequences
    key_blocks = tl.cdiv(keys, BLOCK_N)
    if tl.program_id(0) < key_blocks:
        of_keys(
            q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, kv_head, tl.program_id(0) * BLOCK_N,
            queries, keys, scale, GROUP, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
        )
    else:
        block = tl.program_id(0) - key_blocks
        of_queries(
            q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, kv_head * GROUP + block % GROUP, block // GROUP * BLOCK_M,
            queries, keys, scale, GROUP, CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
        )


def _scores(p: Parameters, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """For powers of two; -inf where a query does not see a key."""
    scores = q @ k.swapaxes(-1, -2) * base_two(1 / math.sqrt(p["head_size"]))
    hidden = np.arange(p["keys"]) > np.arange(p["queries"])[:, None] + p["keys"] - p["queries"]
    return np.where(hidden & p["causal"], -np.inf, scores)


def _repeated(p: Parameters, values: np.ndarray) -> np.ndarray:
    """Keys or values, once for each head of queries."""
    return np.repeat(values, p["heads"] // p["kv_heads"], axis=1)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_bad_heads("attention_backward", p)
    name, size = p["dtype"], p["head_size"]
    many, few = (p["batch"], p["heads"], p["queries"], size), (p["batch"], p["kv_heads"], p["keys"], size)
    q, dout = (inputs.draw(rng, p["inputs"], many, name) for _ in range(2))
    k, v = (inputs.draw(rng, p["inputs"], few, name) for _ in range(2))
    wide = [formats.decode(buffer.array, name) for buffer in (q, k, v, dout)]
    scores = _scores(p, wide[0], _repeated(p, wide[1]))
    peak = scores.max(axis=-1, keepdims=True)
    total = np.exp2(scores - peak).sum(axis=-1, keepdims=True)
    out = np.exp2(scores - peak) / total @ _repeated(p, wide[2])
    lse = (peak + np.log2(total))[..., 0] * math.log(2)
    arguments = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout, "lse_ptr": Buffer(lse.astype(np.float32), "fp32"),
        "delta_ptr": Buffer((out * wide[3]).sum(axis=-1).astype(np.float32), "fp32"),
        "dq_ptr": inputs.empty(many, name), "dk_ptr": inputs.empty(few, name), "dv_ptr": inputs.empty(few, name),
        "queries": p["queries"], "keys": p["keys"], "scale": 1 / math.sqrt(size),
    }
    group = p["heads"] // p["kv_heads"]
    constexprs = {"GROUP": group, "CAUSAL": p["causal"], "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_D": size}
    blocks = ceil_div(p["keys"], p["block_n"]) + group * ceil_div(p["queries"], p["block_m"])
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, (blocks, p["batch"] * p["kv_heads"], 1), ("dq_ptr", "dk_ptr", "dv_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Weights and gradients of scores are rounded to the operands' type between the products."""
    name = p["dtype"]
    q, k, v, dout = (formats.decode(launch.buffer(f"{one}_ptr").array, name) for one in ("q", "k", "v", "dout"))
    lse = (launch.buffer("lse_ptr").array * np.float32(LOG2_E.value)).astype(np.float64)
    delta = launch.buffer("delta_ptr").array.astype(np.float64)
    weights = np.exp2(_scores(p, q, _repeated(p, k)) - lse[..., None])
    dscores = weights * (dout @ _repeated(p, v).swapaxes(-1, -2) - delta[..., None])
    weights, dscores = (formats.decode(formats.encode(part, name), name) for part in (weights, dscores))
    scale = float(np.float32(1 / math.sqrt(p["head_size"])))

    def of_group(parts: np.ndarray) -> np.ndarray:
        return parts.reshape(p["batch"], p["kv_heads"], -1, p["keys"], p["head_size"]).sum(axis=2)

    return {
        "dq_ptr": dscores @ _repeated(p, k) * scale, "dk_ptr": of_group(dscores.swapaxes(-1, -2) @ q) * scale,
        "dv_ptr": of_group(weights.swapaxes(-1, -2) @ dout),
    }


SPEC = KernelSpec("attention_backward", attention_backward, _prepare, _expected)
