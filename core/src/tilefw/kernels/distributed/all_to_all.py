"""all_to_all: part r of each rank's array goes to rank r, which has the parts in the order of the ranks that sent them."""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result, meet, part, words
from tilefw.kernels.distributed.requirements import require_form


@tilefw.jit
def exchange_parts(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    ranks = tld.num_ranks()
    mine = out_ptr + tld.rank().to(tl.int64) * n
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        for step in range(ranks):
            peer = (tld.rank() + step) % ranks
            tld.put(x_ptr + peer.to(tl.int64) * n + offsets, mine + offsets, peer, mask=inside)
    meet(words_ptr)


FORMS = {"push": exchange_parts}


@leaves_its_result
def all_to_all(node: SymmetricNode, x: Any, form: str = "push", *, programs: int = 2, block: int = 256, **launch: Any) -> Any:
    """The parts for each rank; x divides into as many parts as there are ranks."""
    require_form("all_to_all", form, FORMS, programs=programs, block=block)
    n = part(node, x[0].size)
    out = node.zeros((x[0].size,), x[0].dtype, name="exchanged")
    node.launch(FORMS[form], (programs,), x, out, words(node, programs), n, BLOCK=block, **launch)
    return out
