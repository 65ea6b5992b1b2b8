"""The reference interpreter: executes a kernel's tile IR for a whole grid, carrying an error bound for every element.

All programs of a batch run as one: each value has a leading program axis, of length 1 where the programs agree. Where a
branch or a trip count divides them, the groups run one after the other and their values are merged again. Programs that
speak with each other through atomics run one after the other instead, in the order of the grid (`scheduling.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.api.device import DEFAULT_BUDGET, Finding
from tilefw.api.errors import IRError, LaunchError
from tilefw.tile import numbers, types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import may_store
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.offset_arithmetic import offset_arithmetic
from tilefw.tile.reference.access import BufferAccess
from tilefw.tile.reference.findings import FindingCollector
from tilefw.tile.reference.interpret_ops import HANDLERS, Handler, elementwise, structural
from tilefw.tile.reference.interpret_shared import SHARED_HANDLERS, SharedBuffers
from tilefw.tile.reference.memory import RefBuffer, RefMemory
from tilefw.tile.reference.origins import CHECKS, Origins
from tilefw.tile.reference.scheduling import Results, Run, order_matters, run_round_robin, to_end
from tilefw.tile.reference.value import Array, EvaluatedValue, constant, merge
from tilefw.tile.text.module import parse
from tilefw.tile.text.source_location import place_of

BATCH_ELEMENTS = 1 << 18  # elements of the largest tile over a batch's programs: some 2 MB a value
_OP_COST = 2000  # what one op costs of the budget at least: so much work its dispatch is


@dataclass(frozen=True, slots=True)
class RefPointer:
    """A pointer argument: a buffer and an offset in bytes."""

    buffer: RefBuffer | None
    offset: int = 0

    @property
    def address(self) -> int:
        """The address; 0 for the null pointer."""
        return 0 if self.buffer is None else self.buffer.address + self.offset


@dataclass(frozen=True, slots=True)
class RefReport:
    """What a launch did: findings, counts of ops and elements, seconds."""

    findings: tuple[Finding, ...]
    counters: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def run(
    module: ModuleOp | str, entry: str | None, grid: Sequence[int], args: Sequence[RefBuffer | RefPointer | int | float], *,
    memory: RefMemory, fusion: bool = True, budget: int = DEFAULT_BUDGET, checks: frozenset[str] | None = None,
    backwards: bool = False,
) -> RefReport:
    """Execute `entry` (None: the only function) for every program of `grid`; results are left in the buffers.

    `fusion` admits results in which a product went into an add unrounded. `budget` counts executed elements, an op being at
    least 2000. `backwards` runs programs one by one from the last to the first: what comes out otherwise than forwards depends
    on an order that nobody promises. Raises IRError for text that is wrong (TFW0401, TFW0402) or ops that it does not execute
    (TFW0405), LaunchError when the arguments do not fit (TFW0440).
    """
    start = time.perf_counter()
    parsed = parse(module) if isinstance(module, str) else module
    function = find_entry(parsed, entry)
    launch = GridRun(function, tuple(grid), args, memory, fusion, budget, checks)
    launch.run(backwards)
    return RefReport(launch.findings.found, launch.counters, time.perf_counter() - start)


def find_entry(module: ModuleOp, name: str | None) -> func.FuncOp:
    """The function called `name`, or the only one. Raises LaunchError (TFW0440)."""
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    if name is None and len(functions) == 1:
        return functions[0]
    for function in functions:
        if function.sym_name.data == name:
            return function
    names = ", ".join(f.sym_name.data for f in functions) or "none"
    raise LaunchError(f"there is no kernel {name!r}", "TFW0440", note=f"kernels of the module: {names}")


class OutOfBudget(Exception):
    """Unwinds a launch that has used up its budget."""


Iteration = tuple[object, int]  # one execution of a loop, and which of its iterations


class ProgramFrame:
    """The values that a group of programs sees: its own, and those of the group it was split from, narrowed."""

    __slots__ = ("iteration", "outer", "programs", "selected", "values")

    def __init__(
        self, programs: Array, outer: ProgramFrame | None = None, selected: Array | None = None, iteration: Iteration | None = None
    ) -> None:
        self.programs = programs
        self.outer = outer
        self.selected = selected
        self.iteration = iteration if iteration is not None or outer is None else outer.iteration
        self.values: dict[SSAValue, EvaluatedValue] = {}

    def __getitem__(self, key: SSAValue) -> EvaluatedValue:
        found = self.values.get(key)
        if found is None:
            assert self.outer is not None
            found = self.outer[key]
            if self.selected is not None:
                found = found.take(self.selected)
            self.values[key] = found
        return found

    def split(self, selected: Array) -> ProgramFrame:
        """The frame of some of this frame's programs."""
        if len(selected) == len(self.programs):
            return self
        return ProgramFrame(self.programs[selected], self, selected)


