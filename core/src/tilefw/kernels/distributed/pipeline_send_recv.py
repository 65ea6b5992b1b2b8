"""pipeline_send_recv: batches go through a product on each rank in turn, from rank to rank through a few slots that are used again.

A rank stores what its stage makes of a batch's rows to a slot of the next rank and adds to the word that says how often the slot
was filled; the next rank adds to a word of this one when it has read the slot, and a slot is filled again only then. So all ranks
work at once, on other batches (fused). In bulk, a launch takes all batches through one stage, with a slot for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result
from tilefw.kernels.distributed.rank_results import SINGLE, TINY, Arrays, RankResult, normal, rounded_to, wide
from tilefw.kernels.distributed.requirements import require_form, require_shape
from tilefw.kernels.distributed.tiles import product_tile, tile_at


@tilefw.jit
def run_stage(
    x_ptr, w_ptr, out_ptr, slots_ptr, filled_ptr, emptied_ptr, batches, m, k, slots, WAITS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """This rank's stage of all batches, by blocks of rows; those of one batch and block wait for each other alone."""
    here, last = tld.rank(), tld.num_ranks() - 1
    blocks, columns_of = tl.cdiv(m, BLOCK_M), tl.cdiv(k, BLOCK_N)
    for turn in range(tl.program_id(0), batches * blocks, tl.num_programs(0)):
        batch, block = turn // blocks, turn % blocks
        slot, before = batch % slots, batch // slots
        word, place = slot * blocks + block, tl.cast(slot, tl.int64) * m * k
        own = tl.cast(batch, tl.int64) * m * k
        a_ptr = x_ptr + own
        if here > 0:
            if WAITS:
                tld.wait(filled_ptr + word, value=before + 1, comparison=">=")
            a_ptr = slots_ptr + place
        if (here < last) & (before > 0):  # never where each batch has a slot
            tld.wait(emptied_ptr + word, value=before, comparison=">=")
        for column in range(columns_of):
            rows, columns, offsets, inside = tile_at(block * columns_of + column, m, k, BLOCK_M, BLOCK_N)
            made = product_tile(a_ptr, w_ptr, rows, columns, m, k, k, BLOCK_K).to(out_ptr.dtype.element_ty)
            tl.store(out_ptr + own + offsets, made, mask=inside)
            if here < last:
                tld.store(slots_ptr + place + offsets, made, here + 1, mask=inside)
        if WAITS:
            if here < last:
                tld.signal(filled_ptr + word, here + 1, op="add")
            if here > 0:
                tld.signal(emptied_ptr + word, here - 1, op="add")


@tilefw.jit
def run_stage_alone(
    x_ptr, w_ptr, out_ptr, slots_ptr, words_ptr, stage, batches, m, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    if tld.rank() == stage:
        run_stage(
            x_ptr, w_ptr, out_ptr, slots_ptr, words_ptr, words_ptr, batches, m, k, batches, False, BLOCK_M, BLOCK_N, BLOCK_K
        )


FORMS = ("bulk", "fused")


@leaves_its_result
def pipeline_send_recv(
    node: SymmetricNode, x: Any, w: Any, form: str = "fused", *, slots: int = 2, programs: int = 2, block: int = 32, **launch: Any
) -> Any:
    """What each rank's stage makes of rank 0's batches x (batches, m, k), kept there in x's type: x · w of rank 0, this · w of rank
    1, … Raises LaunchError TFW0872."""
    require_form("pipeline_send_recv", form, FORMS, programs=programs, block=block, slots=slots)
    batches, m, k = shape = require_shape("x", x, (None, None, None))
    require_shape("w", w, (k, k))
    held = batches if form == "bulk" else min(slots, batches)
    out, room = node.zeros(shape, x.dtype, name="what stages made"), node.zeros((held, m, k), x.dtype, name="slots")
    filled = node.zeros((held, tilefw.cdiv(m, block)), "int32", name="filled")
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        for stage in node.ranks:
            node.launch(run_stage_alone, (programs,), x, w, out, room, filled, stage, batches, m, k, **blocks, **launch)
        return out
    emptied = node.zeros(filled.shape, "int32", name="emptied")
    node.launch(run_stage, (programs,), x, w, out, room, filled, emptied, batches, m, k, held, WAITS=True, **blocks, **launch)
    return out


def draw(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    """Five batches of n rows; a weight leaves numbers as large as they are."""
    k = max(2 * n // 3, 1)
    w = [(rng.standard_normal((k, k)) / np.sqrt(k)).astype(each.dtype) for each in normal(rng, ranks, (1,), dtype)]
    return normal(rng, ranks, (5, n, k), dtype), w


def expected(x: Arrays, w: Arrays) -> list[RankResult]:
    """Each stage's bound carries the error of the one before, rounded to x's type, through its product."""
    value, error, found = wide(x[0]), np.zeros(x[0].shape), []
    for weight in map(wide, w):
        magnitude = (np.abs(value) + error) @ np.abs(weight)
        error = error @ np.abs(weight) + 2 * len(weight) * SINGLE * magnitude + TINY
        value = value @ weight
        found.append(RankResult(value, error))
        error = rounded_to(x[0].dtype, found[-1])
    return found
