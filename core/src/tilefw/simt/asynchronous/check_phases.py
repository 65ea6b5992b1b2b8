"""Checks the phases of engines' copies by running a function's loops a few times, with numbers where slots and parities are known.

In any number of iterations a wait is for the phase that comes next at its barrier, somebody has arrived for it, nobody arrives for
the phase after one that was not waited for, what an arrival announces is what copies bring, under the same condition, and no phase
is left without a wait.
Nothing here is shared with the pass that places phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.simt import lane
from tilefw.simt.lane.violation import violation
from tilefw.tile.nested_ops import nested_ops

_ROWS: Mapping[str, Callable[..., int]] = {
    "lane.addi": lambda a, b: a + b, "lane.subi": lambda a, b: a - b, "lane.muli": lambda a, b: a * b,
    "lane.lts": lambda a, b: int(a < b), "lane.eqi": lambda a, b: int(a == b), "lane.select": lambda c, a, b: a if c else b,
}


@dataclass(frozen=True)
class CheckPhases(ModulePass):
    """Raises InternalError for a phase that is wrong in some number of iterations."""

    name = "check-phases"
    level: ClassVar[str] = "lane"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                check_phases(function)


def check_phases(function: FuncOp) -> None:
    """Run one function with loops of none, few and many iterations; only those with copies by engines."""
    inner = nested_ops(function)
    if not any(type(op) is lane.BulkCopyOp for op in inner):
        return
    number = max(op.number for op in inner if isinstance(op, lane.BeginBarriersOp))
    for iterations in (0, 1, 2, 2 * number + 1):
        run = _PhaseRun(iterations)
        run.block(function.body.block)
        left = next((at for at, barrier in run.barriers.items() if barrier.arrivals != barrier.waits), None)
        if left is not None:
            raise violation(f"the kernel ends before anybody waits for a phase of the barrier at {left}", function)


@dataclass(slots=True)
class _CountedBarrier:
    """Phases that were arrived for and waited for; the bytes that the last arrival announced and that copies brought since."""

    arrivals: int = 0
    waits: int = 0
    announced: int = 0
    brought: int = 0
    condition: SSAValue | None = None  # where those bytes are announced; None where they always are


@dataclass(slots=True)
class _PhaseRun:
    iterations: int
    values: dict[SSAValue, int] = field(default_factory=dict)
    barriers: dict[int, _CountedBarrier] = field(default_factory=dict)

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, lane.BeginBarriersOp):
                owner = op.operands[0].owner
                assert isinstance(owner, lane.AllocOp)
                size = owner.bytes // op.number
                self.barriers |= {self.known(op.operands[0], op) + size * i: _CountedBarrier() for i in range(op.number)}
            elif isinstance(op, lane.ArriveOp):
                self.arrive(op)
            elif isinstance(op, lane.BulkCopyOp):
                self.copy(op)
            elif isinstance(op, lane.WaitPhaseOp):
                self.wait(op)
            elif isinstance(op, ForOp):
                self.loop(op)
            elif isinstance(op, lane.AllocOp):
                self.values[op.results[0]] = op.offset or 0
            elif isinstance(op, lane.ConstantOp) and isinstance(op.value, int):
                self.values[op.results[0]] = op.value
            elif op.name in _ROWS and all(value in self.values for value in op.operands):
                self.values[op.results[0]] = _ROWS[op.name](*(self.values[value] for value in op.operands))

    def loop(self, op: ForOp) -> None:
        body = op.body.block
        last = body.last_op
        assert last is not None
        carried = [self.values.get(value) for value in op.iter_args]
        for _ in range(self.iterations):
            self.bind(body.args[1:], carried)
            self.values.pop(body.args[0], None)
            for inside in body.ops:  # of an iteration before
                for result in inside.results:
                    self.values.pop(result, None)
            self.block(body)
            carried = [self.values.get(value) for value in last.operands]
        self.bind(op.results, carried)

    def bind(self, names: tuple[SSAValue, ...] | list[SSAValue], numbers: list[int | None]) -> None:
        for name, number in zip(names, numbers, strict=True):
            if number is None:
                self.values.pop(name, None)
            else:
                self.values[name] = number

    def arrive(self, op: lane.ArriveOp) -> None:
        found = self.at(op.address, op)
        if found.arrivals != found.waits:
            raise violation("the phase before was not waited for, where copies are announced", op)
        found.arrivals += 1
        found.announced, found.brought = self.announced(op), 0
        announced = op.part("announced")
        found.condition = None if announced is None else announced.owner.operands[0]  # type: ignore[union-attr]

    def copy(self, op: lane.BulkCopyOp) -> None:
        """It is made where its bytes are announced: under that condition, or by the first thread in any case."""
        found, when = self.at(op.needed("barrier"), op), op.needed("when")
        if when is not found.condition and (found.condition is not None or not _is_first_thread(when)):
            raise violation("a copy is made under another condition than its bytes are announced", op)
        found.brought += op.bytes

    def announced(self, op: lane.ArriveOp) -> int:
        """The bytes where the copies are made: those of the arrival, or the choice that is not nothing."""
        value = op.part("announced")
        if value is None:
            return op.bytes
        owner = value.owner
        assert isinstance(owner, Operation)
        return max(self.values.get(operand, 0) for operand in owner.operands)

    def wait(self, op: lane.WaitPhaseOp) -> None:
        found = self.at(op.address, op)
        if found.arrivals <= found.waits:
            raise violation("a wait for a phase that nobody arrives for", op)
        if self.known(op.parity, op) != found.waits % 2:
            raise violation("a wait for the parity of another phase", op)
        if found.announced != found.brought:
            raise violation(f"{found.announced} bytes are announced, and {found.brought} copied", op)
        found.waits += 1

    def at(self, address: SSAValue, op: Operation) -> _CountedBarrier:
        found = self.barriers.get(self.known(address, op))
        if found is None:
            raise violation("there is no barrier where one is used", op)
        return found

    def known(self, value: SSAValue, op: Operation) -> int:
        if value not in self.values:
            raise violation("a barrier or parity that is not known", op)
        return self.values[value]


def _is_first_thread(when: SSAValue) -> bool:
    owner = when.owner
    if not isinstance(owner, Operation) or owner.name != "lane.eqi":
        return False
    thread, number = (operand.owner for operand in owner.operands)
    return isinstance(thread, lane.ThreadIdOp) and isinstance(number, lane.ConstantOp) and number.value == 0
