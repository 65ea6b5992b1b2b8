"""matmul_reduce_scatter: the sum over ranks of A · B, of which each rank keeps its rows: in bulk, or block by block as it is made.

In the producer's form every program stores each block of its product to the rank that keeps it, beside those of the other ranks,
and adds to that rank's signal of the block. Then it adds up blocks of its own rank, each as soon as all ranks have signalled it.
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, meet, part, words
from tilefw.kernels.distributed.reduce_scatter import reduce_scatter


@tilefw.jit
def product_block(a_ptr, b_ptr, rows, columns, last, n, k, BLOCK_K: tl.constexpr):
    """Rows of A up to `last`, times columns of B."""
    total = tl.zeros((rows.shape[0], columns.shape[0]), tl.float32)
    for begin in range(0, k, BLOCK_K):
        inner = begin + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < last) & (inner[None, :] < k), other=0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0)
        total = tl.dot(a, b, total)
    return total


@tilefw.jit
def multiply_and_scatter(
    a_ptr, b_ptr, parts_ptr, out_ptr, flags_ptr, words_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    ranks = tld.num_ranks()
    blocks_n = tl.cdiv(n, BLOCK_N)
    blocks = tl.cdiv(m, BLOCK_M) * blocks_n
    for tile in range(tl.program_id(0), ranks * blocks, tl.num_programs(0)):
        keeper, block = (tld.rank() + 1 + tile // blocks) % ranks, tile % blocks
        rows, columns = block // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M), block % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
        part = product_block(a_ptr, b_ptr, keeper * m + rows, columns, (keeper + 1) * m, n, k, BLOCK_K)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tld.store(parts_ptr + tld.rank().to(tl.int64) * m * n + rows[:, None] * n + columns[None, :], part, keeper, mask=inside)
        tld.signal(flags_ptr + block, keeper, op="add")
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        rows, columns = block // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M), block % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        offsets = rows[:, None] * n + columns[None, :]
        tld.wait(flags_ptr + block, value=ranks)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for source in range(ranks):
            total += tl.load(parts_ptr + tl.cast(source, tl.int64) * m * n + offsets, mask=inside, other=0)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=inside)
    meet(words_ptr)


@tilefw.jit
def multiply(a_ptr, b_ptr, out_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    blocks_n = tl.cdiv(n, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(m, BLOCK_M) * blocks_n, tl.num_programs(0)):
        rows, columns = tile // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M), tile % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        product = product_block(a_ptr, b_ptr, rows, columns, m, n, k, BLOCK_K)
        tl.store(out_ptr + rows[:, None] * n + columns[None, :], product, mask=inside)


FORMS = ("bulk", "producer")


def matmul_reduce_scatter(
    node: SymmetricNode, a: Any, b: Any, form: str = "producer", *, programs: int = 2, block: int = 32, **launch: Any
) -> Any:
    """Rows r of the sum over ranks of a · b on rank r, in fp32; a has as many rows for each rank."""
    (rows, k), n = a[0].shape, b[0].shape[1]
    m = part(node, rows)
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        products = node.zeros((rows, n), "float32", name="products")
        node.launch(multiply, (programs,), a, b, products, rows, n, k, **blocks, **launch)
        return reduce_scatter(node, products, programs=programs, **launch)
    out = node.zeros((m, n), "float32", name="sums")
    parts = node.zeros((node.num_ranks, m, n), "float32", name="parts")
    flags = node.zeros((tilefw.cdiv(m, block) * tilefw.cdiv(n, block),), "int32", name="flags of blocks")
    meeting = words(node, programs)
    node.launch(multiply_and_scatter, (programs,), a, b, parts, out, flags, meeting, m, n, k, **blocks, **launch)
    return out
