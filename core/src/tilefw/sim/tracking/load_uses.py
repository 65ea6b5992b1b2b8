"""What the value of a load is used for: the stores that it reaches, where it reaches nothing else.

A value is followed forwards through registers, along all paths. It counts as used at once where it decides anything: an address, a
guard, a branch, an operand of an atomic. The data of a store is used only by a wave that has a lane acting there.

An instruction under a guard overwrites its register in the lanes where the guard holds. In the others the old value stays, which
instructions under the same guard do not see until the guard's own register changes: a whole program under one mask of lanes
overwrites as one without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tilefw.sim.algebra.recording import RecordedValue, RecordingLanes
from tilefw.sim.program import (
    Branch,
    BranchTable,
    Call,
    Destination,
    Exit,
    Guard,
    Instruction,
    Jump,
    Program,
    Register,
    Registers,
    Return,
)

Carried = frozenset[tuple[int, Guard | None]]
"""Registers that have the value: in all lanes (None), or only in those where a guard does not hold."""
_DATA_OF_STORE = 2  # store(space, address, values): position of the values
_DECIDES = frozenset({
    "load", "load_reserved", "store_conditional", "atomic", "copy_async", "require", "trap", "multicast_load", "multicast_store",
    "multicast_atomic",
})


class LoadUses:
    """The uses of one program's loads, found when they are asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[int, frozenset[int] | None] = {}

    def stores(self, load: int) -> frozenset[int] | None:
        """The stores (instruction numbers) whose data the value of instruction `load` reaches; None where it is used otherwise."""
        if load not in self._known:
            self._known[load] = _followed(self._program, load)
        return self._known[load]


class _Used(Exception):
    """The value decides something."""


def _followed(program: Program, load: int) -> frozenset[int] | None:
    instructions = program.instructions
    if not instructions[load].destinations:
        return None  # it loads to memory
    calls = any(isinstance(i.flow, Call) for i in instructions)
    stores: set[int] = set()
    before: dict[int, Carried] = {}
    try:
        work = [(index, _everywhere(instructions[load].destinations)) for index in _successors(instructions[load], calls)]
        while work:
            index, carried = work.pop()
            known = before.get(index, frozenset())
            if index >= len(instructions) or not carried or (index in before and carried <= known):
                continue
            before[index] = carried = carried | known
            instruction = instructions[index]
            left = _left(instruction, carried) | _results(instruction, carried, stores)
            work += [(following, left) for following in _successors(instruction, calls)]
    except _Used:
        return None
    return frozenset(stores)


def _left(instruction: Instruction, carried: Carried) -> Carried:
    """What of the value an instruction leaves where it was."""
    written, guard = _numbers(instruction.destinations), instruction.guard
    if not written:
        return carried
    # A guard whose register changes no longer says which lanes those are.
    known = {(r, None if without is not None and without.register.index in written else without) for r, without in carried}
    if guard is None or guard.register.index in written:
        return frozenset((r, without) for r, without in known if guard is not None or r not in written)
    return frozenset((r, guard if r in written and without is None else without) for r, without in known)


def _results(instruction: Instruction, carried: Carried, stores: set[int]) -> Carried:
    """The registers that have the value after an instruction because of it; raises _Used."""
    guard = instruction.guard
    seen = frozenset(r for r, without in carried if without is None or without != guard)
    if guard is not None and guard.register.index in {r for r, _ in carried}:
        raise _Used
    reading = [bool(_numbers((source,)) & seen) for source in instruction.sources]
    if not any(reading):
        return frozenset()
    if instruction.meaning is None or instruction.flow is not None:
        raise _Used
    results, stored = _traced(instruction, reading)
    if stored:
        stores.add(instruction.index)
    chosen = [d for d, has in zip(instruction.destinations, results, strict=True) if has]
    return _everywhere(chosen)


def _traced(instruction: Instruction, reading: Iterable[bool]) -> tuple[list[bool], bool]:
    """Which results of an instruction depend on the marked sources, and whether they are data of a store; raises _Used."""
    assert instruction.meaning is not None
    lanes = RecordingLanes()
    sources = [lanes.symbol(source.bits) for source in instruction.sources]
    results = instruction.meaning(lanes, *sources)
    marked = {symbol.number for symbol, has in zip(sources, reading, strict=True) if has}
    stored = False
    for step in lanes.steps:
        if not _mentions((step.operands, dict(step.keywords)), marked):
            continue
        if step.name in _DECIDES:
            raise _Used
        if step.name == "store":
            if _mentions((step.operands[:_DATA_OF_STORE], dict(step.keywords)), marked):
                raise _Used
            stored = True
        marked |= {result.number for result in step.results}
    given = () if results is None else results if isinstance(results, tuple | list) else (results,)
    return [_mentions(result, marked) for result in given], stored


def _mentions(value: Any, marked: set[int]) -> bool:
    if isinstance(value, RecordedValue):
        return value.number in marked
    if isinstance(value, Mapping):
        return any(_mentions(v, marked) for v in value.values())
    return isinstance(value, tuple | list) and any(_mentions(v, marked) for v in value)


def _everywhere(operands: Iterable[Destination | Any]) -> Carried:
    return frozenset((number, None) for number in _numbers(operands))


def _numbers(operands: Iterable[Destination | Any]) -> frozenset[int]:
    """The registers among operands."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, Register):
            found.add(operand.index)
        elif isinstance(operand, Registers):
            found.update(part.index for part in operand.parts)
    return frozenset(found)


def _successors(instruction: Instruction, calls: bool) -> list[int]:
    """Where execution may go on; raises _Used where the program alone does not tell. `calls`: a return may lead anywhere."""
    flow = instruction.flow
    if isinstance(flow, Jump | Call) or (calls and isinstance(flow, Return)):
        raise _Used
    falls = instruction.guard is not None or not isinstance(flow, Branch | BranchTable | Exit | Return)
    if isinstance(flow, Branch) and instruction.meaning is not None:
        falls = True
    targets = [flow.target] if isinstance(flow, Branch) else list(flow.targets) if isinstance(flow, BranchTable) else []
    return targets + ([instruction.index + 1] if falls else [])
