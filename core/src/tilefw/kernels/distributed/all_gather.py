"""all_gather: every rank stores its part into all ranks' outputs, in the order of the ranks."""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result, meet, store_to_all, words
from tilefw.kernels.distributed.requirements import require_form


@tilefw.jit
def gather_by_push(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        value = tl.load(x_ptr + offsets, mask=inside)
        store_to_all(out_ptr + tld.rank().to(tl.int64) * n, value, offsets, inside)
    meet(words_ptr)


@tilefw.jit
def gather_by_pull(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    meet(words_ptr)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        for step in range(tld.num_ranks()):
            peer = (tld.rank() + step) % tld.num_ranks()
            tl.store(out_ptr + peer.to(tl.int64) * n + offsets, tld.load(x_ptr + offsets, peer, mask=inside), mask=inside)
    meet(words_ptr)


FORMS = {"push": gather_by_push, "pull": gather_by_pull}


@leaves_its_result
def all_gather(node: SymmetricNode, x: Any, form: str = "push", *, programs: int = 2, block: int = 256, **launch: Any) -> Any:
    """The ranks' arrays x one behind the other, on every rank."""
    require_form("all_gather", form, FORMS, programs=programs, block=block)
    n = x[0].size
    out = node.zeros((node.num_ranks * n,), x[0].dtype, name="gathered")
    node.launch(FORMS[form], (programs,), x, out, words(node, programs), n, BLOCK=block, **launch)
    return out
