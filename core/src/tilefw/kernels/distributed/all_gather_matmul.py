"""all_gather_matmul: C = A · B where each rank has rows of A, on every rank: first all rows are gathered, or each as it is needed.

A producer pushes blocks of this rank's rows to all ranks and signals each of them; a consumer multiplies, and waits for the rows of
its tile alone, its own rank's first. They are two kernels at once (producer_consumer) or programs of one (specialised). Fused,
every program loads a tile's rows from the rank that has them, and nothing is gathered.
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.all_gather import all_gather
from tilefw.kernels.distributed.meeting import SymmetricNode, launch_together, leaves_its_result, meet, others, store_to_all, words
from tilefw.kernels.distributed.requirements import require_form, require_shape
from tilefw.kernels.distributed.tiles import product_tile, tile_at, tiles_of


@tilefw.jit
def push_rows(a_ptr, gathered_ptr, flags_ptr, first, step, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Blocks of this rank's rows to all ranks, and a signal behind each block."""
    ranks, here = tld.num_ranks(), tld.rank()
    blocks, blocks_k = tl.cdiv(m, BLOCK_M), tl.cdiv(k, BLOCK_K)
    for block in range(first, blocks, step):
        for tile in range(block * blocks_k, (block + 1) * blocks_k):
            _, _, offsets, inside = tile_at(tile, m, k, BLOCK_M, BLOCK_K)
            store_to_all(gathered_ptr + here.to(tl.int64) * m * k, tl.load(a_ptr + offsets, mask=inside), offsets, inside)
        for turn in range(ranks):
            tld.signal(flags_ptr + here * blocks + block, (here + turn) % ranks)


@tilefw.jit
def multiply_rows(
    gathered_ptr, b_ptr, c_ptr, flags_ptr, first, step, m, n, k, SOURCE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Tiles of C, those of this rank's rows first. SOURCE: rows are "gathered", "arriving" there, or with each "peer"."""
    ranks, tiles = tld.num_ranks(), tiles_of(m, n, BLOCK_M, BLOCK_N)
    for turn in range(first, ranks * tiles, step):
        source, tile = (tld.rank() + turn // tiles) % ranks, turn % tiles
        behind = source.to(tl.int64) * m
        rows, columns, offsets, inside = tile_at(tile, m, n, BLOCK_M, BLOCK_N)
        if SOURCE == "peer":
            a_ptr = tld.at(gathered_ptr, source)
        else:
            a_ptr = gathered_ptr + behind * k
        if SOURCE == "arriving":
            tld.wait(flags_ptr + source * tl.cdiv(m, BLOCK_M) + tile // tl.cdiv(n, BLOCK_N))
        product = product_tile(a_ptr, b_ptr, rows, columns, m, n, k, BLOCK_K)
        tl.store(c_ptr + behind * n + offsets, product.to(c_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def multiply_gathered(
    gathered_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    multiply_rows(gathered_ptr, b_ptr, c_ptr, c_ptr, program, programs, m, n, k, "gathered", BLOCK_M, BLOCK_N, BLOCK_K)


@tilefw.jit
def produce(a_ptr, gathered_ptr, flags_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    push_rows(a_ptr, gathered_ptr, flags_ptr, tl.program_id(0), tl.num_programs(0), m, k, BLOCK_M, BLOCK_K)


@tilefw.jit
def consume(
    gathered_ptr, b_ptr, c_ptr, flags_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    multiply_rows(gathered_ptr, b_ptr, c_ptr, flags_ptr, program, programs, m, n, k, "arriving", BLOCK_M, BLOCK_N, BLOCK_K)


@tilefw.jit
def pull_and_multiply(
    a_ptr, b_ptr, c_ptr, words_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    meet(words_ptr)
    program, programs = tl.program_id(0), tl.num_programs(0)
    multiply_rows(a_ptr, b_ptr, c_ptr, c_ptr, program, programs, m, n, k, "peer", BLOCK_M, BLOCK_N, BLOCK_K)
    meet(words_ptr)


@tilefw.jit
def push_beside_multiply(
    a_ptr, gathered_ptr, b_ptr, c_ptr, flags_ptr, m, n, k, PUSHERS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    program = tl.program_id(0)
    if program < PUSHERS:
        push_rows(a_ptr, gathered_ptr, flags_ptr, program, PUSHERS, m, k, BLOCK_M, BLOCK_K)
    else:
        place, step = program - PUSHERS, tl.num_programs(0) - PUSHERS
        multiply_rows(gathered_ptr, b_ptr, c_ptr, flags_ptr, place, step, m, n, k, "arriving", BLOCK_M, BLOCK_N, BLOCK_K)


FORMS = ("bulk", "producer_consumer", "fused", "specialised")


@leaves_its_result
def all_gather_matmul(
    node: SymmetricNode, a: Any, b: Any, form: str = "specialised", *, programs: int = 3, block: int = 32, **launch: Any
) -> Any:
    """(the ranks' rows a one behind the other) · b on every rank, in b's type; all are of one float type."""
    require_form("all_gather_matmul", form, FORMS, programs=programs, block=block)
    m, k = require_shape("a", a, (None, None))
    _, n = require_shape("b", b, (k, None))
    c = node.zeros((node.num_ranks * m, n), b[0].dtype, name="c")
    rows, blocks = {"BLOCK_M": block, "BLOCK_K": block}, {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        gathered = all_gather(node, a, programs=programs, **launch)
        node.launch(multiply_gathered, (programs,), gathered, b, c, m, n, k, **blocks, **launch)
        return c
    if form == "fused":
        node.launch(pull_and_multiply, (programs,), a, b, c, words(node, programs), m, n, k, **blocks, **launch)
        return c
    gathered = node.zeros((node.num_ranks * m, k), a[0].dtype, name="gathered rows")
    flags = node.zeros((node.num_ranks, tilefw.cdiv(m, block)), "int32", name="flags of rows")
    if form == "producer_consumer":
        launch_together(
            node, (produce, 1, (a, gathered, flags, m, k), rows),
            (consume, others(programs), (gathered, b, c, flags, m, n, k), blocks), **launch,
        )
        return c
    grid = (1 + others(programs),)
    node.launch(push_beside_multiply, grid, a, gathered, b, c, flags, m, n, k, PUSHERS=1, **blocks, **launch)
    return c
