"""all_gather_matmul: C = A · B where each rank has rows of A, on every rank: first all rows are gathered, or each as it is needed.

In bulk, a launch gathers A and another one multiplies. Specialised, the first programs of a launch push this rank's blocks of rows
and signal each of them, and the others multiply, each waiting for the rows of its block alone, its own rank's first.
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.all_gather import all_gather
from tilefw.kernels.distributed.meeting import SymmetricNode, meet, store_to_all, words


@tilefw.jit
def push_rows(a_ptr, gathered_ptr, flags_ptr, first, step, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Blocks of this rank's rows to all ranks, and a signal behind each block."""
    ranks = tld.num_ranks()
    blocks = tl.cdiv(m, BLOCK_M)
    for block in range(first, blocks, step):
        rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
        for begin in range(0, k, BLOCK_K):
            columns = begin + tl.arange(0, BLOCK_K)
            inside = (rows[:, None] < m) & (columns[None, :] < k)
            offsets = rows[:, None] * k + columns[None, :]
            value = tl.load(a_ptr + offsets, mask=inside)
            store_to_all(gathered_ptr + tld.rank().to(tl.int64) * m * k, value, offsets, inside)
        for turn in range(ranks):
            tld.signal(flags_ptr + tld.rank() * blocks + block, (tld.rank() + turn) % ranks)


@tilefw.jit
def multiply_rows(
    gathered_ptr, b_ptr, c_ptr, flags_ptr, first, step, m, n, k, WAITS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Blocks of C, those of this rank's rows first."""
    ranks = tld.num_ranks()
    blocks_m, blocks_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in range(first, ranks * blocks_m * blocks_n, step):
        source = ((tld.rank() + tile // (blocks_m * blocks_n)) % ranks).to(tl.int64)
        block = tile // blocks_n % blocks_m
        if WAITS:
            tld.wait(flags_ptr + source * blocks_m + block)
        rows, columns = block * BLOCK_M + tl.arange(0, BLOCK_M), tile % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
        a_rows = gathered_ptr + source * m * k + rows[:, None] * k
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for begin in range(0, k, BLOCK_K):
            inner = begin + tl.arange(0, BLOCK_K)
            a = tl.load(a_rows + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0)
            b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0)
            total = tl.dot(a, b, total)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c_ptr + (source * m + rows[:, None]) * n + columns[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


@tilefw.jit
def gather_and_multiply(
    a_ptr, gathered_ptr, b_ptr, c_ptr, flags_ptr, words_ptr, m, n, k, PUSHERS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    program = tl.program_id(0)
    if program < PUSHERS:
        push_rows(a_ptr, gathered_ptr, flags_ptr, program, PUSHERS, m, k, BLOCK_M, BLOCK_K)
    else:
        others = tl.num_programs(0) - PUSHERS
        multiply_rows(
            gathered_ptr, b_ptr, c_ptr, flags_ptr, program - PUSHERS, others, m, n, k, True, BLOCK_M, BLOCK_N, BLOCK_K
        )
    meet(words_ptr)


@tilefw.jit
def multiply_gathered(
    gathered_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    multiply_rows(
        gathered_ptr, b_ptr, c_ptr, c_ptr, tl.program_id(0), tl.num_programs(0), m, n, k, False, BLOCK_M, BLOCK_N, BLOCK_K
    )


FORMS = ("bulk", "specialised")


def all_gather_matmul(
    node: SymmetricNode, a: Any, b: Any, form: str = "specialised", *, programs: int = 3, block: int = 32, **launch: Any
) -> Any:
    """(the ranks' rows a one behind the other) · b on every rank, in b's type; a and b are matrices of 16-bit floats or fp32."""
    (m, k), n = a[0].shape, b[0].shape[1]
    c = node.zeros((node.num_ranks * m, n), b[0].dtype, name="c")
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": block}
    if form == "bulk":
        gathered = all_gather(node, a, programs=programs, **launch)
        node.launch(multiply_gathered, (programs,), gathered, b, c, m, n, k, **blocks, **launch)
        return c
    gathered = node.zeros((node.num_ranks * m, k), a[0].dtype, name="gathered rows")
    flags = node.zeros((node.num_ranks, tilefw.cdiv(m, block)), "int32", name="flags of rows")
    meeting = words(node, programs)
    node.launch(gather_and_multiply, (programs,), a, gathered, b, c, flags, meeting, m, n, k, PUSHERS=1, **blocks, **launch)
    return c
