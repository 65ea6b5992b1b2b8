"""Which registers an instruction reads and writes, by number."""

from __future__ import annotations

from tilefw.sim.program import Destination, Instruction, Register, Registers, Source


def _numbers(operands: tuple[Source, ...] | tuple[Destination, ...]) -> tuple[int, ...]:
    numbers: list[int] = []
    for operand in operands:
        if isinstance(operand, Register):
            numbers.append(operand.index)
        elif isinstance(operand, Registers):
            numbers += [part.index for part in operand.parts]
    return tuple(numbers)


def reads(instruction: Instruction) -> tuple[int, ...]:
    """The guard's first, then those of the sources in order, with repetitions."""
    guard = () if instruction.guard is None else (instruction.guard.register.index,)
    return guard + _numbers(instruction.sources)


def writes(instruction: Instruction) -> tuple[int, ...]:
    """Those of the destinations in order."""
    return _numbers(instruction.destinations)
