"""`triton_dist.language`: Triton-distributed's primitives, as functions of kernels over `tilefw.language.distributed`.

Parameters have the library's names. `simt_exec_region` is no function: threads.py rewrites it.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.triton.triton_dist.orders import load_order, scope_of

_SET, _INTER_NODE = tl.constexpr("set"), tl.constexpr("inter_node")


@tilefw.jit
def wait(barrierPtrs, numBarriers, scope: tl.constexpr, semantic: tl.constexpr, waitValue=1):
    """Until each of so many words equals `waitValue`; a token for `consume_token`."""
    for i in range(numBarriers):
        tld.wait(barrierPtrs + i, 1, waitValue, "==", load_order(semantic), scope_of(scope))
    return tl.full((), 1, tl.int32)


@tilefw.jit
def consume_token(value, token):
    return tld.consume(value, token)


@tilefw.jit
def rank(axis=-1):
    return tld.rank()


@tilefw.jit
def num_ranks(axis=-1):
    return tld.num_ranks()


@tilefw.jit
def symm_at(ptr, rank):
    return tld.at(ptr, rank)


@tilefw.jit
def notify(ptr, rank, signal=1, sig_op: tl.constexpr = _SET, comm_scope: tl.constexpr = _INTER_NODE):
    """What the program has done is published by a word of a peer."""
    tld.signal(ptr, rank, signal, sig_op, "release", scope_of(comm_scope))
