"""The table as core's machine layer reads it: what each instruction is to liveness, allocation and scheduling.

An opcode is a mnemonic as LLVM prints it (`v_add_f32_e32`), or `move.v`, `move.a`, `move.s`: copies between registers of a class,
which coalescing may remove.
"""

from __future__ import annotations

import functools

from tilefw.api.machine import EFFECT, JUMP, InstructionTable, InstructionTraits, RegisterClass
from tilefw_amd.isa.registers import SGPRS, VECTORS
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.table import forms_by_mnemonic

CLASSES = {"v": RegisterClass("v", 32, VECTORS), "a": RegisterClass("a", 32, VECTORS), "s": RegisterClass("s", 32, SGPRS)}
MOVES = {"v": "v_mov_b32", "a": "v_accvgpr_mov_b32", "s": "s_mov_b32"}

# Rows whose control never falls through (CDNA3 ISA, section "SOPP", "SOP1").
_TERMINATORS = frozenset({"s_branch", "s_setpc_b64", "s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"})
# Units whose instructions act beyond their results: on memory, on other waves, on control.
_ACTING = frozenset({"smem", "lds", "vmem", "control", "export"})
# Facts of such instructions that do nothing but bring a result.
_ONLY_READING = frozenset({"load", "crossbar"})


def instructions(name: str = "amd-cdna3") -> InstructionTable:
    """The instruction table of the machine layer. `traits` raises KeyError for what is no mnemonic."""
    return InstructionTable(name, traits, dict(CLASSES))


@functools.lru_cache(maxsize=4096)
def traits(opcode: str) -> InstructionTraits:
    """What the machine layer must know of an opcode; KeyError when there is none."""
    kind, _, file = opcode.partition(".")
    if kind == "move":
        return InstructionTraits(move=True, latency=forms_by_mnemonic()[MOVES[file]][0].row.latency)
    return _traits(forms_by_mnemonic()[opcode][0].row)


def _traits(row: Row) -> InstructionTraits:
    if row.name in _TERMINATORS:
        return JUMP
    effects = row.flow or _acts(row)
    return InstructionTraits(effects=effects, latency=row.latency) if row.latency else EFFECT


def _acts(row: Row) -> bool:
    """Whether it does more than to write its results: stores, atomics, waits, and what changes EXEC, M0 or the mode."""
    written = {o.name for o in row.operands if o.role == "implicit destination"}
    if written & {"exec", "m0"} or "setreg" in row.facts:
        return True
    if row.unit not in _ACTING:
        return not row.destinations and not written
    return not row.destinations or row.facts.isdisjoint(_ONLY_READING) or "store" in row.facts
