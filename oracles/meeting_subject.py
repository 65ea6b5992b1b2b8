"""A meeting that orders something within one launch: what all ranks stored before it each rank reads behind it.

The library's collectives meet before and behind all that they do, where a weaker meeting is seen by other launches alone
(`oracles.node_subject`): what becomes of it is judged here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.index import Collective
from tilefw.kernels.distributed.meeting import SymmetricNode, meet, store_to_all, words
from tilefw.kernels.distributed.rank_results import Arrays, RankResult, exact, normal


@tilefw.jit
def read_behind_meeting(x_ptr, slots_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        store_to_all(slots_ptr + tld.rank() * n, tl.load(x_ptr + offsets, mask=inside), offsets, inside)
    meet(words_ptr)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        for peer in range(tld.num_ranks()):
            tl.store(out_ptr + peer * n + offsets, tl.load(slots_ptr + peer * n + offsets, mask=inside), mask=inside)


def _run(node: SymmetricNode, x: Any, form: str, *, programs: int = 2, block: int = 256, **launch: Any) -> Any:
    n = x[0].size
    slots, out = (node.zeros((n * node.num_ranks,), x[0].dtype, name=name) for name in ("slots", "gathered"))
    node.launch(read_behind_meeting, (programs,), x, slots, out, words(node, programs), n, BLOCK=block, **launch)
    return out


def _drawn(rng: np.random.Generator, ranks: int, n: int, dtype: str) -> tuple[Arrays, ...]:
    return (normal(rng, ranks, (n,), dtype),)


def _gathered(x: Arrays) -> list[RankResult]:
    return [exact(np.concatenate(x))] * len(x)


MEETING = Collective("meeting", ("middle",), _run, _drawn, _gathered)
