"""What a chip's methods emit, held against its instruction table: accesses name their memory, effects are declared, ends end.

Passes believe the table. What it calls pure they move over stores and barriers, and remove where nobody reads a result; an access
of another memory than it names they order with the wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilefw.api.errors import PluginError
from tilefw.machine.inst import Inst, Reg, Slice
from tilefw.machine.opcodes import place_of_source
from tilefw.machine.table import InstructionTraits
from tilefw.simt.select.code import Code, Element
from tilefw.tile.dialect.observe_op import ObserveOp

if TYPE_CHECKING:
    from tilefw.simt.chip import LaneChip
    from tilefw.simt.chip_requests import LaneAccess

_SPACES = {"": "global", "cluster": "shared"}  # by the space of an access; shared memory may be another workgroup's
_MOVED = "passes may move it over stores and barriers"


def load(chip: LaneChip, code: Code, access: LaneAccess) -> None:
    """Have the chip load. Raises PluginError (TFW0515) where what loads is pure by the table, or reads another memory."""
    made = _accessing(code, access, lambda: chip.load(code, access))
    space = _SPACES.get(access.space, access.space)
    traits = [chip.table.traits(inst.opcode) for inst in made]
    if any(_orders(its, space) for its in traits):
        return
    other = _elsewhere(made, traits)
    if other is not None:
        raise _wrong(chip, f"loads from {space} memory with", *other)
    opcodes = _makers(made, {r.reg for r in access.registers if isinstance(r, Slice)})
    if opcodes:
        named = ", ".join(f"'{opcode}'" for opcode in opcodes)
        which = "which reads no" if len(opcodes) == 1 else "none of which reads"
        raise _refused(
            chip, f"loads with {named}, {which} memory by the instruction table", _MOVED,
            'give the `InstructionTraits` of what loads a `memory`: "global" or "shared"',
        )


def _makers(made: Sequence[Inst], registers: set[Reg]) -> list[str]:
    """The opcodes that had a part in what stands in `registers`, in order, each once."""
    found: list[str] = []
    wanted = set(registers)
    for inst in reversed(made):
        if any(d.reg in wanted for d in inst.defs):
            found.append(inst.opcode)
            wanted |= {use.reg for use in inst.uses if isinstance(use, Slice)}
    return list(dict.fromkeys(reversed(found)))


def store(chip: LaneChip, code: Code, access: LaneAccess) -> None:
    """Have the chip store. Raises PluginError (TFW0515) where what stores has no effect by the table, or on another memory."""
    made = _accessing(code, access, lambda: chip.store(code, access))
    space = _SPACES.get(access.space, access.space)
    traits = [chip.table.traits(inst.opcode) for inst in made]
    if not made or any(its.effects and _orders(its, space) for its in traits):
        return
    if any(its.effects for its in traits):
        other = _elsewhere(made, traits)
        assert other is not None
        raise _wrong(chip, f"stores to {space} memory with", *other)
    raise _refused(
        chip, f"stores with '{made[-1].opcode}', which has no effect by the instruction table", "passes remove what has none",
        f'give its `InstructionTraits` `effects=True` and `memory="{space}"`',
    )


def act(chip: LaneChip, code: Code, deed: str, emit: Callable[[], None]) -> None:
    """Have the chip emit a barrier, an atomic access, a fence (`deed`): TFW0515 where all of what it emits is pure by the table."""
    made = _emitted(code, emit)
    traits = [chip.table.traits(inst.opcode) for inst in made]
    if made and not any(its.effects or its.memory for its in traits):
        raise _refused(
            chip, f"makes {deed} of '{made[-1].opcode}', which has no effect by the instruction table",
            "passes remove what has none, and move the rest over it", "give it the traits EFFECT",
        )


def observe(chip: LaneChip, code: Code, op: ObserveOp) -> Element:
    """Have the chip read what it knows. Raises PluginError (TFW0515) where what reads a clock is pure by the table."""
    found: list[Element] = []
    if op.is_time:
        act(chip, code, "readings of a clock", lambda: found.append(chip.observe(code, op.what)))
        return found[0]
    return chip.observe(code, op.what)


def end(chip: LaneChip, code: Code) -> None:
    """Have the chip end the program: TFW0515 where control goes on behind it by the table."""
    made = _emitted(code, lambda: chip.exit(code))
    if made and not any(chip.table.traits(inst.opcode).terminator for inst in made):
        raise _refused(
            chip, f"ends programs with '{made[-1].opcode}', behind which control goes on by the instruction table",
            "passes remove it, or take what stands behind it for its successor", "give it the traits JUMP",
        )


def _accessing(code: Code, access: LaneAccess, emit: Callable[[], None]) -> Sequence[Inst]:
    """What `emit` appended; what it adds to an offset beside a base is an offset as well."""
    with code.promising("exact" if access.base is not None else ""):
        return _emitted(code, emit)


def _emitted(code: Code, emit: Callable[[], None]) -> Sequence[Inst]:
    """What `emit` appended, in as many blocks as it opened."""
    block, before = code.block, len(code.block.insts)
    blocks = len(code.function.blocks)
    emit()
    if code.block is block:
        return block.insts[before:]
    opened = (inst for each in code.function.blocks[blocks:] for inst in each.insts)
    return [*block.insts[before:], *opened]


def _orders(its: InstructionTraits, space: str) -> bool:
    """Whether the table orders an instruction with accesses of the space."""
    return its.memory == space if its.memory else its.effects


def _elsewhere(made: Sequence[Inst], traits: Sequence[InstructionTraits]) -> tuple[str, str] | None:
    """The last instruction that accesses a memory, and which."""
    return next(((inst.opcode, its.memory) for inst, its in zip(made[::-1], traits[::-1], strict=True) if its.memory), None)


def _wrong(chip: LaneChip, deed: str, opcode: str, memory: str) -> PluginError:
    return _refused(
        chip, f"{deed} '{opcode}', which accesses '{memory}' by the instruction table",
        "passes would order it with accesses of that memory alone", "correct the `memory` of its `InstructionTraits`",
    )


def _refused(chip: LaneChip, fault: str, note: str, help: str) -> PluginError:
    return PluginError(f"{chip.name} {fault}", code="TFW0515", place=place_of_source(type(chip)), note=note, help=help)
