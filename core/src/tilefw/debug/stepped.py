"""A launch whose ops are handed over one at a time, for a program whose code runs elsewhere: under a debugger of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefw.api.device import DEFAULT_BUDGET, Finding
from tilefw.tile.offset_arithmetic import AnyOffsetArithmetic
from tilefw.tile.reference.interpret import GridRun, OutOfBudget, ProgramFrame
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.reference.value import EvaluatedValue

_WAITS = 200  # rounds in which atomics changed nothing: what a program waits for never comes

Known = Callable[[SSAValue], EvaluatedValue]


class WaitingProgramError(Exception):
    """A program waits for what another one does, which runs later or is at its end."""


class _KnownElsewhere(ProgramFrame):
    """A frame whose values somebody else keeps."""

    __slots__ = ("known",)

    def __init__(self, program: int, known: Known) -> None:
        super().__init__(np.array([program]))
        self.known = known

    def __getitem__(self, key: SSAValue) -> EvaluatedValue:
        found = self.values.get(key)
        return self.known(key) if found is None else found


class SteppedLaunch:
    """One launch, program after program: `begin` one, `step` through its ops, `end` it.

    `arguments` are the values of the parameters, in order. Values live as long as whoever `known` asks for them keeps them.
    """

    def __init__(
        self, parameters: Sequence[Attribute], grid: tuple[int, ...], args: Sequence[Any], *, memory: RefMemory,
        fusion: bool = True, budget: int = DEFAULT_BUDGET,
    ) -> None:
        block = Block(arg_types=parameters)
        function = func.FuncOp("program", FunctionType.from_lists(parameters, []), Region(block))
        self._run = GridRun(function, grid, args, memory, fusion, budget, None)
        self._run.offset_ops = AnyOffsetArithmetic()
        for buffer in memory.buffers.values():
            buffer.begin_launch(True)  # which ones a program stores to is seen when it does
        self.arguments: dict[SSAValue, EvaluatedValue] = {a: self._run.arguments[a] for a in block.args}
        self.programs = self._run.counters["programs"]
        self._frame: ProgramFrame | None = None
        self._waits = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks found so far."""
        return self._run.findings.found

    def position(self, program: int) -> tuple[int, int, int]:
        """A program's place in the grid."""
        return self._run.position(program)

    def begin(self, program: int, known: Known) -> None:
        """Run the ops that come next in a program; `known` gives what earlier ops made."""
        self._frame = _KnownElsewhere(program, known)
        self._waits = 0

    def step(self, op: Operation) -> list[EvaluatedValue]:
        """Carry out one op with its regions; gives its results. Raises WaitingProgramError."""
        assert self._frame is not None
        self._frame.values.clear()
        try:
            for _ in self._run.block(Block([op]), self._frame):
                self.waits()
        except OutOfBudget:
            return [self._frame.values[result] for result in op.results if result in self._frame.values]
        return [self._frame.values[result] for result in op.results]

    @property
    def stillness(self) -> tuple[int, int]:
        """The atomics carried out, and those that changed memory."""
        return self._run.access.atomics, self._run.access.changes

    def waits(self) -> None:
        """The program went round a loop with atomics that changed nothing. Raises WaitingProgramError when it has done so often."""
        self._waits += 1
        if self._waits > _WAITS:
            raise WaitingProgramError

    def end(self) -> None:
        """The program has returned."""
        assert self._frame is not None
        self._run.shared.end(self._frame.programs)
        self._frame = None
