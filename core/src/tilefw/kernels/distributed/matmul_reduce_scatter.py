"""matmul_reduce_scatter: the sum over ranks of A · B, of which each rank keeps its rows: in bulk, or tile by tile as it is made.

A producer stores each tile of its product to the rank that keeps it, beside those of the other ranks, and adds to that rank's
signal of the tile. A consumer adds up tiles of its own rank, each as soon as all ranks have signalled it. They are two kernels at
once (producer_consumer), one after the other in every program (fused), or programs of one kernel (specialised).
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.matmul_all_reduce import multiply
from tilefw.kernels.distributed.meeting import SymmetricNode, launch_together, leaves_its_result, others, part
from tilefw.kernels.distributed.reduce_scatter import reduce_scatter
from tilefw.kernels.distributed.requirements import require_form, require_shape
from tilefw.kernels.distributed.tiles import product_tile, tile_at, tiles_of


@tilefw.jit
def send_tiles(
    a_ptr, b_ptr, parts_ptr, flags_ptr, first, step, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Tiles of this rank's product to the ranks that keep them, the next rank's first."""
    ranks, tiles = tld.num_ranks(), tiles_of(m, n, BLOCK_M, BLOCK_N)
    mine = parts_ptr + tld.rank().to(tl.int64) * m * n
    for turn in range(first, ranks * tiles, step):
        keeper, tile = (tld.rank() + 1 + turn // tiles) % ranks, turn % tiles
        rows, columns, offsets, inside = tile_at(tile, m, n, BLOCK_M, BLOCK_N)
        part = product_tile(a_ptr + keeper.to(tl.int64) * m * k, b_ptr, rows, columns, m, n, k, BLOCK_K)
        tld.store(mine + offsets, part, keeper, mask=inside)
        tld.signal(flags_ptr + tile, keeper, op="add")


@tilefw.jit
def add_up_parts(parts_ptr, out_ptr, flags_ptr, first, step, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The sums of this rank's own tiles, from rank 0 on."""
    ranks = tld.num_ranks()
    for tile in range(first, tiles_of(m, n, BLOCK_M, BLOCK_N), step):
        _, _, offsets, inside = tile_at(tile, m, n, BLOCK_M, BLOCK_N)
        tld.wait(flags_ptr + tile, value=ranks)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for source in range(ranks):
            total += tl.load(parts_ptr + tl.cast(source, tl.int64) * m * n + offsets, mask=inside, other=0)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def produce(
    a_ptr, b_ptr, parts_ptr, flags_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    send_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)


@tilefw.jit
def consume(parts_ptr, out_ptr, flags_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    add_up_parts(parts_ptr, out_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), m, n, BLOCK_M, BLOCK_N)


@tilefw.jit
def multiply_then_scatter(
    a_ptr, b_ptr, parts_ptr, out_ptr, flags_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    send_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, program, programs, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    add_up_parts(parts_ptr, out_ptr, flags_ptr, program, programs, m, n, BLOCK_M, BLOCK_N)


@tilefw.jit
def multiply_beside_scatter(
    a_ptr, b_ptr, parts_ptr, out_ptr, flags_ptr, m, n, k, REDUCERS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    program = tl.program_id(0)
    if program < REDUCERS:
        add_up_parts(parts_ptr, out_ptr, flags_ptr, program, REDUCERS, m, n, BLOCK_M, BLOCK_N)
    else:
        place, step = program - REDUCERS, tl.num_programs(0) - REDUCERS
        send_tiles(a_ptr, b_ptr, parts_ptr, flags_ptr, place, step, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)


FORMS = ("bulk", "producer_consumer", "fused", "specialised")


@leaves_its_result
def matmul_reduce_scatter(
    node: SymmetricNode, a: Any, b: Any, form: str = "fused", *, programs: int = 3, block: int = 32, **launch: Any
) -> Any:
    """Rows r of the sum over ranks of a · b on rank r, in fp32; a has as many rows for each rank."""
    require_form("matmul_reduce_scatter", form, FORMS, programs=programs, block=block)
    rows, k = require_shape("a", a, (None, None))
    _, n = require_shape("b", b, (k, None))
    m = part(node, rows)
    tile, blocks = {"BLOCK_M": block, "BLOCK_N": block}, {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        products = node.zeros((rows, n), "float32", name="products")
        node.launch(multiply, (programs,), a, b, products, rows, n, k, **blocks, **launch)
        return reduce_scatter(node, products, programs=programs, **launch)
    out = node.zeros((m, n), "float32", name="sums")
    parts = node.zeros((node.num_ranks, m, n), "float32", name="parts")
    flags = node.zeros((tilefw.cdiv(m, block) * tilefw.cdiv(n, block),), "int32", name="flags of tiles")
    if form == "producer_consumer":
        launch_together(
            node, (produce, others(programs), (a, b, parts, flags, m, n, k), blocks),
            (consume, 1, (parts, out, flags, m, n), tile), **launch,
        )
    elif form == "fused":
        node.launch(multiply_then_scatter, (programs,), a, b, parts, out, flags, m, n, k, **blocks, **launch)
    else:
        grid = (1 + others(programs),)
        node.launch(multiply_beside_scatter, grid, a, b, parts, out, flags, m, n, k, REDUCERS=1, **blocks, **launch)
    return out
