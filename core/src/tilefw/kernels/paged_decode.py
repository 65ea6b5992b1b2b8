"""Attention of one new query a sequence over a cache in pages, the keys of a sequence shared by several programs (split K).

Dao et al., "Flash-Decoding for long-context inference", 2023. One program has all queries of one head of keys, so that each key is
read once; it leaves its part and the part's log-sum-exp, which `merge_splits` joins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.online_softmax import LN_2, LOG2_E, attend, base_two, take_scores
from tilefw.kernels.paged_cache import draw_cache, keys_in_order, keys_of_split, runs, slots_of
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def paged_decode(
    q_ptr, k_ptr, v_ptr, pages_ptr, lengths_ptr, parts_ptr, lse_ptr, sequences, kv_heads, table_width, scale,
    GROUP: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin, end = keys_of_split(tl.load(lengths_ptr + sequence), split, SPLITS, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    member = tl.arange(0, BLOCK_H)  # of the group of heads that share these keys
    row = (sequence * kv_heads + kv_head) * GROUP + member
    q = tl.load(q_ptr + row[:, None] * BLOCK_D + d[None, :], mask=member[:, None] < GROUP, other=0.0)

    peak = tl.full([BLOCK_H], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)
    base2 = scale * LOG2_E
    for start in range(begin, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        slot = (slots_of(pages_ptr + sequence * table_width, key, end, PAGE) * kv_heads + kv_head) * BLOCK_D
        k = tl.load(k_ptr + slot[None, :] + d[:, None], mask=key[None, :] < end, other=0.0)
        scores = tl.where(key[None, :] < end, tl.dot(q, k) * base2, -float("inf"))
        weights, shrink, peak, total = take_scores(scores, peak, total)
        v = tl.load(v_ptr + slot[:, None] + d[None, :], mask=key[:, None] < end, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])

    place = split * sequences * kv_heads * GROUP + row
    some = tl.where(total > 0, total, 1.0)  # a split without keys leaves zeros, whose log-sum-exp is -inf
    tl.store(parts_ptr + place[:, None] * BLOCK_D + d[None, :], acc / some[:, None], mask=member[:, None] < GROUP)
    tl.store(lse_ptr + place, (peak + tl.log2(some)) * LN_2, mask=member < GROUP)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    sequences, heads, size = p["sequences"], p["kv_heads"] * p["group"], p["head_size"]
    keys = draw_cache(rng, p, (p["kv_heads"], size))
    values = inputs.draw(rng, p["inputs"], keys.slots.array.shape, p["dtype"])
    arguments = {
        "q_ptr": inputs.draw(rng, p["inputs"], (sequences, heads, size), p["dtype"]), "k_ptr": keys.slots, "v_ptr": values,
        "pages_ptr": keys.pages, "lengths_ptr": keys.lengths,
        "parts_ptr": inputs.empty((p["splits"], sequences, heads, size), "fp32"),
        "lse_ptr": inputs.empty((p["splits"], sequences, heads), "fp32"),
        "sequences": sequences, "kv_heads": p["kv_heads"], "table_width": keys.pages.array.shape[1], "scale": 1 / math.sqrt(size),
    }
    constexprs = {
        "GROUP": p["group"], "PAGE": p["page"], "SPLITS": p["splits"],
        "BLOCK_H": max(16, tilefw.next_power_of_2(p["group"])), "BLOCK_N": p["block_n"], "BLOCK_D": size,
    }
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, (sequences, p["kv_heads"], p["splits"]), ("parts_ptr", "lse_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    q = formats.decode(launch.buffer("q_ptr").array, p["dtype"]).reshape(p["sequences"], p["kv_heads"], p["group"], -1)
    parts = np.zeros((p["splits"], *q.shape))
    lse = np.full(parts.shape[:-1], -np.inf)
    scale = base_two(1 / math.sqrt(p["head_size"]))
    for sequence, queries in enumerate(q):
        k, v = (keys_in_order(launch, name, sequence).swapaxes(0, 1) for name in ("k_ptr", "v_ptr"))
        for split, run in enumerate(runs(k.shape[1], p["splits"], p["block_n"])):
            if run.start < run.stop:
                scores = queries @ k[:, run].swapaxes(1, 2) * scale
                start = np.full(scores.shape[:2], -np.inf), np.zeros(scores.shape[:2])
                acc, peak, total = attend(scores, v[:, run], p["block_n"], p["dtype"], *start)
                parts[split, sequence], lse[split, sequence] = acc / total[..., None], (peak + np.log2(total)) * math.log(2)
    shape = launch.buffer("parts_ptr").array.shape
    return {"parts_ptr": parts.reshape(shape), "lse_ptr": lse.reshape(shape[:-1])}


SPEC = KernelSpec("paged_decode", paged_decode, _prepare, _expected)
