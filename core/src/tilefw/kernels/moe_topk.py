"""The router of a mixture of experts: each token's best experts with their softmax weights, and how often a block chose each.

A logit and its expert make one integer key, so that a single sort orders by logit and, among equals, by expert. The counts of
blocks, not sums in memory, are what `moe_scatter` starts from: no atomic makes the order of rows a matter of chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, operands
from tilefw.kernels.moe_choices import refuse_too_many
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def ordered(bits):
    """The bits of an fp32 number as an integer that orders as the number does, and back again."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@tilefw.jit
def moe_topk(
    logits_ptr, experts_ptr, weights_ptr, counts_ptr, tokens, experts,
    TOP_K: tl.constexpr, KEPT: tl.constexpr, AMONG_CHOSEN: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_E: tl.constexpr,
):
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    expert = tl.arange(0, BLOCK_E)
    inside = (token < tokens)[:, None] & (expert < experts)[None, :]
    logits = tl.load(logits_ptr + token[:, None] * experts + expert[None, :], mask=inside, other=-float("inf")).to(tl.float32)
    # Of equal logits the first expert's key is the largest; those past the end come behind every expert.
    keys = (ordered(logits.to(tl.int32, bitcast=True)).to(tl.int64) << 32) | (BLOCK_E - 1 - expert)[None, :]
    best = tl.topk(keys, KEPT)
    chosen = BLOCK_E - 1 - (best & (BLOCK_E - 1)).to(tl.int32)
    logit = ordered((best >> 32).to(tl.int32)).to(tl.float32, bitcast=True)

    rank = tl.arange(0, KEPT)
    kept = (token < tokens)[:, None] & (rank < TOP_K)[None, :]
    peak = tl.max(logit, axis=1)
    shares = tl.where(rank[None, :] < TOP_K, tl.exp(logit - peak[:, None]), 0.0)
    if AMONG_CHOSEN:
        total = tl.sum(shares, axis=1)
    else:
        total = tl.sum(tl.exp(logits - peak[:, None]), axis=1)
    places = token[:, None] * TOP_K + rank[None, :]
    tl.store(experts_ptr + places, chosen, mask=kept)
    tl.store(weights_ptr + places, shares / total[:, None], mask=kept)
    counts = tl.histogram(tl.reshape(chosen, (BLOCK_T * KEPT,)), BLOCK_E, mask=tl.reshape(kept, (BLOCK_T * KEPT,)))
    tl.store(counts_ptr + tl.program_id(0) * experts + expert, counts, mask=expert < experts)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_too_many("moe_topk", p)
    tokens, experts, k = p["tokens"], p["experts"], p["top_k"]
    blocks = ceil_div(tokens, p["block_tokens"])
    arguments = {
        "logits_ptr": inputs.draw(rng, p["inputs"], (tokens, experts), p["dtype"]),
        "experts_ptr": inputs.empty((tokens, k), "int32"), "weights_ptr": inputs.empty((tokens, k), "fp32"),
        "counts_ptr": inputs.empty((blocks, experts), "int32"), "tokens": tokens, "experts": experts,
    }
    constexprs = {
        "TOP_K": k, "KEPT": tilefw.next_power_of_2(k), "AMONG_CHOSEN": p["softmax"] == "chosen",
        "BLOCK_T": p["block_tokens"], "BLOCK_E": tilefw.next_power_of_2(experts),
    }
    outputs = ("experts_ptr", "weights_ptr", "counts_ptr")
    return Launch(arguments, constexprs, (blocks, 1, 1), outputs, {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    logits = operands.values(launch.buffer("logits_ptr")).astype(np.float64)
    index = np.broadcast_to(np.arange(p["experts"]), logits.shape)
    order = np.lexsort((index, np.signbit(logits), -logits))  # the last key counts first; of zeros the positive one is larger
    chosen = order[:, : p["top_k"]]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = np.take_along_axis(powers, chosen, axis=1)
    total = (shares if p["softmax"] == "chosen" else powers).sum(axis=1, keepdims=True)
    parts = [chosen[first : first + p["block_tokens"]] for first in range(0, p["tokens"], p["block_tokens"])]
    counts = np.array([np.bincount(part.reshape(-1), minlength=p["experts"]) for part in parts])
    return {"experts_ptr": chosen, "weights_ptr": shares / total, "counts_ptr": counts}


SPEC = KernelSpec("moe_topk", moe_topk, _prepare, _expected)
