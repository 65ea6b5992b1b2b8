"""An instruction set as core's machine layer reads it: what each instruction is to liveness, allocation and scheduling.

An opcode is a mnemonic as LLVM writes it, without the suffix of an encoding (`v_add_f32`) or with it; a pseudo-instruction
(`pseudo`); or `move.v`, `move.a`, `move.s`, `move.m`: copies into a class of registers, which coalescing may remove.
"""

from __future__ import annotations

import functools
from functools import partial

from tilefw.api.machine import JUMP, InstructionTable, InstructionTraits, RegisterClass
from tilefw_amd.isa.registers import EXEC, SGPRS, VCC, VECTORS
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import pseudo
from tilefw_amd.machine.timing import timing

# By what a value is: of each lane (`v`, `a`), equal in all lanes (`s`), or a bit for each lane (`m`). The scalar file is counted by
# the codes of its operands, so that VCC, M0 and EXEC are registers of it.
SCALARS = EXEC.index + EXEC.count
CLASSES = {
    "v": RegisterClass("v", 32, VECTORS),
    "a": RegisterClass("a", 32, VECTORS),
    "s": RegisterClass("s", 32, SCALARS),
    "m": RegisterClass("m", 32, SCALARS, file="s"),
}
RESERVED = {"s": frozenset(range(SGPRS, SCALARS)) - {VCC.index, VCC.index + 1}}
MOVES = {"v": "v_mov_b32", "a": "v_accvgpr_mov_b32", "s": "s_mov_b32", "m": "s_mov_b64"}

# What brings a constant into a register, where it has no register as its source.
_CONSTANTS = frozenset({"v_mov_b32", "v_mov_b64", "s_mov_b32", "s_mov_b64"})
# Rows whose control never falls through (CDNA3 ISA, section "SOPP", "SOP1").
_TERMINATORS = frozenset({"s_branch", "s_setpc_b64", "s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"})
# Units whose instructions act beyond their results: on memory, on other waves, on control.
_ACTING = frozenset({"smem", "lds", "vmem", "control", "export"})
# Facts of such instructions that do nothing but bring a result.
_ONLY_READING = frozenset({"load", "crossbar"})
# Pipes that share what they issue by.
_PIPES = {"valu64": "valu", "trans": "valu"}
# A compute unit has one pipe to LDS for its four SIMDs (CDNA3 white paper, "Compute unit"), whose waves want it at the same time.
# Half of them is a compromise: a schedule that waits for a quarter of LDS starves the matrix pipe where others are not there.
_SHARED_BY = {"lds": 2}


# Wait states (`hazards`) that work of the program shall fill, where they are the same for most pairs of instructions.
_APART = {
    ("valu", "matrix", "v"): 2,
    ("matrix", "valu", "v"): 4,  # 3 behind its passes, and its own place
    ("matrix", "lds", "v"): 4,
    ("matrix", "vmem", "v"): 4,
    ("valu", "valu", "s"): 2,
    ("valu", "vmem", "s"): 5,
}


def instructions(isa: InstructionSet) -> InstructionTable:
    """The instruction table of the machine layer. `traits` raises KeyError for what is not a mnemonic."""
    cycles = isa.chip.rates.vector_cycles
    apart = {pair: states * cycles for pair, states in _APART.items()}
    return InstructionTable(isa.chip.target, partial(traits, isa), dict(CLASSES), dict(RESERVED), cycles, apart)


@functools.lru_cache(maxsize=4096)
def traits(isa: InstructionSet, opcode: str) -> InstructionTraits:
    """What the machine layer must know of an opcode; KeyError when there is none."""
    kind, _, file = opcode.partition(".")
    if kind == "move":
        row = isa.row(MOVES[file])
        return InstructionTraits(move=True, latency=isa.latency(row), unit=row.unit, issue=isa.chip.rates.vector_cycles)
    if opcode in pseudo.MARKERS:
        return InstructionTraits(effects=True, issue=0)
    if kind == pseudo.COPY.rstrip("."):
        return _copy(isa, file)
    steps = pseudo.opcodes(opcode)
    if steps:
        rows = [isa.row(step) for step in steps]
        cycles = sum(isa.latency(row) for row in rows)
        return InstructionTraits(effects=pseudo.is_branch(opcode), latency=cycles, unit=rows[0].unit, issue=cycles)
    return _traits(isa, isa.row(opcode))


def _traits(isa: InstructionSet, row: Row) -> InstructionTraits:
    if row.name in _TERMINATORS:
        return JUMP
    timed = timing(isa)[row.name]
    return InstructionTraits(
        effects=row.flow or _acts(row), latency=isa.latency(row) or 1, cheap=row.name in _CONSTANTS, memory=_memory(row),
        unit=_PIPES.get(row.unit, row.unit), issue=timed.issue * _SHARED_BY.get(row.unit, 1), early=_is_early(row),
    )


def _copy(isa: InstructionSet, opcode: str) -> InstructionTraits:
    """A load to LDS, with what sets M0: it keeps its place among all accesses."""
    if opcode not in isa.forms_by_mnemonic:
        raise KeyError(opcode)
    cycles = isa.chip.rates.vector_cycles
    return InstructionTraits(effects=True, latency=cycles, unit="vmem", issue=2 * cycles)


def _is_early(row: Row) -> bool:
    """Whether a result shares no register with a source: D of a matrix product of more than 128 bits, with A, B or another C (LLVM,
    VOP3PInstructions.td, `NoDstOverlap`); what a scalar load of several words brings, with its address, which is read again where a
    page fault replays the load (LLVM, SMInstructions.td, `_ec`)."""
    most = 128 if row.passes else 32 if row.unit == "smem" else None
    kind = row.destinations[0].type if most is not None and row.destinations else None
    return kind is not None and most is not None and kind.bits > most


def _memory(row: Row) -> str:
    """The space of a plain load or store. Atomics have their order with everything, as locks are built of them; so has what changes
    caches, and a load to LDS, which touches two spaces."""
    if row.facts & {"atomic", "lds dma"} or row.facts.isdisjoint({"load", "store"}):
        return ""
    if row.unit == "lds":
        return "shared"
    return "private" if "scratch" in row.facts else "global"


def _acts(row: Row) -> bool:
    """Whether it does more than to write its results: stores, atomics, waits, and what changes EXEC, M0 or the mode."""
    written = {o.name for o in row.operands if o.role == "implicit destination"}
    if written & {"exec", "m0"} or "setreg" in row.facts:
        return True
    if row.unit not in _ACTING:
        return not row.destinations and not written
    return not row.destinations or row.facts.isdisjoint(_ONLY_READING) or "store" in row.facts