class GridRun:
    """One launch: its arguments, its findings, and what runs blocks of ops for a group of programs."""

    joint = False  # whether others run at once, for which its programs give way (joint.py)
    circled: bool | None = None  # there: whether a turn of a `while` loop, the newest one, left what the loop carries as it was

    def __init__(
        self, function: func.FuncOp, grid: tuple[int, ...], args: Sequence[Any], memory: RefMemory, fusion: bool, budget: int,
        checks: frozenset[str] | None,
    ) -> None:
        self.function = function
        self.grid = (*grid, 1, 1, 1)[:3]
        if len(grid) > 3 or any(n < 0 for n in grid):
            raise LaunchError(f"a grid has up to three sizes of at least 0, got {grid}", "TFW0440")
        self.fusion = fusion
        self.budget = budget
        self.findings = FindingCollector(checks)
        self.access = BufferAccess(memory, self.findings, self.position)
        self.shared = SharedBuffers(self.findings, self.position)
        self.origins = Origins(self.findings, self.position) if any(map(self.findings.wants, CHECKS)) else None
        self.counters: dict[str, int] = {"programs": int(np.prod(self.grid)), "ops": 0, "elements": 0}
        self.clock_readings = 0
        self.arguments = self._bind(args)
        self.offset_ops: Container[Operation] = offset_arithmetic(function)
        stored = _stored_buffers(function, args)
        for buffer in memory.buffers.values():
            buffer.begin_launch(buffer.placed or buffer in stored)

    def position(self, program: int) -> tuple[int, int, int]:
        """A program's place in the grid; axis 0 runs fastest."""
        x, y, _ = self.grid
        return program % x, program // x % y, program // (x * y)

    def run(self, backwards: bool) -> None:
        count = self.counters["programs"]
        try:
            if backwards or order_matters(self.function):
                programs = range(count)
                run_round_robin(self._batch(program, program + 1) for program in (reversed(programs) if backwards else programs))
            else:
                for batch in self.batches(None):
                    to_end(batch)
        except OutOfBudget:
            pass

    def batches(self, size: int | None) -> Iterator[Run]:
        """The programs, so many at a time; None: as many as are quickest."""
        count = self.counters["programs"]
        if size is None:
            largest = max((_elements(result.type) for op in self.function.walk() for result in op.results), default=1)
            size = max(1, BATCH_ELEMENTS // largest)
        for start in range(0, count, size):
            yield self._batch(start, min(start + size, count))

    def gives_way(self, op: Operation, frame: ProgramFrame, results: Sequence[EvaluatedValue]) -> bool:
        """Whether others get a turn behind an op, where others run at once."""
        return False

    def _batch(self, start: int, end: int) -> Run:
        """The programs from `start` to below `end`, together."""
        frame = ProgramFrame(np.arange(start, end))
        frame.values.update(self.arguments)
        yield from self.block(self.function.body.block, frame)
        self.shared.end(frame.programs)

    def _bind(self, args: Sequence[Any]) -> dict[SSAValue, EvaluatedValue]:
        parameters = self.function.body.block.args
        if len(args) != len(parameters):
            name = self.function.sym_name.data
            raise LaunchError(f"{name} takes {len(parameters)} arguments, got {len(args)}", "TFW0440")
        return {parameter: _argument(value, parameter.type) for parameter, value in zip(parameters, args, strict=True)}

    def block(self, block: Block, frame: ProgramFrame) -> Results:
        """Run a block; gives the operands of its terminator."""
        values = frame.values
        for op in block.ops:
            handler = _HANDLERS.get(op.__class__)
            if handler is _terminate:
                return [frame[operand] for operand in op.operands]
            self._spend(op, frame)
            if handler is not None:
                results = handler(self, op, frame)
            elif (control := _CONTROL.get(op.__class__)) is not None:
                results = yield from control(self, op, frame)
            else:
                results = _handler_of(op)(self, op, frame)
            if self.origins is not None:
                self.origins.after(op, frame, results)
            for result, value in zip(op.results, results, strict=True):
                values[result] = value
            if self.joint and self.gives_way(op, frame, results):
                yield
        return []

    def _spend(self, op: Operation, frame: ProgramFrame) -> None:
        results = op.results
        elements = len(frame.programs) * (_elements(results[0].type) if results else 1)
        self.counters["ops"] += 1
        self.counters["elements"] += elements
        self.budget -= max(elements, _OP_COST)
        if self.budget < 0:
            self.findings.add(
                "budget", op, "the kernel did not end within its budget", program=self.position(int(frame.programs[0])),
                note=f"{self.counters['ops']} ops on {self.counters['elements']} elements ran",
            )
            raise OutOfBudget

    def decide(self, op: Operation, condition: EvaluatedValue, frame: ProgramFrame) -> Array:
        """A condition of control flow, one bool a program; one that rounding or the machine decides is reported."""
        if self.origins is not None:
            self.origins.decided(op, condition, frame.programs)
        if condition.free is not None:
            self.findings.add(
                "undecided", op, "control flow depends on a result that rounding or the machine decides", warning=True,
                program=self.position(int(frame.programs[0])),
            )
        return np.broadcast_to(condition.x, (len(frame.programs),))


def _argument(value: Any, type: Attribute) -> EvaluatedValue:
    if types.is_pointer(type):
        pointer = RefPointer(value) if isinstance(value, RefBuffer) else value
        if isinstance(pointer, int) and not isinstance(pointer, bool):
            return EvaluatedValue(np.array([pointer], np.int64))
        if not isinstance(pointer, RefPointer):
            raise LaunchError(f"a pointer parameter takes a buffer, got {value!r}", "TFW0440")
        return EvaluatedValue(np.array([pointer.address], np.int64))
    if isinstance(value, RefBuffer | RefPointer):
        raise LaunchError(f"a scalar parameter of type {type} takes a number, got a buffer", "TFW0440")
    return constant(value, types.dtype_of(type))


def _stored_buffers(function: func.FuncOp, args: Sequence[Any]) -> set[RefBuffer]:
    """The buffers that the kernel may store to: loads from the others race with nothing."""
    pointers = [a for a, parameter in zip(args, function.body.block.args, strict=True) if may_store(parameter)]
    buffers = [pointer.buffer if isinstance(pointer, RefPointer) else pointer for pointer in pointers]
    return {buffer for buffer in buffers if isinstance(buffer, RefBuffer)}


def _elements(type: Attribute) -> int:
    count = 1
    for dim in types.shape_of(type):
        count *= dim
    return count


def _terminate(launch: Any, op: Any, frame: Any) -> list[EvaluatedValue]:
    raise AssertionError("a terminator ends its block")


# Control flow ----------------------------------------------------------------------------------------------------------


def _if(launch: GridRun, op: scf.IfOp, frame: ProgramFrame) -> Results:
    chosen = launch.decide(op, frame[op.cond], frame)
    count = len(frame.programs)
    parts: list[tuple[Array, list[EvaluatedValue]]] = []
    for region, selected in ((op.true_region, np.flatnonzero(chosen)), (op.false_region, np.flatnonzero(~chosen))):
        block = region.blocks.first
        if len(selected):
            inner = frame.split(selected)
            parts.append((selected, [] if block is None else (yield from launch.block(block, inner))))
    return [merge([(s, values[i]) for s, values in parts], count) for i in range(len(op.results))]


def _for(launch: GridRun, op: scf.ForOp, frame: ProgramFrame) -> Results:
    count = len(frame.programs)
    lower, upper, step = (np.broadcast_to(frame[v].x, (count,)).astype(np.int64) for v in (op.lb, op.ub, op.step))
    for value in (op.lb, op.ub, op.step):
        if frame[value].free is not None:
            launch.decide(op, frame[value], frame)
    if (step <= 0).any():
        program = launch.position(int(frame.programs[0]))
        launch.findings.add("loop", op, f"a loop steps by {int(step.min())}; steps are positive", program=program)
    trips = np.where(step > 0, np.maximum(0, -((lower - upper) // np.maximum(step, 1))), 0)
    kind = numbers.int_type(types.dtype_of(op.lb.type).bits) if types.is_int(op.lb.type) else np.int64
    uniform = bool((lower == lower[0]).all() and (step == step[0]).all())

    def induction(programs: Array, iteration: int) -> EvaluatedValue:
        first = lower[:1] + iteration * step[:1] if uniform else lower[programs] + iteration * step[programs]
        return EvaluatedValue(first.astype(kind))

    return (yield from _iterate(launch, op.body.block, frame, [frame[v] for v in op.iter_args], trips, induction))


def _iterate(
    launch: GridRun, body: Block, frame: ProgramFrame, carried: list[EvaluatedValue], trips: Array,
    induction: Callable[[Array, int], EvaluatedValue],
) -> Results:
    """Run the body `trips` times for each program; programs that are done leave the group."""
    count = len(frame.programs)
    active = np.arange(count)
    done: list[tuple[Array, list[EvaluatedValue]]] = []
    iteration = 0
    run = object()
    while True:
        finished = trips[active] <= iteration
        if finished.any():
            leaving = np.flatnonzero(finished)
            done.append((active[leaving], [v.take(leaving) for v in carried]))
            staying = np.flatnonzero(~finished)
            active, carried = active[staying], [v.take(staying) for v in carried]
        if not len(active):
            break
        inner = ProgramFrame(frame.programs[active], frame, None if len(active) == count else active, (run, iteration))
        inner.values[body.args[0]] = induction(active, iteration)
        inner.values.update(zip(body.args[1:], carried, strict=True))
        carried = yield from launch.block(body, inner)
        iteration += 1
    return [merge([(programs, values[i]) for programs, values in done], count) for i in range(len(carried))]


def _while(launch: GridRun, op: scf.WhileOp, frame: ProgramFrame) -> Results:
    count = len(frame.programs)
    active = np.arange(count)
    carried = [frame[v] for v in op.arguments]
    done: list[tuple[Array, list[EvaluatedValue]]] = []
    before, after = op.before_region.block, op.after_region.block
    while len(active):
        launch._spend(op, frame)
        began, clock = carried, launch.clock_readings
        selected = None if len(active) == count else active
        atomics, changes = launch.access.atomics, launch.access.changes
        inner = ProgramFrame(frame.programs[active], frame, selected, (object(), 0))
        inner.values.update(zip(before.args, carried, strict=True))
        condition, *forwarded = yield from launch.block(before, inner)
        going = launch.decide(op, condition, inner)
        leaving, staying = np.flatnonzero(~going), np.flatnonzero(going)
        if len(leaving):
            done.append((active[leaving], [v.take(leaving) for v in forwarded]))
            active, forwarded = active[staying], [v.take(staying) for v in forwarded]
        if not len(active):
            break
        inner = ProgramFrame(frame.programs[active], frame, None if len(active) == count else active, (object(), 0))
        inner.values.update(zip(after.args, forwarded, strict=True))
        carried = yield from launch.block(after, inner)
        if launch.joint:
            alike = all(np.array_equal(a.x, b.x) for a, b in zip(began, carried, strict=True))
            launch.circled = alike and clock == launch.clock_readings
        if launch.joint or (launch.access.atomics != atomics and launch.access.changes == changes):
            yield  # atomics that change nothing, again and again: it waits for what another program does
    return [merge([(programs, values[i]) for programs, values in done], count) for i in range(len(op.results))]


_HANDLERS: dict[type[Operation], Handler] = {
    **HANDLERS,
    **SHARED_HANDLERS,
    scf.YieldOp: _terminate,
    scf.ConditionOp: _terminate,
    func.ReturnOp: _terminate,
}


_CONTROL: dict[type[Operation], Callable[[GridRun, Any, ProgramFrame], Results]] = {
    scf.IfOp: _if, scf.ForOp: _for, scf.WhileOp: _while,
}


def _handler_of(op: Operation) -> Handler:
    if isinstance(op, ElementwiseOp):
        return elementwise
    if isinstance(op, StructuralOp):
        return structural
    raise IRError(f"the reference interpreter does not execute {op.name}", "TFW0405", place_of(op))


__all__ = ["GridRun", "OutOfBudget", "ProgramFrame", "RefBuffer", "RefMemory", "RefPointer", "RefReport", "find_entry", "run"]
