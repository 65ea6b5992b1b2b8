"""reduce_scatter: the ranks' arrays added up, of which each rank keeps its part."""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result, meet, part, sum_of_ranks, words
from tilefw.kernels.distributed.requirements import require_form, require_summed


@tilefw.jit
def scatter_sums(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    meet(words_ptr)
    mine = x_ptr + tld.rank().to(tl.int64) * n
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        tl.store(out_ptr + offsets, sum_of_ranks(mine, offsets, inside), mask=inside)
    meet(words_ptr)


FORMS = {"pull": scatter_sums}


@leaves_its_result
def reduce_scatter(node: SymmetricNode, x: Any, form: str = "pull", *, programs: int = 2, block: int = 256, **launch: Any) -> Any:
    """Part r of the sum of the arrays x on rank r; x divides into as many parts as there are ranks."""
    require_form("reduce_scatter", form, FORMS, programs=programs, block=block)
    require_summed("reduce_scatter", x[0].dtype)
    n = part(node, x[0].size)
    out = node.zeros((n,), x[0].dtype, name="sums")
    node.launch(FORMS[form], (programs,), x, out, words(node, programs), n, BLOCK=block, **launch)
    return out
