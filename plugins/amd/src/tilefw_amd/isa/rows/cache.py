"""Cache control, as fences: what releases write back and acquires invalidate (LLVM `AMDGPUUsage.rst`, "Memory Model gfx942").

The simulator has no caches; what the two do is to order this wave's accesses with those of others. A write-back is done when
vmcnt has counted it; an invalidation needs no wait (LLVM `SIInsertWaitcnts.cpp`, `getMUBUFIsBufferInv`).
"""

from __future__ import annotations

from typing import Any

from tilefw_amd.isa.row import Chapter, Modifiers

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "Memory scopes and cache control"
# (sc0, sc1), as in the tables of the memory model: sc1 for the agent, both for the system.
_SCOPES = {(0, 0): "wave", (1, 0): "workgroup", (0, 1): "device", (1, 1): "system"}


@row("buffer_wbl2", mubuf=0x28, unit="vmem", section=SECTION, modifiers="sc0 sc1 nt")
def buffer_wbl2(m: Modifiers) -> Any:
    """Write dirty lines of the L2 cache back: whoever sees an atomic or store after it sees the stores before it."""
    scope = _SCOPES[m.sc0, m.sc1]
    return lambda lanes: lanes.fence("release", scope)


@row("buffer_inv", mubuf=0x29, unit="vmem", section=SECTION, facts="no event", modifiers="sc0 sc1 nt")
def buffer_inv(m: Modifiers) -> Any:
    """Invalidate caches: loads after it see what other waves of the scope released before."""
    scope = _SCOPES[m.sc0, m.sc1]
    return lambda lanes: lanes.fence("acquire", scope)
