"""Attention with an online softmax (Dao, "FlashAttention-2", 2023): one block of queries of one head a program.

Causal masks are aligned at the ends: with fewer queries than keys, the last query sees every key. Heads of queries share a head
of keys and values in equal groups (Ainslie et al., "GQA", 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.attention_sight import keys_in_sight, refuse_bad_heads
from tilefw.kernels.online_softmax import LN_2, LOG2_E
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def attend(
    q, k_ptr, v_ptr, acc, peak, total, query, stride_kn, stride_vn, head_size, keys, past, scale, begin, end,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, WHOLE_HEAD: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Softmax state (acc, peak, total) after keys begin … end; MASKED where some of them may be out of sight."""
    d = tl.arange(0, BLOCK_D)
    for start in range(begin, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + key[None, :] * stride_kn + d[:, None]
        v_ptrs = v_ptr + key[:, None] * stride_vn + d[None, :]
        if MASKED:
            k = tl.load(k_ptrs, mask=(d[:, None] < head_size) & (key[None, :] < keys), other=0.0)
        elif WHOLE_HEAD:
            k = tl.load(k_ptrs)
        else:
            k = tl.load(k_ptrs, mask=d[:, None] < head_size, other=0.0)
        scores = tl.dot(q, k, input_precision=INPUT_PRECISION)
        if MASKED:
            seen = key[None, :] < keys
            if CAUSAL:
                seen = seen & (key[None, :] <= query[:, None] + past)
            scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1) * scale)
        p = tl.exp2(scores * scale - higher[:, None])
        shrink = tl.exp2(peak - higher)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None]
        if MASKED:
            v = tl.load(v_ptrs, mask=(key[:, None] < keys) & (d[None, :] < head_size), other=0.0)
        elif WHOLE_HEAD:
            v = tl.load(v_ptrs)
        else:
            v = tl.load(v_ptrs, mask=d[None, :] < head_size, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=INPUT_PRECISION)
        peak = higher
    return acc, peak, total


@tilefw.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, stride_qz, stride_qh, stride_qm, stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn, stride_oz, stride_oh, stride_om, heads, queries, keys, head_size, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WHOLE_HEAD: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    query = first + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    q_base = q_ptr + batch * stride_qz + head * stride_qh
    k_base = k_ptr + batch * stride_kz + head // GROUP * stride_kh
    v_base = v_ptr + batch * stride_vz + head // GROUP * stride_vh
    inside = (query[:, None] < queries) & (d[None, :] < head_size)
    q = tl.load(q_base + query[:, None] * stride_qm + d[None, :], mask=inside, other=0.0)

    peak = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    past = keys - queries
    full, end = keys_in_sight(first, past, keys, CAUSAL, BLOCK_M, BLOCK_N)
    base2 = scale * LOG2_E  # powers of two are what chips have
    acc, peak, total = attend(
        q, k_base, v_base, acc, peak, total, query, stride_kn, stride_vn, head_size, keys, past, base2, 0, full,
        False, CAUSAL, WHOLE_HEAD, INPUT_PRECISION, BLOCK_N, BLOCK_D,
    )
    acc, peak, total = attend(
        q, k_base, v_base, acc, peak, total, query, stride_kn, stride_vn, head_size, keys, past, base2, full, end,
        True, CAUSAL, WHOLE_HEAD, INPUT_PRECISION, BLOCK_N, BLOCK_D,
    )
    out_ptrs = out_ptr + batch * stride_oz + head * stride_oh + query[:, None] * stride_om + d[None, :]
    tl.store(out_ptrs, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + tl.program_id(1) * queries + query, (peak + tl.log2(total)) * LN_2, mask=query < queries)


def _operand(p: Parameters, rng: np.random.Generator, heads: int, length: int) -> Buffer:
    """(batch, heads, length, head size), with heads or positions further out in memory."""
    batch, size = p["batch"], p["head_size"]
    if p["layout"] == "heads_first":
        return inputs.draw(rng, p["inputs"], (batch, heads, length, size), p["dtype"])
    stored = inputs.draw(rng, p["inputs"], (batch, length, heads, size), p["dtype"])
    return Buffer(stored.array.swapaxes(1, 2), p["dtype"])


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_bad_heads("attention", p)
    q = _operand(p, rng, p["heads"], p["queries"])
    k, v = (_operand(p, rng, p["kv_heads"], p["keys"]) for _ in range(2))
    out = inputs.empty((p["batch"], p["heads"], p["queries"], p["head_size"]), p["dtype"])
    arguments = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out,
        "lse_ptr": inputs.empty((p["batch"], p["heads"], p["queries"]), "fp32"),
    }
    for buffer, letters in ((q, ("qz", "qh", "qm")), (k, ("kz", "kh", "kn")), (v, ("vz", "vh", "vn")), (out, ("oz", "oh", "om"))):
        arguments |= {f"stride_{word}": step for word, step in zip(letters, operands.strides(buffer), strict=False)}
    arguments |= {
        "heads": p["heads"], "queries": p["queries"], "keys": p["keys"], "head_size": p["head_size"],
        "scale": 1 / math.sqrt(p["head_size"]),
    }
    block_d = max(16, tilefw.next_power_of_2(p["head_size"]))
    constexprs = {
        "GROUP": p["heads"] // p["kv_heads"], "CAUSAL": p["causal"], "WHOLE_HEAD": block_d == p["head_size"],
        "INPUT_PRECISION": p["input_precision"] if p["dtype"] == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_D": block_d,
    }
    grid = (ceil_div(p["queries"], p["block_m"]), p["batch"] * p["heads"], 1)
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, grid, ("out_ptr", "lse_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """By blocks of keys as the kernel goes, since each block's weights are rounded to the operands' type under its own peak."""
    q, k, v = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    k, v = (np.repeat(part, p["heads"] // p["kv_heads"], axis=1) for part in (k, v))
    # The scale for powers of two is one fp32 number, rounded twice; the kernel has no other choice.
    given = launch.arguments["scale"]
    assert isinstance(given, float)
    scale = np.float32(given) * np.float32(LOG2_E.value)
    scores = q @ k.swapaxes(-1, -2) * float(scale)
    if p["causal"]:
        position = np.arange(p["queries"])[:, None] + p["keys"] - p["queries"]
        scores = np.where(np.arange(p["keys"]) <= position, scores, -np.inf)
    peak, total, acc = np.full(scores.shape[:-1], -np.inf), np.zeros(scores.shape[:-1]), np.zeros(q.shape)
    for start in range(0, p["keys"], p["block_n"]):
        block = scores[..., start : start + p["block_n"]]
        higher = np.maximum(peak, block.max(axis=-1))
        weights = np.exp2(block - higher[..., None])
        shrink = np.exp2(peak - higher)
        total = total * shrink + weights.sum(axis=-1)
        rounded = formats.decode(formats.encode(weights, p["dtype"]), p["dtype"])
        acc = acc * shrink[..., None] + rounded @ v[..., start : start + p["block_n"], :]
        peak = higher
    return {"out_ptr": acc / total[..., None], "lse_ptr": (peak + np.log2(total)) * math.log(2)}


SPEC = KernelSpec("attention", attention, _prepare, _expected)
