"""`libshmem_device`: what NVSHMEM, rocSHMEM and MORI give kernels, on a node's symmetric heaps.

A peer's memory is written by plain stores, so a transfer that need not be complete when its function returns is complete none the
later; its order is no stronger than the library's: `putmem…` is ordered by `fence`, `quiet`, a barrier or its own signal alone.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld
from tilefw.api.errors import CompileError

BYTES = tl.constexpr(1024)
"""That a program moves at once."""

# Comparisons and updates are the language's own words: the libraries' numbers for them differ from each other.
_COMPARISONS = {"EQ": "==", "NE": "!=", "GT": ">", "LE": "<=", "LT": "<", "GE": ">="}
_LIBRARIES = ("NVSHMEM", "ROCSHMEM", "MORI", "MXSHMEM")
CONSTANTS = {
    **{f"{library}_CMP_{word}": tl.constexpr(sign) for library in _LIBRARIES for word, sign in _COMPARISONS.items()},
    **{f"{library}_SIGNAL_{word.upper()}": tl.constexpr(word) for library in _LIBRARIES for word in ("set", "add")},
    "NVSHMEM_TEAM_WORLD": tl.constexpr(0), "NVSHMEM_TEAM_SHARED": tl.constexpr(1), "NVSHMEMX_TEAM_NODE": tl.constexpr(2),
}


@tilefw.constexpr_function
def _team(team: int) -> int:
    """A team that is all ranks of the node. Raises CompileError TFW0201 for another."""
    if team not in (0, 1, 2):
        raise CompileError(f"team {team} is not all ranks of a node, which alone is served", "TFW0201")
    return team


@tilefw.jit
def set_rocshmem_ctx(ctx):
    """The context is the node's."""


@tilefw.jit
def my_pe():
    return tld.rank()


@tilefw.jit
def n_pes():
    return tld.num_ranks()


@tilefw.jit
def team_my_pe(team: tl.constexpr):
    of: tl.constexpr = _team(team)
    return tld.rank() + 0 * of


@tilefw.jit
def team_n_pes(team: tl.constexpr):
    of: tl.constexpr = _team(team)
    return tld.num_ranks() + 0 * of


@tilefw.jit
def remote_ptr(local_ptr, pe):
    return tld.at(local_ptr, pe)


@tilefw.jit
def int_p(dest, value, pe, qp_id=0):
    tld.store(dest, value, pe)


# -- order


@tilefw.jit
def fence():
    """What was put before is seen before what is put later."""
    tl.debug_barrier()
    tld.fence("release", "system")


@tilefw.jit
def quiet():
    """What was put before is complete."""
    tl.debug_barrier()
    tld.quiet()


@tilefw.jit
def barrier_all():
    """All ranks meet; one program of each takes part."""
    tl.debug_barrier()
    tld.barrier()


@tilefw.jit
def barrier(team: tl.constexpr):
    of: tl.constexpr = _team(team)
    barrier_all() if of >= 0 else None


# -- transfers


@tilefw.jit
def _copy(destination, source, nbytes):
    to = destination.to(tl.pointer_type(tl.int8))
    of = source.to(tl.pointer_type(tl.int8))
    for first in range(0, nbytes, BYTES):
        offsets = first + tl.arange(0, BYTES)
        tl.store(to + offsets, tl.load(of + offsets, mask=offsets < nbytes), mask=offsets < nbytes)


@tilefw.jit
def putmem(dest, source, bytes, pe, qp_id=0):
    _copy(tld.at(dest, pe), source, bytes)


@tilefw.jit
def getmem(dest, source, bytes, pe):
    _copy(dest, tld.at(source, pe), bytes)


@tilefw.jit
def putmem_signal(dest, source, bytes, sig_addr, signal, sig_op: tl.constexpr, pe, qp_id=0):
    """The signal is seen after the data of this transfer."""
    putmem(dest, source, bytes, pe)
    tl.debug_barrier()
    tld.signal(sig_addr, pe, signal, sig_op, "release", "system")


@tilefw.jit
def signal_op(sig_addr, signal, sig_op: tl.constexpr, pe, qp_id=0):
    """A word of a peer, in no order to what was put."""
    tld.signal(sig_addr, pe, signal, sig_op, "relaxed", "system")


@tilefw.jit
def signal_wait_until(sig_addr, cmp_: tl.constexpr, cmp_val):
    """What was put with the signal, or before a fence and it, is seen from here on."""
    tld.wait(sig_addr, 1, cmp_val, cmp_, "acquire", "system")
    return tl.atomic_load(sig_addr, sem="relaxed", scope="sys")


@tilefw.jit
def uint64_wait_until_equals(addr, val):
    tld.wait(addr, 1, val, "==", "acquire", "system")


def _spellings() -> dict[str, object]:
    """Who takes part and when it is complete are in the libraries' names: all are one function of the program here."""
    groups = ("", "_block", "_wg")
    made: dict[str, object] = {"fence": fence, "quiet": quiet}
    for group in groups:
        made |= {f"{name}{group}": barrier_all for name in ("barrier_all", "sync_all")}
        made |= {f"barrier{group}": barrier, f"team_sync{group}": barrier}
        for later in ("", "_nbi"):
            made[f"getmem{later}{group}"] = getmem
            for through in ("", "_rma"):
                made[f"putmem{through}{later}{group}"] = putmem
                made[f"putmem_signal{through}{later}{group}"] = putmem_signal
    return made


NAMES: dict[str, object] = {
    **CONSTANTS, **_spellings(), "set_rocshmem_ctx": set_rocshmem_ctx, "my_pe": my_pe, "n_pes": n_pes, "team_my_pe": team_my_pe,
    "team_n_pes": team_n_pes, "remote_ptr": remote_ptr, "int_p": int_p, "signal_op": signal_op,
    "signal_wait_until": signal_wait_until, "uint64_wait_until_equals": uint64_wait_until_equals,
}
