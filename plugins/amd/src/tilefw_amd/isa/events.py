"""Which counters an instruction bumps: the events that `s_waitcnt` waits for (CDNA3 ISA 4.4, "Manually inserted wait states").

| counter | events | finish in order |
|---|---|---|
| vmcnt | global, buffer and scratch loads, stores and atomics | yes |
| lgkmcnt | LDS | yes |
| lgkmcnt | scalar memory, messages | no: only a wait for 0 covers them |
| both | flat, as it may go either way | no |

`buffer_inv` bumps nothing that a wait needs (LLVM, `SIInsertWaitcnts.cpp`, `getMUBUFIsBufferInv`).
"""

from __future__ import annotations

from tilefw.api.sim import Issue
from tilefw_amd.isa.inst import Inst

VMCNT, LGKMCNT = "vmcnt", "lgkmcnt"


def issues(inst: Inst, pending: tuple[int, ...], merged: tuple[int, ...]) -> tuple[Issue, ...]:
    """The events of one instruction: `pending` are the registers that its result arrives in, `merged` those changed in part."""
    row = inst.form.row
    facts = row.facts
    if "no event" in facts:
        return ()
    if "returns" in facts and not _returns(inst):
        pending = merged = ()
    if "flat" in facts:
        return tuple(Issue(queue, "", pending, merged, settles=True) for queue in (VMCNT, LGKMCNT))
    if row.unit == "vmem":
        return (Issue(VMCNT, "vmem", pending, merged, settles="lds dma" in facts),)
    if row.unit == "lds":
        return (Issue(LGKMCNT, "gds" if "gds" in facts else "lds", pending, merged, settles=True),)
    if row.unit == "smem":
        return (Issue(LGKMCNT, "", pending, merged),)
    if "message" in facts:
        return (Issue(LGKMCNT, "message"),)
    return ()


def _returns(inst: Inst) -> bool:
    """Whether an atomic gives the old value back: sc0, of scalar ones glc. Else data that is also the result stays as it is."""
    written = {**inst.form.defaults, **inst.modifiers}
    return bool(written.get("sc0") or written.get("glc"))
