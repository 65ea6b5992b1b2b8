"""Instructions to steps: once per program, each instruction becomes one Python closure over slot numbers, in blocks.

Slots are the program's registers, then its constants, then places for special registers and operands in parts. A closure
is generated for each number of sources and destinations, so that nothing is looped over or looked up while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilefw.api.errors import CodeError
from tilefw.sim.floats import Array
from tilefw.sim.lanes_integer import constant
from tilefw.sim.program import (
    Branch,
    BranchTable,
    Call,
    Immediate,
    Instruction,
    Program,
    Register,
    Registers,
    Special,
    Symbol,
)
from tilefw.sim.stepping import guarded, slow_step

Step = Callable[[Any, Any], None]

# {sources} are slot numbers bound as defaults of the factory, so that they are fast locals of the closure.
_TEMPLATE = """
def factory(instruction, meaning, slow, sources, destinations):
    {unpack}
    def step(lanes, frame):
        r = frame.registers
        lanes.instruction = instruction
        {poison_test}
        {result}meaning(lanes{arguments})
        if lanes.tainted or frame.merge is not None:
            return slow(lanes, frame)
        {write}
    return step
"""


@cache
def _factory(sources: int, destinations: int) -> Callable[..., Step]:
    """The closure maker for instructions with so many sources and destinations; slow steps are handed over whole.

    A step with effects never reaches the second test after having had them: without destinations `merge` is not looked at.
    """
    unpack = []
    if sources:
        unpack.append(", ".join(f"s{i}" for i in range(sources)) + ", = sources")
    if destinations:
        unpack.append(", ".join(f"d{i}" for i in range(destinations)) + ", = destinations")
    tests = [f"p[s{i}] is not None" for i in range(sources)]
    if destinations:
        tests.insert(0, "frame.merge is not None")
    lines = ["p = frame.poison"]
    if tests:
        lines += [f"if {' or '.join(tests)}:", "    return slow(lanes, frame)"]
    write = ["pass"] if not destinations else [
        line for i in range(destinations) for line in (f"r[d{i}] = v{i}", f"p[d{i}] = None")
    ]
    if destinations == 1:
        write.insert(0, "if type(v0) is tuple: v0, = v0")
    result = "" if not destinations else "v0 = " if destinations == 1 else ", ".join(f"v{i}" for i in range(destinations)) + " = "
    source = _TEMPLATE.format(
        unpack="\n    ".join(unpack) or "pass", poison_test="\n        ".join(lines), result=result,
        arguments="".join(f", r[s{i}]" for i in range(sources)), write="\n        ".join(write),
    ).replace("if lanes.tainted or frame.merge is not None:", "if lanes.tainted:")
    scope: dict[str, Any] = {}
    exec(compile(source, f"<step {sources}->{destinations}>", "exec"), scope)
    return scope["factory"]


@dataclass(slots=True)
class Block:
    """Steps that run one after the other; `flow` is the instruction that decides what comes next, if any does.

    `touched` are the slots that the block reads or writes; `units` counts instructions by unit.
    """

    start: int
    steps: list[Step] = field(default_factory=list)
    flow: Instruction | None = None
    flow_sources: tuple[int, ...] = ()
    flow_destinations: tuple[int, ...] = ()
    flow_specials: tuple[tuple[int, Special], ...] = ()
    size: int = 0
    touched: tuple[int, ...] = ()
    units: dict[str, int] = field(default_factory=dict)
    instructions: tuple[Instruction, ...] = ()


@dataclass(slots=True)
class Prepared:
    """A program ready to run. `constants` are the values of the slots behind the registers; `block_at` finds a block by PC."""

    program: Program
    blocks: list[Block]
    block_at: dict[int, int]
    slot_bits: list[int]
    constants: dict[int, Array]
    call_targets: frozenset[int]


class _Preparation:
    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self.program = program
        self.symbols = symbols
        self.bits = list(program.registers)
        self.constants: dict[int, Array] = {}
        self._constant_slots: dict[tuple[int, int], int] = {}

    def slot(self, bits: int) -> int:
        self.bits.append(bits)
        return len(self.bits) - 1

    def constant(self, value: int, bits: int) -> int:
        slot = self._constant_slots.get((value, bits))
        if slot is None:
            slot = self._constant_slots[value, bits] = self.slot(bits)
            self.constants[slot] = constant(value, bits)
        return slot

    def source(self, operand: Any, before: list[Any], instruction: Instruction) -> int:
        if isinstance(operand, Register):
            return operand.index
        if isinstance(operand, Immediate):
            return self.constant(operand.value, operand.bits)
        if isinstance(operand, Symbol):
            return self.constant(self.address(operand, instruction), operand.bits)
        slot = self.slot(operand.bits)
        before.append((slot, operand))
        return slot

    def address(self, operand: Symbol, instruction: Instruction) -> int:
        if operand.name not in self.symbols:
            raise CodeError(f"{operand.name} is not a variable or parameter of {self.program.name}", "TFW0703", instruction.code)
        return (self.symbols[operand.name] + operand.offset) % (1 << operand.bits)

    def destination(self, operand: Any, after: list[Any]) -> int:
        if isinstance(operand, Register):
            return operand.index
        slot = self.slot(operand.bits)
        if isinstance(operand, Registers):
            after.append((slot, operand))
        return slot


def prepare(program: Program, symbols: Mapping[str, int]) -> Prepared:
    """Steps and blocks of a program whose variables and parameters stand at `symbols`. Raises CodeError."""
    work = _Preparation(program, symbols)
    instructions = program.instructions
    leaders = _leaders(instructions)
    blocks: list[Block] = []
    block_at: dict[int, int] = {}
    for instruction in instructions:
        if instruction.index in leaders or not blocks or blocks[-1].flow is not None:
            block_at[instruction.index] = len(blocks)
            blocks.append(Block(instruction.index))
        _append(work, blocks[-1], instruction)
    for block in blocks:
        block.touched = tuple(sorted(set(block.touched)))
    targets = frozenset(i.flow.target for i in instructions if isinstance(i.flow, Call))
    return Prepared(program, blocks, block_at, work.bits, work.constants, targets)


def _leaders(instructions: Sequence[Instruction]) -> set[int]:
    leaders = {0}
    for instruction in instructions:
        flow = instruction.flow
        if isinstance(flow, (Branch, Call)):
            leaders.add(flow.target)
        elif isinstance(flow, BranchTable):
            leaders.update(flow.targets)
    for target in leaders:
        if not 0 <= target < max(1, len(instructions)):
            raise CodeError(f"a branch to instruction {target} of {len(instructions)}", "TFW0703")
    return leaders


def _append(work: _Preparation, block: Block, instruction: Instruction) -> None:
    before: list[Any] = []
    after: list[Any] = []
    sources = tuple(work.source(o, before, instruction) for o in instruction.sources)
    destinations = tuple(work.destination(o, after) for o in instruction.destinations)
    block.size += 1
    block.units[instruction.unit] = block.units.get(instruction.unit, 0) + 1
    block.instructions += (instruction,)
    parts = [p.index for _, o in (*before, *after) if isinstance(o, Registers) for p in o.parts]
    guard = () if instruction.guard is None else (instruction.guard.register.index,)
    # Slots of constants are the same in every frame, but a compact frame starts empty and must be given them too.
    block.touched += (*sources, *destinations, *parts, *guard, *(slot for slot, _ in (*before, *after)))
    if instruction.flow is not None:
        block.flow, block.flow_sources, block.flow_destinations = instruction, sources, destinations
        block.flow_specials = tuple((s, o) for s, o in before if isinstance(o, Special))
        return
    assert instruction.meaning is not None, f"{instruction.text} has neither meaning nor flow"
    slow = slow_step(instruction, sources, destinations)
    step = _factory(len(sources), len(destinations))(instruction, instruction.meaning, slow, sources, destinations)
    if before or after:
        step = _with_parts(step, tuple(before), tuple(after))
    block.steps.append(step if instruction.guard is None else guarded(step, instruction))


def _with_parts(step: Step, before: tuple[Any, ...], after: tuple[Any, ...]) -> Step:
    """A step whose operands are first fetched from special registers or joined, and whose results are then taken apart."""

    def whole(lanes: Any, frame: Any) -> None:
        for slot, operand in before:
            if isinstance(operand, Special):
                frame.registers[slot], frame.poison[slot] = operand.meaning(lanes), None
            else:
                parts = [frame.registers[p.index] for p in operand.parts]
                frame.registers[slot] = lanes.join(parts)
                marks = [frame.poison[p.index] for p in operand.parts]
                frame.poison[slot] = None if all(m is None for m in marks) else lanes.join(
                    [part ^ part if m is None else m for part, m in zip(parts, marks, strict=True)]
                )
        for slot, operand in after:
            # Lanes that do not act keep what the parts hold.
            frame.registers[slot], frame.poison[slot] = lanes.join([frame.registers[p.index] for p in operand.parts]), None
        step(lanes, frame)
        for slot, operand in after:
            bits = operand.parts[0].bits
            mark = frame.poison[slot]
            for place, part in enumerate(operand.parts):
                frame.registers[part.index] = lanes.split(frame.registers[slot], bits)[place]
                frame.poison[part.index] = None if mark is None else lanes.split(mark, bits)[place]

    return whole
