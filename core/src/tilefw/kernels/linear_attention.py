"""Causal linear attention with a decay, by chunks: products within a chunk, and a state that is carried from chunk to chunk.

The state is h = exp(g) · h + k vᵀ at each step of time, and out = scale · q h. Yang et al., "Gated Linear Attention
Transformers with Hardware-Efficient Training", 2024, with one decay for a head, as in Mamba-2 (Dao and Gu, 2024). One program has
one head and a block of the values' elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def linear_attention(
    q_ptr, k_ptr, v_ptr, g_ptr, out_ptr, state_ptr, length, value_size, scale,
    CHUNK: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr,
):
    head = tl.program_id(1)
    step = tl.arange(0, CHUNK)
    key = tl.arange(0, BLOCK_K)
    value = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    state = tl.zeros([BLOCK_K, BLOCK_V], dtype=tl.float32)
    for start in range(0, length, CHUNK):
        time = start + step
        row = head * length + time
        inside = time < length
        # Beyond the end keys are zero and nothing decays: the state stays.
        g = tl.load(g_ptr + row, mask=inside, other=0.0)
        q = tl.load(q_ptr + row[:, None] * BLOCK_K + key[None, :], mask=inside[:, None], other=0.0)
        k = tl.load(k_ptr + row[:, None] * BLOCK_K + key[None, :], mask=inside[:, None], other=0.0)
        places = row[:, None] * value_size + value[None, :]
        v = tl.load(v_ptr + places, mask=inside[:, None] & (value < value_size)[None, :], other=0.0)
        level = tl.cumsum(g, axis=0)  # from the start of the chunk on
        decay = tl.exp(tl.where(step[:, None] >= step[None, :], level[:, None] - level[None, :], -float("inf")))
        weights = tl.dot(q, tl.trans(k)) * decay
        out = tl.dot(q, state.to(q.dtype)) * tl.exp(level)[:, None]
        out = tl.dot(weights.to(v.dtype), v, out) * scale
        tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=inside[:, None] & (value < value_size)[None, :])
        all_of_it = tl.sum(g, axis=0)
        fresh = (v * tl.exp(all_of_it - level)[:, None]).to(v.dtype)
        state = tl.dot(tl.trans(k), fresh, state * tl.exp(all_of_it))
    state_ptrs = state_ptr + (head * BLOCK_K + key)[:, None] * value_size + value[None, :]
    tl.store(state_ptrs, state, mask=(value < value_size)[None, :])


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    heads, length, name = p["heads"], p["length"], p["dtype"]
    q, k = (inputs.draw(rng, p["inputs"], (heads, length, p["key_size"]), name) for _ in range(2))
    arguments = {
        "q_ptr": q, "k_ptr": k, "v_ptr": inputs.draw(rng, p["inputs"], (heads, length, p["value_size"]), name),
        "g_ptr": Buffer(rng.uniform(-0.3, 0.0, (heads, length)).astype(np.float32), "fp32"),
        "out_ptr": inputs.empty((heads, length, p["value_size"]), name),
        "state_ptr": inputs.empty((heads, p["key_size"], p["value_size"]), "fp32"),
        "length": length, "value_size": p["value_size"], "scale": 1 / math.sqrt(p["key_size"]),
    }
    constexprs = {"CHUNK": p["chunk"], "BLOCK_K": p["key_size"], "BLOCK_V": p["block_v"]}
    grid = (-(-p["value_size"] // p["block_v"]), heads, 1)
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, grid, ("out_ptr", "state_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """Chunk by chunk as the kernel goes: weights, scaled values and the carried state are rounded to the operands' type."""
    name = p["dtype"]
    q, k, v = (formats.decode(launch.buffer(f"{one}_ptr").array, name) for one in "qkv")
    g = launch.buffer("g_ptr").array.astype(np.float64)
    state, out = np.zeros(launch.buffer("state_ptr").array.shape), np.empty(v.shape)

    def rounded(values: np.ndarray) -> np.ndarray:
        return formats.decode(formats.encode(values, name), name)

    for start in range(0, p["length"], p["chunk"]):
        now = slice(start, min(start + p["chunk"], p["length"]))
        level = np.cumsum(g[:, now], axis=1)
        decay = np.tril(np.exp(np.minimum(level[:, :, None] - level[:, None, :], 0.0)))
        weights = q[:, now] @ k[:, now].swapaxes(1, 2) * decay
        carried = q[:, now] @ rounded(state) * np.exp(level)[..., None]
        out[:, now] = (carried + rounded(weights) @ v[:, now]) * float(np.float32(1 / math.sqrt(p["key_size"])))
        fresh = rounded(v[:, now] * np.exp(level[:, -1:] - level)[..., None])
        state = state * np.exp(level[:, -1])[:, None, None] + k[:, now].swapaxes(1, 2) @ fresh
    return {"out_ptr": out, "state_ptr": state}


SPEC = KernelSpec("linear_attention", linear_attention, _prepare, _expected)
