"""What a kernel takes of the chip: registers by file, spills, scratch, LDS, occupancy, and how many instructions of each kind."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilefw.api import Remark, Resources
from tilefw.api.integers import round_up
from tilefw.api.machine import Function, Operand, Slice, entry_of
from tilefw_amd.abi import SGPRS_AT_START
from tilefw_amd.chips.occupancy import occupancy
from tilefw_amd.isa.registers import SGPRS
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.machine_inst import FILES

_ACCUMULATION_GRANULE = 4  # the first accumulation register is a multiple of it (LLVM AMDGPUUsage, `.amdhsa_accum_offset`)
# What a report calls the instructions of a unit, in its order, and those that it counts by themselves.
_KINDS = {
    "matrix": "matrix", "valu": "vector", "valu64": "vector", "trans": "vector", "salu": "scalar", "smem": "scalar memory",
    "vmem": "memory", "lds": "lds", "export": "control", "control": "control",
}
_KINDS_BY_NAME = {"s_barrier": "barriers", "s_waitcnt": "waits", "s_nop": "pauses"}
_REPORTED = tuple(dict.fromkeys((*_KINDS.values(), *_KINDS_BY_NAME.values())))


@dataclass(frozen=True, slots=True)
class KernelResources:
    """`vector`, `accumulation` and `scalar` are the numbers of registers up to the highest that is named; `spills` counts the
    registers that were kept elsewhere for a while, `scalar_spills` the scalar ones of them; bytes of scratch are those of a
    lane."""

    vector: int
    accumulation: int
    scalar: int
    spills: int
    scalar_spills: int
    shared_bytes: int
    scratch_bytes: int
    instructions: Mapping[str, int]

    @property
    def accumulation_offset(self) -> int:
        """Where accumulation registers begin in the file that both kinds share."""
        return round_up(max(1, self.vector), _ACCUMULATION_GRANULE)

    @property
    def unified(self) -> int:
        """Registers of a lane, of both kinds."""
        return self.accumulation_offset + self.accumulation if self.accumulation else self.vector


def kernel_resources(isa: InstructionSet, function: Function) -> KernelResources:
    """Counted from the instructions; spills, scratch and shared memory as register assignment and selection set them."""
    highest = {"v": 1, "a": 0, "s": SGPRS_AT_START}
    operands: set[Operand] = set()
    for inst in function.insts():
        operands.update(inst.defs, inst.uses)
    for operand in operands:
        if isinstance(operand, Slice):
            file, end = FILES[operand.reg.cls], operand.first + operand.count
            if end > highest[file] and (file != "s" or end <= SGPRS):
                highest[file] = end
    kinds: Counter[str] = Counter()
    for opcode, count in Counter([inst.opcode for inst in function.insts()]).items():
        kinds[_kind(isa, opcode)] += count
    known = function.attributes
    return KernelResources(
        highest["v"], highest["a"], highest["s"], sum(known.spills.values()), known.spills.get("s", 0), known.shared_bytes,
        known.scratch_bytes, {kind: kinds[kind] for kind in _REPORTED},
    )


@functools.cache
def _kind(isa: InstructionSet, opcode: str) -> str:
    return _KINDS_BY_NAME.get(opcode) or _KINDS[isa.row(opcode).unit]


def resources(isa: InstructionSet, functions: Sequence[Function]) -> Resources:
    """The most that any of them takes; the instructions are those of all."""
    found = [kernel_resources(isa, function) for function in functions]
    if not found:
        return Resources()
    threads = [math.prod(entry_of(function).workgroup) for function in functions]
    used = zip(found, threads, strict=True)
    return Resources(
        registers={kind: max(getattr(k, kind) for k in found) for kind in ("vector", "accumulation", "scalar")},
        spills=sum(k.spills for k in found),
        shared_bytes=max(k.shared_bytes for k in found),
        scratch_bytes=max(k.scratch_bytes for k in found),
        occupancy=min(occupancy(isa.chip, each, k.unified, k.shared_bytes) for k, each in used),
        instructions={kind: sum(k.instructions[kind] for k in found) for kind in _REPORTED},
    )


def spilling(used: Resources) -> Remark:
    """The remark TFW0652 of a kernel whose values wait in memory for a register."""
    return Remark(
        "TFW0652",
        f"the kernel does not fit into its registers: {used.spills} registers of a lane wait elsewhere for a while, "
        f"{used.scratch_bytes} bytes of them in memory",
        "smaller tiles, more waves (num_warps), fewer num_stages or no maxnreg need fewer registers a lane",
    )
