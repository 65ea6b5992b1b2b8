"""all_reduce: the ranks' arrays added up, on every rank, in one shot, two shots, by multicast addresses or round a ring.

In one shot every rank loads all ranks' arrays: the fewest steps, and the most bytes. In two shots each block has an owner, who adds
it up and stores it to all. Round a ring each rank sends to the next one alone: block c of each group of blocks, one for each rank,
goes round from rank c + 1 and is added up on its way, then goes round again as it is. A slot of the ring is used once a launch.
By multicast addresses the owner of a block asks for its sum and stores it once: where the fabric adds up and spreads, as NVLS does,
each rank sends and gets the fewest bytes.
"""

from __future__ import annotations

from typing import Any

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.kernels.distributed.meeting import SymmetricNode, leaves_its_result, meet, store_to_all, sum_of_ranks, words
from tilefw.kernels.distributed.requirements import require_form, require_summed


@tilefw.jit
def reduce_in_one_shot(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    meet(words_ptr)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        tl.store(out_ptr + offsets, sum_of_ranks(x_ptr, offsets, inside), mask=inside)
    meet(words_ptr)


@tilefw.jit
def reduce_in_two_shots(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    meet(words_ptr)
    first = tl.program_id(0) * tld.num_ranks() + tld.rank()
    for block in range(first, tl.cdiv(n, BLOCK), tl.num_programs(0) * tld.num_ranks()):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        total = sum_of_ranks(x_ptr, offsets, inside).to(out_ptr.dtype.element_ty)
        store_to_all(out_ptr, total, offsets, inside)
    meet(words_ptr)


@tilefw.jit
def reduce_by_multicast(x_ptr, out_ptr, words_ptr, n, BLOCK: tl.constexpr):
    meet(words_ptr)
    first = tl.program_id(0) * tld.num_ranks() + tld.rank()
    for block in range(first, tl.cdiv(n, BLOCK), tl.num_programs(0) * tld.num_ranks()):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        inside = offsets < n
        tld.multicast_store(out_ptr + offsets, tld.multicast_load_reduce(x_ptr + offsets, "add", mask=inside), mask=inside)
    meet(words_ptr)


@tilefw.jit
def reduce_round_a_ring(x_ptr, out_ptr, words_ptr, slots_ptr, flags_ptr, n, BLOCK: tl.constexpr):
    ranks, here = tld.num_ranks(), tld.rank()
    following = (here + 1) % ranks
    within = tl.arange(0, BLOCK)
    for group in range(tl.program_id(0), tl.cdiv(n, BLOCK * ranks), tl.num_programs(0)):
        slots = slots_ptr + group * ranks * BLOCK + within
        flags = flags_ptr + group * 2 * ranks
        for step in range(ranks):
            chunk = (here + 2 * ranks - step - 1) % ranks
            offsets = (group * ranks + chunk) * BLOCK + within
            total = tl.load(x_ptr + offsets, mask=offsets < n, other=0).to(tl.float32)
            if step > 0:
                tld.wait(flags + step)
                total += tl.load(slots + step * BLOCK)
            if step < ranks - 1:
                tld.store(slots + (step + 1) * BLOCK, total, following)
                tld.signal(flags + step + 1, following)
            else:
                tl.store(out_ptr + offsets, total, mask=offsets < n)
                if ranks > 1:
                    tld.store(out_ptr + offsets, total, following, mask=offsets < n)
                    tld.signal(flags + ranks + 1, following)
        for step in range(1, ranks):
            tld.wait(flags + ranks + step)
            if step < ranks - 1:
                offsets = (group * ranks + (here + ranks - step) % ranks) * BLOCK + within
                tld.put(out_ptr + offsets, out_ptr + offsets, following, mask=offsets < n)
                tld.signal(flags + ranks + step + 1, following)
    meet(words_ptr)


SHOTS = {"one_shot": reduce_in_one_shot, "two_shot": reduce_in_two_shots, "multicast": reduce_by_multicast}
FORMS = (*SHOTS, "ring")


@leaves_its_result
def all_reduce(
    node: SymmetricNode, x: Any, form: str = "one_shot", *, programs: int = 2, block: int = 256, out_dtype: Any = None,
    **launch: Any,
) -> Any:
    """The sum of the arrays x on every rank, of one form's bits on all of them, in x's type unless out_dtype says another."""
    require_form("all_reduce", form, FORMS, programs=programs, block=block)
    n, ranks = x[0].size, node.num_ranks
    out = node.zeros((n,), out_dtype or x[0].dtype, name="sums")
    require_summed("all_reduce", x[0].dtype, out[0].dtype)
    if form != "ring":
        node.launch(SHOTS[form], (programs,), x, out, words(node, programs), n, BLOCK=block, **launch)
        return out
    groups = tilefw.cdiv(n, block * ranks)
    slots = node.zeros((groups, ranks, block), "float32", name="slots of the ring")
    flags = node.zeros((groups, 2, ranks), "int32", name="flags of the ring")
    node.launch(reduce_round_a_ring, (programs,), x, out, words(node, programs), slots, flags, n, BLOCK=block, **launch)
    return out
