"""Multi-head latent attention of one new query a sequence: all heads read one latent, which is key and value at once.

DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1, with the up-projections absorbed into queries and output. A slot of the paged
cache has the latent and a part with rotary positions, which only scores see; a tile of latents is loaded once for both products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.online_softmax import LN_2, LOG2_E, attend, base_two, take_scores
from tilefw.kernels.paged_cache import draw_cache, keys_in_order, keys_of_split, runs, slots_of
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def mla_decode(
    q_ptr, cache_ptr, pages_ptr, lengths_ptr, parts_ptr, lse_ptr, sequences, heads, table_width, scale,
    LATENT: tl.constexpr, ROTARY: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):
    sequence, split = tl.program_id(0), tl.program_id(2)
    begin, end = keys_of_split(tl.load(lengths_ptr + sequence), split, SPLITS, BLOCK_N)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    latent = tl.arange(0, LATENT)
    rotary = LATENT + tl.arange(0, ROTARY)
    inside = head[:, None] < heads
    q_ptrs = q_ptr + (sequence * heads + head)[:, None] * (LATENT + ROTARY)
    q = tl.load(q_ptrs + latent[None, :], mask=inside, other=0.0)
    q_rotary = tl.load(q_ptrs + rotary[None, :], mask=inside, other=0.0)

    peak = tl.full([BLOCK_H], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, LATENT], dtype=tl.float32)
    base2 = scale * LOG2_E
    for start in range(begin, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        slot = slots_of(pages_ptr + sequence * table_width, key, end, PAGE) * (LATENT + ROTARY)
        c = tl.load(cache_ptr + slot[:, None] + latent[None, :], mask=key[:, None] < end, other=0.0)
        k_rotary = tl.load(cache_ptr + slot[None, :] + rotary[:, None], mask=key[None, :] < end, other=0.0)
        scores = tl.dot(q_rotary, k_rotary, tl.dot(q, tl.trans(c))) * base2
        scores = tl.where(key[None, :] < end, scores, -float("inf"))
        weights, shrink, peak, total = take_scores(scores, peak, total)
        acc = tl.dot(weights.to(c.dtype), c, acc * shrink[:, None])

    place = (split * sequences + sequence) * heads + head
    some = tl.where(total > 0, total, 1.0)  # a split without keys leaves zeros, whose log-sum-exp is -inf
    tl.store(parts_ptr + place[:, None] * LATENT + latent[None, :], acc / some[:, None], mask=inside)
    tl.store(lse_ptr + place, (peak + tl.log2(some)) * LN_2, mask=head < heads)


def _scale(p: Parameters) -> float:
    """Of a head before absorption: a quarter as many elements as the latent, as DeepSeek has them, and the rotary ones."""
    return 1 / math.sqrt(p["latent"] // 4 + p["rotary"])


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    sequences, heads, latent, rotary = p["sequences"], p["heads"], p["latent"], p["rotary"]
    cache = draw_cache(rng, p, (latent + rotary,))
    arguments = {
        "q_ptr": inputs.draw(rng, p["inputs"], (sequences, heads, latent + rotary), p["dtype"]),
        "cache_ptr": cache.slots, "pages_ptr": cache.pages, "lengths_ptr": cache.lengths,
        "parts_ptr": inputs.empty((p["splits"], sequences, heads, latent), "fp32"),
        "lse_ptr": inputs.empty((p["splits"], sequences, heads), "fp32"),
        "sequences": sequences, "heads": heads, "table_width": cache.pages.array.shape[1], "scale": _scale(p),
    }
    constexprs = {
        "LATENT": latent, "ROTARY": rotary, "PAGE": p["page"], "SPLITS": p["splits"], "BLOCK_H": 16, "BLOCK_N": p["block_n"],
    }
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, (sequences, ceil_div(heads, 16), p["splits"]), ("parts_ptr", "lse_ptr"), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    q = formats.decode(launch.buffer("q_ptr").array, p["dtype"])
    parts = np.zeros((p["splits"], *q.shape[:2], p["latent"]))
    lse = np.full(parts.shape[:-1], -np.inf)
    for sequence, queries in enumerate(q):
        keys = keys_in_order(launch, "cache_ptr", sequence)
        for split, run in enumerate(runs(len(keys), p["splits"], p["block_n"])):
            if run.start < run.stop:
                scores = queries @ keys[run].T * base_two(_scale(p))
                start = np.full(p["heads"], -np.inf), np.zeros(p["heads"])
                acc, peak, total = attend(scores, keys[run, : p["latent"]], p["block_n"], p["dtype"], *start)
                parts[split, sequence], lse[split, sequence] = acc / total[:, None], (peak + np.log2(total)) * math.log(2)
    return {"parts_ptr": parts, "lse_ptr": lse}


SPEC = KernelSpec("mla_decode", mla_decode, _prepare, _expected)
