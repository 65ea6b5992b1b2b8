"""The order in which the programs of a product take the blocks of its result, for kernels to call."""

from __future__ import annotations

import tilefw
import tilefw.language as tl


@tilefw.jit
def grouped_block(M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """The row and the column of this program's block among those of an M × N result. Neighbouring programs share a group of GROUP_M
    rows of blocks, so that what they read of both factors is still in the cache."""
    program = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    group = program // (GROUP_M * blocks_n)
    first_m = group * GROUP_M
    group_m = min(blocks_m - first_m, GROUP_M)
    block_m = first_m + (program % (GROUP_M * blocks_n)) % group_m
    block_n = (program % (GROUP_M * blocks_n)) // group_m
    return block_m, block_n
