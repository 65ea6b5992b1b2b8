"""Queues as core's wait pass reads them: which instruction counts in vmcnt and lgkmcnt, and what must wait for it.

Events and their order are those of `isa.events`, which the simulator goes by; here they are read off an opcode and its modifiers,
without an encoding. Effects that no register shows are bits behind those of the registers:

- LDS: an access to LDS is made. A barrier needs it, as LDS instructions that are under way pass one (LLVM's AMDGPUUsage,
  "Memory Model gfx942": a release at the scope of a workgroup waits for lgkmcnt);
- the write-back of a release, which the atomic or store behind it needs: also with nothing of this wave's under way, as others
  of its workgroup have stored before a barrier, and what was stored is only in the cache then;
- an access that acquires, which the invalidation behind it needs, as it needs the write-back of a fence of both orders;
- a volatile access, which the next one needs: memory may serve two of them in another order (AMDGPUUsage, "Memory Model gfx942":
  "Ensures that volatile operations to different addresses will not be reordered by hardware");
- the copies to LDS of a group, by how many groups have begun behind it, which the wait for that group needs; no barrier does;
- a scalar load of a buffer, which stores behind it need, this wave's and those of others behind a barrier: it takes another way to
  memory than they do.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from tilefw.api.machine import Concern, Event, Inst, RegisterSets, WaitModel
from tilefw_amd.isa.meaning import operand_roles as roles
from tilefw_amd.isa.meaning.events import LGKMCNT, VMCNT
from tilefw_amd.isa.registers import PAIRS, SCC, VECTORS, named, number
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.hazards import WAIT_RANGES
from tilefw_amd.machine.pseudo import COMMIT, MARKERS

# Registers as bits: the numbers that the simulator has for them.
FIRST = {"v": 0, "a": VECTORS, "s": 2 * VECTORS, "m": 2 * VECTORS}


def as_set(numbers: Iterable[int]) -> int:
    """Numbers as bits."""
    return functools.reduce(lambda found, n: found | 1 << n, numbers, 0)


def _names() -> dict[str, int]:
    """The registers that operands may name."""
    halves = (f"{pair}_{half}" for pair in PAIRS.values() for half in ("lo", "hi"))
    return {name: as_set(number(register)) for name in ("m0", *PAIRS.values(), *halves) if (register := named(name)) is not None}


NAMES = _names()
_IMPLICIT = {name: NAMES[name] for name in ("vcc", "exec", "m0")} | {"scc": 1 << SCC, "pc": 0}

_WRITE_BACK, _EXCHANGE = 1 << roles.WRITE_BACK, 1 << roles.EXCHANGE
_LDS, _VOLATILE, _SCALAR = 1 << roles.STORED + 1, 1 << roles.STORED + 2, 1 << roles.STORED + 3
# By how many groups have begun behind a copy's own; the last stands for so many or more.
_GROUPS = 9
_COPIES = tuple(1 << roles.STORED + 4 + age for age in range(_GROUPS))
_NEXT_GROUP = tuple(zip(_COPIES[-2::-1], _COPIES[:0:-1], strict=True))  # the oldest first


@dataclass(frozen=True, slots=True)
class _OpcodeEvents:
    """What every instruction of an opcode begins; `merged`: its result keeps part of the register."""

    queues: tuple[str, ...] = ()
    order: str = ""
    effects: int = 0
    merged: bool = False


@functools.lru_cache(maxsize=4096)
def _of_opcode(isa: InstructionSet, opcode: str, to_lds: bool) -> tuple[Row, _OpcodeEvents]:
    """The row, of those that share the mnemonic, that loads to LDS or does not, and its events."""
    rows = [form.row for form in isa.forms_by_mnemonic[opcode]]
    row = next((row for row in rows if ("lds dma" in row.facts) == to_lds), rows[0])
    return row, _queue(row)


def _of(isa: InstructionSet, inst: Inst) -> tuple[Row, _OpcodeEvents]:
    return _of_opcode(isa, inst.opcode, "lds" in inst.uses)


# --- what the pass asks ------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def concern(isa: InstructionSet, opcode: str) -> Concern:
    """Registers that the opcode touches unwritten, and whether waits have to do with it."""
    if opcode in MARKERS:
        return Concern(special=True)
    row, queue = _of_opcode(isa, opcode, False)
    implicit = (o.name for o in row.operands if o.role.startswith("implicit"))
    special = bool(queue.queues) or row.name in ("s_waitcnt", "s_barrier", "buffer_inv")
    return Concern(functools.reduce(lambda found, name: found | _IMPLICIT[name], implicit, 0), special)


def events(isa: InstructionSet, inst: Inst, sets: RegisterSets) -> tuple[Event, ...]:
    """What the instruction begins: its results are still to come then."""
    if inst.opcode in MARKERS:
        return ()
    row, found = _of(isa, inst)
    if not found.queues:
        return ()
    results = sets.union(inst.defs)
    arriving = results | found.effects | (_EXCHANGE if _shared(row, inst, "load") else 0) | (_VOLATILE if inst.volatile else 0)
    if row.unit == "smem" and inst.buffer is not None:
        arriving |= _SCALAR
    merged = results if found.merged else 0
    return tuple(Event(queue, found.order, arriving, merged) for queue in found.queues)


def needs(isa: InstructionSet, inst: Inst) -> int:
    """Effects that must be there when the instruction is issued."""
    if inst.opcode in MARKERS:
        return _not_among_the_last(inst)
    row, _ = _of(isa, inst)
    if row.name == "s_barrier":
        return _LDS | _SCALAR
    if row.name == "buffer_inv":
        return _EXCHANGE | _WRITE_BACK if "sc1" in inst.uses else 0
    writes = row.unit == "vmem" and ("store" in row.facts or "atomic" in row.facts)
    written = (_WRITE_BACK if _shared(row, inst, "store") else 0) | (_SCALAR if writes else 0)
    return written | (_VOLATILE if inst.volatile else 0)


def _not_among_the_last(inst: Inst) -> int:
    """What a marker waits for: copies of groups behind which so many have begun."""
    if inst.opcode == COMMIT:
        return 0
    return functools.reduce(operator.or_, _COPIES[min(int(str(inst.uses[0])) + 1, _GROUPS - 1) :])


def renames(inst: Inst) -> tuple[tuple[int, int], ...]:
    """Another group begins."""
    return _NEXT_GROUP if inst.opcode == COMMIT else ()


def limits(inst: Inst) -> dict[str, int]:
    """The counts that an S_WAITCNT waits for."""
    if inst.opcode != "s_waitcnt":
        return {}
    counts = (str(use).rstrip(")").partition("(") for use in inst.uses)
    return {queue: int(count) for queue, _, count in counts if int(count) < WAIT_RANGES[queue]}


def wait(counts: Mapping[str, int]) -> Inst:
    """The S_WAITCNT of these counts."""
    return Inst("s_waitcnt", (), [f"{queue}({counts[queue]})" for queue in WAIT_RANGES if queue in counts])


def model(isa: InstructionSet) -> WaitModel:
    """What the pass asks, of one instruction set."""
    most = {queue: highest - 1 for queue, highest in WAIT_RANGES.items()}  # the highest count waits for nothing
    return WaitModel(most, FIRST, NAMES, partial(concern, isa), partial(events, isa), partial(needs, isa), limits, wait, renames)


# --- rows --------------------------------------------------------------------------------------------------------------------


def _queue(row: Row) -> _OpcodeEvents:
    facts = row.facts
    if "no event" in facts:
        return _OpcodeEvents()
    if row.unit == "vmem":
        return _vector_memory(row)
    if row.unit == "lds":
        crossbar = "crossbar" in facts  # moves between lanes: it leaves the memory alone
        return _OpcodeEvents((LGKMCNT,), "lds", 0 if crossbar else _LDS, merged=_keeps(row))
    if row.unit == "smem":
        return _OpcodeEvents((LGKMCNT,))
    return _OpcodeEvents((LGKMCNT,), "message") if "message" in facts else _OpcodeEvents()


def _vector_memory(row: Row) -> _OpcodeEvents:
    facts = row.facts
    if "flat" in facts:  # either way, and in any order
        return _OpcodeEvents((VMCNT, LGKMCNT), "", _LDS, merged=_keeps(row))
    if row.name == "buffer_wbl2":
        return _OpcodeEvents((VMCNT,), "vmem", _WRITE_BACK)
    return _OpcodeEvents((VMCNT,), "vmem", _COPIES[0] if "lds dma" in facts else 0, merged=_keeps(row))


def _keeps(row: Row) -> bool:
    """Loads of halves keep the other half; an atomic that reads its result's register has data in it."""
    return "load" in row.facts and any(operand.read for operand in row.destinations)


def _shared(row: Row, inst: Inst, kind: str) -> bool:
    """Whether it speaks with other workgroups: an atomic on memory, or a load or store of the scope of an agent or the system."""
    return row.unit == "vmem" and ("atomic" in row.facts or (kind in row.facts and "sc1" in inst.uses))
