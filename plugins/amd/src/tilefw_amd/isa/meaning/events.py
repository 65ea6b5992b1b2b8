"""Which counters an instruction bumps: the events that `s_waitcnt` waits for (CDNA3 ISA 4.4, "Manually inserted wait states").

| counter | events | finish in order |
|---|---|---|
| vmcnt | global, buffer and scratch loads, stores and atomics | yes |
| lgkmcnt | LDS | yes |
| lgkmcnt | scalar memory, messages | no: only a wait for 0 covers them |
| both | flat, as it may go either way | no |

`buffer_inv` bumps nothing that a wait needs (LLVM, `SIInsertWaitcnts.cpp`, `getMUBUFIsBufferInv`).

Two waits are about no register, but make an order of memory (LLVM's AMDGPUUsage, "Memory Model gfx942", table of code sequences):
the write-back of a release is done before the atomic or store that publishes, and the access that acquires is done
before the invalidation. LLVM leaves the first wait out where no store is unfinished when the write-back begins.
"""

from __future__ import annotations

from typing import Any

from tilefw.api.sim import Issue
from tilefw_amd.isa.meaning.operand_roles import EXCHANGE, STORED, WRITE_BACK
from tilefw_amd.isa.model import MCInst

VMCNT, LGKMCNT = "vmcnt", "lgkmcnt"


def issues(inst: MCInst, pending: tuple[int, ...], merged: tuple[int, ...]) -> tuple[Issue, ...]:
    """The events of one instruction: `pending` are the registers that its result arrives in, `merged` those changed in part."""
    row = inst.form.row
    facts = row.facts
    if "no event" in facts:
        return ()
    if "returns" in facts and not _returns(inst):
        pending = merged = ()
    pending += _effects(inst)
    if "flat" in facts:
        return tuple(Issue(queue, "", pending, merged, settles=True) for queue in (VMCNT, LGKMCNT))
    if row.unit == "vmem":
        behind = (STORED,) if row.name == "buffer_wbl2" else ()
        return (Issue(VMCNT, "vmem", pending, merged, settles="lds dma" in facts, behind=behind),)
    if row.unit == "lds":
        return (Issue(LGKMCNT, "lds", pending, merged, settles=True),)
    if row.unit == "smem":
        return (Issue(LGKMCNT, "", pending, merged),)
    if "message" in facts:
        return (Issue(LGKMCNT, "message"),)
    return ()


def needs(inst: MCInst) -> tuple[int, ...]:
    """Which effects of earlier instructions must be there when this one is issued."""
    if _shared(inst, "store"):
        return (WRITE_BACK,)
    return (EXCHANGE,) if inst.form.row.name == "buffer_inv" and _beyond_group(inst) else ()


def _effects(inst: MCInst) -> tuple[int, ...]:
    """What the instruction does that no register shows."""
    row = inst.form.row
    if row.unit != "vmem":
        return ()
    if row.name == "buffer_wbl2":
        return (WRITE_BACK,)
    stored = (STORED,) if row.facts & {"store", "atomic"} else ()
    return (*stored, EXCHANGE) if _shared(inst, "load") else stored


def _shared(inst: MCInst, kind: str) -> bool:
    """Whether it speaks with other workgroups: an atomic on memory, or a load or store with sc1 (scope of agent or system)."""
    facts = inst.form.row.facts
    if inst.form.row.unit != "vmem":
        return False
    return "atomic" in facts or (kind in facts and _beyond_group(inst))


def _beyond_group(inst: MCInst) -> bool:
    return bool(_written(inst).get("sc1"))


def _written(inst: MCInst) -> dict[str, Any]:
    return {**inst.form.defaults, **inst.modifiers}


def _returns(inst: MCInst) -> bool:
    """Whether an atomic gives the old value back: sc0, of scalar ones glc. Else data that is also the result stays as it is."""
    return bool(_written(inst).get("sc0") or _written(inst).get("glc"))
