"""How a plugin describes its instructions to the machine layer: what each one is, not how it is encoded or executed.

The plugin's own table (`isa.py`) holds more; an `InstructionTable` is the view of it that liveness, allocation,
scheduling and dead-code elimination read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilefw.machine.inst import Inst


@dataclass(frozen=True, slots=True)
class InstructionTraits:
    """What passes must know of an opcode.

    `effects`: writes memory, synchronises, branches or ends the program, so that it stays without a reader. `terminator`:
    control never falls through, but where a predicate is false; a branch whose condition is an operand is none. `move`: a plain
    register copy, which coalescing may remove. `cheap`: its operands are constants only, so that it may be made again anywhere
    instead of keeping its result. `early`: writes results before it has read all operands, so that a result shares no register
    with an operand that it is not tied to. `convergent`: it exchanges values with other lanes, and moves to no place that
    fewer of them may reach (LLVM's word for it). `memory`: the space that it only reads or, with `effects`, only writes ("shared",
    "global"). What has effects and no such space is ordered with all accesses.

    For scheduling, in cycles: `latency` until a dependent instruction finds the result, and `issue`, for how long it keeps its
    `unit`, a pipe of the chip by a name of the plugin's, from the next instruction of that unit ("" for none that matters).
    """

    effects: bool = False
    terminator: bool = False
    move: bool = False
    latency: int = 1
    cheap: bool = False
    early: bool = False
    convergent: bool = False
    memory: str = ""
    unit: str = ""
    issue: int = 1


PURE = InstructionTraits()
"""Traits of an instruction that only computes its results."""
EFFECT = InstructionTraits(effects=True)
"""Traits of one that does more, such as a store or a barrier: it stays, in its order."""
MOVE = InstructionTraits(move=True)
"""Traits of one that copies its operand and nothing else."""
BRANCH = InstructionTraits(effects=True)
"""Traits of one that goes to its target or falls through, by a condition among its operands: `bnez %c {targets=loop}`."""
JUMP = InstructionTraits(effects=True, terminator=True)
"""Traits of one that ends a block: control goes to its target, or the program ends. Under a predicate it may fall through."""


@dataclass(frozen=True, slots=True)
class RegisterClass:
    """What a value may be kept in: `count` physical registers (None: as many as wanted), each of `bits` bits.

    Classes of one `file` share its registers, as lane masks and uniform values do on a chip that keeps both in its wave
    registers; they give the same `count`. A class without a name for its file has one of its own.
    """

    name: str
    bits: int
    count: int | None = None
    file: str = ""


@dataclass(frozen=True)
class InstructionTable:
    """The instructions and register classes of one instruction set.

    `traits` maps an opcode, as in `Inst.opcode`, to what passes must know; it raises KeyError for an opcode that the set
    does not have, with that opcode or, of a pseudo-instruction, the instruction that is missing. `reserved` are physical registers
    per file that allocation must not hand out. `issue_interval`: cycles from one instruction of a wave to its next. `apart`: cycles
    on top of a latency for who reads a register of a file, by the pipes of its writer and its reader and the file.
    """

    name: str
    traits: Callable[[str], InstructionTraits]
    classes: dict[str, RegisterClass]
    reserved: dict[str, frozenset[int]] = field(default_factory=dict)
    issue_interval: int = 1
    apart: Mapping[tuple[str, str, str], int] = field(default_factory=dict)

    def has(self, opcode: str) -> bool:
        """Whether the set has an opcode."""
        try:
            self.traits(opcode)
        except KeyError:
            return False
        return True

    def file(self, cls: str) -> str:
        """The file that holds registers of a class; raises KeyError for no class."""
        return self.classes[cls].file or cls


def only_computes(inst: Inst, table: InstructionTable) -> bool:
    """Whether an instruction makes its results of the registers that it names, and does nothing else: it may stand wherever these
    registers are as they are here, and if it is `convergent`, as many lanes come."""
    if not inst.defs or inst.targets or inst.predicate is not None or inst.tied or inst.implicit_defs or inst.implicit_uses:
        return False
    traits = table.traits(inst.opcode)
    return not (traits.effects or traits.memory or traits.terminator or inst.buffer is not None or inst.volatile)


def from_dict(
    name: str, rows: dict[str, InstructionTraits], classes: list[RegisterClass],
    reserved: dict[str, frozenset[int]] | None = None,
) -> InstructionTable:
    """A table from explicit rows by opcode, for a small instruction set. `reserved` registers, by class, are never allocated."""
    return InstructionTable(name, rows.__getitem__, {c.name: c for c in classes}, reserved or {})
