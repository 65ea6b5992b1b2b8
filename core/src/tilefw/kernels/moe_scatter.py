"""Tokens in the order of their experts: where each choice of a token goes, which choice lies at each place, where experts begin.

A choice is a token's j-th expert, number token · top_k + j. Its place is the start of its expert, plus the choices of that expert
by earlier blocks, plus those before it in its own block: equal experts keep the order of tokens, on every run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs
from tilefw.kernels.moe_choices import draw_choices, refuse_too_many
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def moe_scatter(
    experts_ptr, counts_ptr, places_ptr, choices_ptr, offsets_ptr, choices, experts, blocks,
    BLOCK: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_B: tl.constexpr,
):
    program = tl.program_id(0)
    expert = tl.arange(0, BLOCK_E)
    total = tl.zeros((BLOCK_E,), dtype=tl.int32)
    earlier = tl.zeros((BLOCK_E,), dtype=tl.int32)
    for first in range(0, blocks, BLOCK_B):
        block = first + tl.arange(0, BLOCK_B)
        inside = (block < blocks)[:, None] & (expert < experts)[None, :]
        counts = tl.load(counts_ptr + block[:, None] * experts + expert[None, :], mask=inside, other=0)
        total += tl.sum(counts, axis=0)
        earlier += tl.sum(tl.where((block < program)[:, None], counts, 0), axis=0)
    start = tl.cumsum(total, axis=0) - total
    if program == 0:
        tl.store(offsets_ptr + expert, start, mask=expert <= experts)

    choice = program * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(experts_ptr + choice, mask=choice < choices, other=BLOCK_E)
    mine = chosen[:, None] == expert[None, :]
    before = tl.cumsum(mine.to(tl.int32), axis=0) - 1
    place = tl.sum(tl.where(mine, before + (start + earlier)[None, :], 0), axis=1)
    tl.store(places_ptr + choice, place, mask=choice < choices)
    tl.store(choices_ptr + place, choice, mask=choice < choices)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_too_many("moe_scatter", p)
    experts, block = p["experts"], p["block"]
    chosen = draw_choices(rng, p).reshape(-1)
    parts = [chosen[first : first + block] for first in range(0, chosen.size, block)]
    counts = np.array([np.bincount(part, minlength=experts) for part in parts])
    arguments = {
        "experts_ptr": Buffer(chosen, "int32"), "counts_ptr": Buffer(counts.astype(np.int32), "int32"),
        "places_ptr": inputs.empty(chosen.shape, "int32"), "choices_ptr": inputs.empty(chosen.shape, "int32"),
        "offsets_ptr": inputs.empty((experts + 1,), "int32"),
        "choices": chosen.size, "experts": experts, "blocks": len(parts),
    }
    constexprs = {"BLOCK": block, "BLOCK_E": tilefw.next_power_of_2(experts + 1), "BLOCK_B": p["block_counts"]}
    outputs = ("places_ptr", "choices_ptr", "offsets_ptr")
    return Launch(arguments, constexprs, (len(parts), 1, 1), outputs, {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    chosen = launch.buffer("experts_ptr").array
    order = np.argsort(chosen, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(chosen, minlength=p["experts"]))])
    return {"places_ptr": np.argsort(order), "choices_ptr": order, "offsets_ptr": offsets}


SPEC = KernelSpec("moe_scatter", moe_scatter, _prepare, _expected)
