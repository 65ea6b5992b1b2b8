"""matmul_all_reduce: the sum over ranks of A · B on every rank: in bulk, or each tile added up when all ranks have made it.

Every tile has an owner, which adds up the ranks' tiles and stores the sum to all: two shots. A rank makes a tile in its own heap
and adds one to the owner's flag of it; the owner waits for as many as there are ranks. Who does what is the form: two kernels at
once (a producer and a consumer), each program of one kernel first the one and then the other (fused), or some of its programs the
one and some the other (specialised).
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.all_reduce import all_reduce
from tilefw.kernels.distributed.meeting import (
    SymmetricNode,
    launch_together,
    leaves_its_result,
    meet,
    others,
    store_to_all,
    sum_of_ranks,
    words,
)
from tilefw.kernels.distributed.requirements import require_form, require_shape
from tilefw.kernels.distributed.tiles import product_tile, tile_at, tiles_of


@tilefw.jit
def make_tiles(
    a_ptr, b_ptr, parts_ptr, flags_ptr, first, step, m, n, k, SIGNALS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Tiles of this rank's product, and a signal to the owner of each."""
    for tile in range(first, tiles_of(m, n, BLOCK_M, BLOCK_N), step):
        rows, columns, offsets, inside = tile_at(tile, m, n, BLOCK_M, BLOCK_N)
        tl.store(parts_ptr + offsets, product_tile(a_ptr, b_ptr, rows, columns, m, n, k, BLOCK_K), mask=inside)
        if SIGNALS:
            tld.signal(flags_ptr + tile, tile % tld.num_ranks(), op="add")


@tilefw.jit
def add_up_tiles(parts_ptr, out_ptr, flags_ptr, first, step, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The sums of the tiles that this rank owns, to all ranks."""
    ranks = tld.num_ranks()
    for tile in range(tld.rank() + first * ranks, tiles_of(m, n, BLOCK_M, BLOCK_N), step * ranks):
        tld.wait(flags_ptr + tile, value=ranks)
        _, _, offsets, inside = tile_at(tile, m, n, BLOCK_M, BLOCK_N)
        total = sum_of_ranks(parts_ptr, offsets, inside)
        store_to_all(out_ptr, total.to(out_ptr.dtype.element_ty), offsets, inside)


@tilefw.jit
def multiply(a_ptr, b_ptr, parts_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    make_tiles(a_ptr, b_ptr, parts_ptr, parts_ptr, program, programs, m, n, k, False, BLOCK_M, BLOCK_N, BLOCK_K)


@tilefw.jit
def produce(
    a_ptr, b_ptr, parts_ptr, flags_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    make_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, program, programs, m, n, k, True, BLOCK_M, BLOCK_N, BLOCK_K)


@tilefw.jit
def consume(parts_ptr, out_ptr, flags_ptr, words_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    add_up_tiles(parts_ptr, out_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), m, n, BLOCK_M, BLOCK_N)
    meet(words_ptr)


@tilefw.jit
def multiply_then_reduce(
    a_ptr, b_ptr, parts_ptr, out_ptr, flags_ptr, words_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    make_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, program, programs, m, n, k, True, BLOCK_M, BLOCK_N, BLOCK_K)
    add_up_tiles(parts_ptr, out_ptr, flags_ptr, program, programs, m, n, BLOCK_M, BLOCK_N)
    meet(words_ptr)


@tilefw.jit
def multiply_beside_reduce(
    a_ptr, b_ptr, parts_ptr, out_ptr, flags_ptr, words_ptr, m, n, k, REDUCERS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    program = tl.program_id(0)
    if program < REDUCERS:
        add_up_tiles(parts_ptr, out_ptr, flags_ptr, program, REDUCERS, m, n, BLOCK_M, BLOCK_N)
    else:
        place, step = program - REDUCERS, tl.num_programs(0) - REDUCERS
        make_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, place, step, m, n, k, True, BLOCK_M, BLOCK_N, BLOCK_K)
    meet(words_ptr)


FORMS = ("bulk", "producer_consumer", "fused", "specialised")


@leaves_its_result
def matmul_all_reduce(
    node: SymmetricNode, a: Any, b: Any, form: str = "fused", *, programs: int = 3, block: int = 32, **launch: Any
) -> Any:
    """The sum over ranks of a · b on every rank, in fp32; a and b are each rank's share of the inner dimension."""
    require_form("matmul_all_reduce", form, FORMS, programs=programs, block=block)
    m, k = require_shape("a", a, (None, None))
    _, n = require_shape("b", b, (k, None))
    parts = node.zeros((m, n), "float32", name="products")
    tile, blocks = {"BLOCK_M": block, "BLOCK_N": block}, {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        node.launch(multiply, (programs,), a, b, parts, m, n, k, **blocks, **launch)
        return all_reduce(node, parts, "two_shot", programs=programs, **launch)
    out = node.zeros((m, n), "float32", name="sums")
    flags = node.zeros((tilefw.cdiv(m, block) * tilefw.cdiv(n, block),), "int32", name="flags of tiles")
    meeting = words(node, programs + 1)
    if form == "producer_consumer":
        launch_together(
            node, (produce, others(programs), (a, b, parts, flags, m, n, k), blocks),
            (consume, 1, (parts, out, flags, meeting, m, n), tile), **launch,
        )
    elif form == "fused":
        node.launch(multiply_then_reduce, (programs,), a, b, parts, out, flags, meeting, m, n, k, **blocks, **launch)
    else:
        grid = (1 + others(programs),)
        node.launch(multiply_beside_reduce, grid, a, b, parts, out, flags, meeting, m, n, k, REDUCERS=1, **blocks, **launch)
    return out
