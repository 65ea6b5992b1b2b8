"""`triton_dist.language.extra`: accesses with orders, and what a thread is, as functions of kernels.

A program's scalars are those of one thread, number 0. Where a kernel parts its threads (`if tid(0) < n`), threads.py makes a loop
over them. So a program counts as `THREADS` threads, whatever its warps are.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.triton.triton_dist.orders import load_order, order_of, scope_of, store_order

THREADS = tl.constexpr(128)
WARP = tl.constexpr(32)
_CTA, _GPU, _AGENT = tl.constexpr("cta"), tl.constexpr("gpu"), tl.constexpr("agent")
_RELAXED, _MONOTONIC, _ACQ_REL = tl.constexpr("relaxed"), tl.constexpr("monotonic"), tl.constexpr("acq_rel")


@tilefw.jit
def tid(axis):
    return 0


@tilefw.jit
def ntid(axis):
    return THREADS if axis == 0 else 1


@tilefw.jit
def num_threads():
    return THREADS


@tilefw.jit
def num_warps():
    return THREADS // WARP


@tilefw.jit
def threads_per_warp():
    return WARP


@tilefw.jit
def __syncthreads():
    tl.debug_barrier()


@tilefw.jit
def ld(ptr, scope: tl.constexpr = _GPU, semantic: tl.constexpr = _RELAXED):
    return tl.atomic_load(ptr, sem=load_order(semantic), scope=scope_of(scope))


@tilefw.jit
def ld_acquire(ptr, scope: tl.constexpr = _GPU):
    return tl.atomic_load(ptr, sem="acquire", scope=scope_of(scope))


@tilefw.jit
def ld_b32(ptr):
    return tl.load(ptr, volatile=True)


@tilefw.jit
def load(ptr, scope: tl.constexpr = _AGENT, semantic: tl.constexpr = _MONOTONIC):
    return ld(ptr, scope, semantic)


@tilefw.jit
def st(ptr, val, scope: tl.constexpr = _GPU, semantic: tl.constexpr = _RELAXED):
    tl.atomic_store(ptr, tl.cast(val, ptr.dtype.element_ty), sem=store_order(semantic), scope=scope_of(scope))


@tilefw.jit
def st_b32(ptr, val0):
    tl.store(ptr, val0)


@tilefw.jit
def store(ptr, val, scope: tl.constexpr = _AGENT, semantic: tl.constexpr = _MONOTONIC):
    st(ptr, val, scope, semantic)


@tilefw.jit
def atomic_add(ptr, value, scope: tl.constexpr = _GPU, semantic: tl.constexpr = _RELAXED):
    return tl.atomic_add(ptr, tl.cast(value, ptr.dtype.element_ty), sem=order_of(semantic), scope=scope_of(scope))


@tilefw.jit
def atomic_cas(ptr, value, target_value, scope: tl.constexpr = _GPU, semantic: tl.constexpr = _RELAXED):
    return tl.atomic_cas(
        ptr, tl.cast(value, ptr.dtype.element_ty), tl.cast(target_value, ptr.dtype.element_ty), sem=order_of(semantic),
        scope=scope_of(scope),
    )


@tilefw.jit
def red_release(barrier_ptr, value, scope: tl.constexpr = _GPU):
    tl.atomic_add(barrier_ptr, value, sem="release", scope=scope_of(scope))


@tilefw.jit
def arrive_inc(barrier_ptr, thread_idx, value, scope: tl.constexpr = _GPU):
    """Once for the program, behind what all its threads did."""
    tl.debug_barrier()
    red_release(barrier_ptr, value, scope)


@tilefw.jit
def wait_eq(barrier_ptr, thread_idx, value, scope: tl.constexpr = _GPU):
    """Once for the program, before what all its threads do."""
    while ld_acquire(barrier_ptr, scope) != value:
        pass
    tl.debug_barrier()


@tilefw.jit
def membar(scope: tl.constexpr = _CTA):
    fence("acq_rel", "sys" if scope == "sys" else "gpu" if scope == "gl" else "cta")


@tilefw.jit
def fence(semantic: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _GPU):
    tld.fence(order_of(semantic), scope_of(scope))


NAMES = (
    "tid", "ntid", "num_threads", "num_warps", "threads_per_warp", "__syncthreads", "ld", "ld_acquire", "ld_b32", "load", "st",
    "st_b32", "store", "atomic_add", "atomic_cas", "red_release", "arrive_inc", "wait_eq", "membar", "fence",
)
