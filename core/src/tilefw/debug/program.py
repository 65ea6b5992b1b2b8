"""One program under the debugger: ops are carried out as the front end makes them, and their values stand in the kernel's names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.errors import LaunchError
from tilefw.debug.eager_tile import EagerTile, HeldValue
from tilefw.debug.stepped import SteppedLaunch, WaitingProgramError
from tilefw.frontend import arithmetic
from tilefw.frontend.attributes import BoundMethod, LogicalMethod, attribute
from tilefw.frontend.builder import Builder
from tilefw.frontend.casts import to_value
from tilefw.frontend.values import RuntimeValue, transform
from tilefw.language.constants import unwrap
from tilefw.runtime.diagnostics import check_error
from tilefw.tile.reference.value import EvaluatedValue


class EagerBuilder(Builder):
    """Ops are carried out at once; those of a block inside another op, such as a combine function's, with that op."""

    __slots__ = ("_outermost", "program")

    def __init__(self, program: EagerProgram) -> None:
        super().__init__(Block(), debug=True)
        self._outermost = self.block
        self.program = program

    def insert(self, op: Operation) -> Operation:
        if self.block is not self._outermost:
            return super().insert(op)
        op.location = self.location
        self.program.carry_out(op)
        return op

    def print(self, prefix: str, values: Sequence[RuntimeValue], elements: Sequence[str], hex: bool) -> None:
        place = ", ".join(map(str, self.program.position))
        shown = "".join(f"{self.program.spelled(value, hex)} " for value in values)
        print(f"program ({place}):{prefix}{shown}".rstrip())


class EagerProgram:
    """The state of one program of a launch: `made` has the values that ops made since the kernel's code was last run, and what its
    names hold is kept by them."""

    def __init__(self, launch: SteppedLaunch, number: int) -> None:
        self.launch = launch
        self.number = number
        self.position = launch.position(number)
        self.made: dict[SSAValue, EvaluatedValue] = dict(launch.arguments)
        self.builder = EagerBuilder(self)
        self.visitor: Any = None
        self.branched = False  # whether a condition of run time has been decided: what follows, another program may not come to
        self._held: WeakValueDictionary[SSAValue, HeldValue] = WeakValueDictionary()
        self._still = launch.stillness
        launch.begin(number, self.value)

    def value(self, ssa: SSAValue) -> EvaluatedValue:
        """What an op or the launch gave a value."""
        found = self.made.get(ssa)
        return self._held[ssa].value if found is None else found

    def carry_out(self, op: Operation) -> None:
        """Evaluate an op as the reference does. Raises CheckError for a fault that its checks find, LaunchError TFW0354."""
        try:
            results = self.launch.step(op)
        except WaitingProgramError:
            raise self.waiting() from None
        errors = [finding for finding in self.launch.findings if finding.severity == "error"]
        if errors:
            raise check_error(errors)
        self.made.update(zip(op.results, results, strict=True))
        op.operands = ()  # else what lives on, the arguments for the whole launch, would keep every op that has read it

    def waiting(self) -> LaunchError:
        """The error for a program that waits for another one."""
        return LaunchError(
            f"program {self.position} waits for another program of the launch", "TFW0354",
            note="under the debugger programs run one after the other, each to its end",
            help="run the kernel on `reference`, where programs take turns",
        )

    def presented(self, value: Any) -> Any:
        """A value of the front end as the kernel's names have it."""
        if isinstance(value, BoundMethod):
            return BoundMethod(value.function, self.presented(value.value))
        return transform(value, self._tile)

    def _tile(self, leaf: Any) -> Any:
        if not isinstance(leaf, RuntimeValue) or isinstance(leaf, EagerTile):
            return leaf
        held = self._held.get(leaf.ssa)
        if held is None:
            held = self._held[leaf.ssa] = HeldValue(self.value(leaf.ssa))
        return EagerTile(leaf.ssa, leaf.type, held, self)

    def forget(self) -> None:
        """What ops made on the way to values that names hold is no longer needed."""
        self.made = dict(self.launch.arguments)

    def went_round(self) -> None:
        """A `while` begins another round. Raises LaunchError TFW0354 where atomics of many rounds changed nothing."""
        (atomics, changes), self._still = self._still, self.launch.stillness
        if self._still[0] != atomics and self._still[1] == changes:
            try:
                self.launch.waits()
            except WaitingProgramError:
                raise self.waiting() from None

    # -- what tiles do by themselves, at a debugger's prompt or in the user's Python

    def operated(self, symbol: str, left: Any, right: Any) -> Any:
        """One operator on values."""
        return self.presented(arithmetic.BINARY[symbol](self.builder, left, right))

    def attribute_of(self, tile: EagerTile, name: str) -> Any:
        """`tile.name`: a fact, or a method that is called at once."""
        found = attribute(self.builder, tile, name)
        if isinstance(found, LogicalMethod):
            return lambda other: self.presented(arithmetic.logical(self.builder, found.word, tile, to_value(self.builder, other)))
        if not isinstance(found, BoundMethod):
            return self.presented(found)
        return lambda *args, **keywords: self.called(found.function, (tile, *args), keywords)

    def called(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A function of the language, called by Python."""
        frame = self.visitor.frame
        call = ast.copy_location(ast.Call(ast.Name(function.__name__, ast.Load()), [], []), frame.source.tree)
        return self.visitor.invoke(call, function, [unwrap(value) for value in args], keywords)

    def decided(self, value: RuntimeValue) -> bool:
        """A scalar, or a tile of one element, as a condition. Raises CompileError TFW0118."""
        condition = self.visitor.condition(value)
        self.branched = True
        return bool(np.ravel(self.value(condition.ssa).x)[0])

    def spelled(self, value: RuntimeValue, hex: bool = False) -> str:
        """The elements of a value as text."""
        tile = self._tile(value)
        found = tile.numpy()
        if hex or tile.dtype.is_ptr():
            return np.array2string(found, formatter={"int": lambda number: f"0x{int(number):x}"})
        return str(found)
