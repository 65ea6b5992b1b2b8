"""Instructions to steps: once per program, each instruction becomes one Python closure over slot numbers, in blocks.

Slots are the program's registers, then its constants, then places for special registers and operands in parts. A closure
is generated for each number of sources and destinations, so that nothing is looped over or looked up while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from tilefw.api.errors import CodeError
from tilefw.sim.algebra.integer import constant
from tilefw.sim.compiled.liveness import LaterReads
from tilefw.sim.compiled.nests import MASK_LANES
from tilefw.sim.compiled.runs import with_runs
from tilefw.sim.compiled.traced import Part, Slots
from tilefw.sim.floats import Array
from tilefw.sim.program import (
    Await,
    Branch,
    BranchTable,
    Call,
    Exit,
    Immediate,
    Instruction,
    Jump,
    Meeting,
    Program,
    Register,
    Registers,
    Return,
    SimulatedChip,
    Source,
    Special,
    Symbol,
)
from tilefw.sim.steps.block_order import block_order
from tilefw.sim.steps.careful import Step, guarded, once_a_wave, slow_step
from tilefw.sim.steps.exact import follow, followed
from tilefw.sim.steps.observed import counted, watched
from tilefw.sim.steps.operands import Placed, around, fetch
from tilefw.sim.tracking.events import settling_kinds
from tilefw.sim.tracking.queues import Kind

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
class PreparedBlock:
    """Steps that run one after the other; `flow` is the instruction that decides what comes next, if any does.

    `condition` is (slot of a predicate, negated) where only those in whom it holds follow the flow, `address` the slot of a
    `Jump`'s. `gathered`: so many waves have met before its first step. `touched` are the slots that the block reads or writes;
    `units` counts instructions by unit. `parts` are, by step, what compiled runs know of those that may be in one.
    """

    start: int
    steps: list[Step] = field(default_factory=list)
    flow: Instruction | None = None
    flow_sources: tuple[int, ...] = ()
    flow_destinations: tuple[int, ...] = ()
    parts: list[Part | None] = field(default_factory=list)
    condition: tuple[int, bool] | None = None
    address: int = -1
    size: int = 0
    touched: set[int] = field(default_factory=set)
    units: dict[str, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    gathered: int = 0


FirstRegisters = tuple[list[Array], list[Array | None]]
"""What each slot holds as a launch begins, and which lanes of it are undefined (None: none)."""


@dataclass(slots=True)
class Prepared:
    """A program ready to run. `constants` are the values of the slots behind the registers; `block_at` finds a block by PC.

    `initial` are the registers that hold a value at the start; `code` is (address of the machine code, block by byte offset);
    `settling` are the kinds of events that are counted (events.py); `order` numbers the blocks, and the end behind them, in the
    scheduling order of divergent paths (block_order.py). `first_registers` are kept from launch to launch, by whether undefined
    values are followed.
    """

    program: Program
    blocks: list[PreparedBlock]
    block_at: dict[int, int]
    slot_bits: list[int]
    constants: dict[int, Array]
    initial: tuple[tuple[int, Array | Special], ...]
    code: tuple[int, dict[int, int]]
    settling: tuple[Kind, ...]
    order: list[int]
    first_registers: dict[bool, FirstRegisters] = field(default_factory=dict)


class _Preparation:
    def __init__(self, program: Program, symbols: Mapping[str, int], watch: bool, follow: bool) -> None:
        self.program = program
        self.has_wave_registers = bool(program.wave_registers)
        self.watch = watch
        self.followed = followed(program) if follow else None
        self.following = frozenset[int]() if self.followed is None else self.followed.instructions()
        self.symbols = symbols
        self.bits = list(program.registers)
        self.constants: dict[int, Array] = {}
        self._constant_slots: dict[tuple[int, int], int] = {}
        self.settling = settling_kinds(program)

    def slot(self, bits: int) -> int:
        self.bits.append(bits)
        return len(self.bits) - 1

    def constant(self, value: int, bits: int) -> int:
        slot = self._constant_slots.get((value, bits))
        if slot is None:
            slot = self._constant_slots[value, bits] = self.slot(bits)
            self.constants[slot] = constant(value, bits)
        return slot

    def source(self, operand: Any, before: list[Placed], instruction: Instruction) -> int:
        if isinstance(operand, Register):
            return operand.index
        if isinstance(operand, Immediate):
            return self.constant(operand.value, operand.bits)
        if isinstance(operand, Symbol):
            return self.constant(self.address(operand, instruction), operand.bits)
        slot = self.slot(operand.bits)
        before.append((slot, operand))
        return slot

    def address(self, operand: Symbol, instruction: Instruction | None) -> int:
        if operand.name not in self.symbols:
            place = None if instruction is None else instruction.code
            raise CodeError(f"{operand.name} is not a variable or parameter of {self.program.name}", "TFW0703", place)
        return (self.symbols[operand.name] + operand.offset) % (1 << operand.bits)

    def destination(self, operand: Any, after: list[Placed]) -> int:
        if isinstance(operand, Register):
            return operand.index
        slot = self.slot(operand.bits)
        if isinstance(operand, Registers):
            after.append((slot, operand))
        return slot

    def for_wave(self, operand: Any) -> bool:
        """Whether a destination holds one value for the wave."""
        parts = operand.parts if isinstance(operand, Registers) else (operand,) if isinstance(operand, Register) else ()
        return bool(parts) and all(part.index in self.program.wave_registers for part in parts)

    def initial(self, operand: Source) -> Array | Special:
        if isinstance(operand, Special):
            return operand
        assert isinstance(operand, (Immediate, Symbol)), f"{operand} is not an initial value"
        value = operand.value if isinstance(operand, Immediate) else self.address(operand, None)
        return constant(value, operand.bits)


def prepare(
    program: Program, symbols: Mapping[str, int], watch: bool = False, follow: bool = False, chip: SimulatedChip | None = None
) -> Prepared:
    """Steps and blocks of a program whose variables and parameters have the addresses `symbols`; with `watch` each step shows its
    instruction to the checks that observe steps, with `follow` steps follow what offsets are meant to be. Runs of steps may be
    compiled where the `chip` is known. Raises CodeError."""
    work = _Preparation(program, symbols, watch, follow)
    instructions = program.instructions
    leaders = _leaders(program)
    blocks: list[PreparedBlock] = []
    block_at: dict[int, int] = {}
    for instruction in instructions:
        if instruction.index in leaders or not blocks or blocks[-1].flow is not None:
            block_at[instruction.index] = len(blocks)
            blocks.append(PreparedBlock(instruction.index))
        if instruction.gathers > blocks[-1].gathered:
            blocks[-1].flow = replace(instruction, flow=Meeting(instruction.gathers), meaning=None, guard=None)
            blocks.append(PreparedBlock(instruction.index, gathered=instruction.gathers))
        _append(work, blocks[-1], instruction)
    initial = tuple((register, work.initial(operand)) for register, operand in program.initial)
    code = (0, {})
    if program.code is not None and _jumps(program):
        variable, offsets = program.code
        code = work.address(Symbol(variable), None), {offset: block_at[index] for offset, index in offsets.items()}
    successors, roots = _successors(blocks, block_at, code[1].values())
    if chip is not None and not chip.mask_stack:
        masks = chip.wave_size == MASK_LANES and not chip.pc_per_lane
        slots = Slots(work.bits, len(program.registers), work.constants, LaterReads(blocks, successors), masks)
        for number, block in enumerate(blocks):
            block.steps = with_runs(block.steps, block.parts, number, slots, chip.wave_size)
    return Prepared(
        program, blocks, block_at, work.bits, work.constants, initial, code, work.settling,
        [*block_order(successors, roots), len(blocks)],
    )


def _successors(
    blocks: Sequence[PreparedBlock], block_at: Mapping[int, int], jump_targets: Iterable[int]
) -> tuple[list[list[int]], list[int]]:
    """The blocks that may come after each, and those where execution begins: the first, and the functions that are called."""
    successors: list[list[int]] = []
    roots = [0] if blocks else []
    for number, block in enumerate(blocks):
        instruction = block.flow
        flow = None if instruction is None else instruction.flow
        falls = instruction is None or instruction.guard is not None or not isinstance(flow, Exit | Return | Jump | BranchTable)
        targets: list[int] = []
        if isinstance(flow, Branch):
            targets.append(block_at[flow.target])
            falls = block.condition is not None
        elif isinstance(flow, BranchTable):
            targets += (block_at[target] for target in flow.targets)
        elif isinstance(flow, Jump):
            targets += jump_targets
        elif isinstance(flow, Call):
            roots.append(block_at[flow.target])
        if falls and number + 1 < len(blocks):
            targets.append(number + 1)
        successors.append(targets)
    return successors, roots


def _jumps(program: Program) -> bool:
    return any(isinstance(i.flow, Jump) for i in program.instructions)


def _leaders(program: Program) -> set[int]:
    leaders = {0}
    for instruction in program.instructions:
        flow = instruction.flow
        if isinstance(flow, (Branch, Call)):
            leaders.add(flow.target)
        elif isinstance(flow, BranchTable):
            leaders.update(flow.targets)
        elif isinstance(flow, Await):
            leaders.add(instruction.index)
    if program.code is not None and _jumps(program):
        leaders.update(program.code[1].values())
    for target in leaders:
        if not 0 <= target < max(1, len(program.instructions)):
            raise CodeError(f"a branch to instruction {target} of {len(program.instructions)}", "TFW0703")
    return leaders


def _append(work: _Preparation, block: PreparedBlock, instruction: Instruction) -> None:
    before: list[Placed] = []
    after: list[Placed] = []
    sources = tuple([o.index if isinstance(o, Register) else work.source(o, before, instruction) for o in instruction.sources])
    destinations = tuple([o.index if isinstance(o, Register) else work.destination(o, after) for o in instruction.destinations])
    for_wave = tuple(map(work.for_wave, instruction.destinations)) if work.has_wave_registers else (False,) * len(destinations)
    block.size += 1
    block.units[instruction.unit] = block.units.get(instruction.unit, 0) + 1
    block.instructions.append(instruction)
    guard = None if instruction.guard is None else (instruction.guard.register.index, instruction.guard.negated)
    if instruction.flow is not None:
        block.flow, block.flow_sources, block.flow_destinations, block.condition = instruction, sources, destinations, guard
        if instruction.meaning is not None and not isinstance(instruction.flow, Await):
            destinations, for_wave = (_decision(work, block, instruction), *destinations), (True, *for_wave)
        elif isinstance(instruction.flow, Jump):
            block.address = sources[0]
    # Slots of constants are the same in every frame, but a compact frame starts empty and must be given them too.
    block.touched.update(sources, destinations, () if guard is None else guard[:1])
    if before or after:
        block.touched.update(slot for slot, _ in (*before, *after))
        block.touched.update(p.index for _, o in (*before, *after) if isinstance(o, Registers) for p in o.parts)
    if instruction.meaning is None:
        assert instruction.flow is not None, f"{instruction.text} has neither meaning nor flow"
        if before or instruction.issues or instruction.waits is not None:
            block.steps.append(counted(fetch(before), instruction, work.settling))
            block.parts.append(None)
        return
    step = _step(work, instruction, sources, destinations, for_wave, before, after)
    counting = counted(step, instruction, work.settling)
    alone = work.watch or instruction.flow is not None or counting is not step or instruction.index in work.following
    part = None if alone else Part(step, instruction, sources, destinations, for_wave, tuple(before), tuple(after))
    block.steps.append(counting)
    block.parts.append(part)


def _decision(work: _Preparation, block: PreparedBlock, instruction: Instruction) -> int:
    """The flow has a meaning: the slot for its first result, which decides where execution goes."""
    if isinstance(instruction.flow, Jump):
        block.address = work.slot(64)
        return block.address
    assert isinstance(instruction.flow, Branch) and block.condition is None, f"{instruction.text} decides twice"
    block.condition = work.slot(1), False
    return block.condition[0]


def _step(
    work: _Preparation, instruction: Instruction, sources: tuple[int, ...], destinations: tuple[int, ...],
    for_wave: tuple[bool, ...], before: Sequence[Placed], after: Sequence[Placed],
) -> Step:
    slow = slow_step(instruction, sources, destinations, for_wave)
    step = _factory(len(sources), len(destinations))(instruction, instruction.meaning, slow, sources, destinations)
    if work.watch:
        step = watched(step, instruction, sources, destinations)
    if work.followed is not None and instruction.index in work.following:
        step = follow(step, instruction, sources, destinations, for_wave, work.followed)
    if before or after:
        step = around(step, tuple(before), tuple(after))
    if instruction.guard is not None and (instruction.flow is None or isinstance(instruction.flow, Await)):
        step = guarded(step, instruction, any(for_wave))
    return once_a_wave(step) if instruction.wave else step
