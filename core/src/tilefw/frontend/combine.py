"""Combine functions of reductions and scans: built as elementwise ops on scalars in a block of their own, and nothing else.

The compiler runs a combine function on pairs of elements or of partial results, in any order, at once in all lanes. So it
must only compute; what else it does is refused at the user's line. Its branches become choices between both results.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.builder import Builder
from tilefw.frontend.values import RuntimeValue, describe, lowered, named
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done to tiles by a combine function, in the words of messages."""

    does: str
    done: str
    noun: str


REDUCE = Deed("reduces", "reduced", "reduction")
SCAN = Deed("scans", "scanned", "scan")

# From n values of one group and n of the next to n results: a Value, or a tuple of them.
Combine = Callable[[Builder, Sequence[RuntimeValue]], Any]

_REFUSED = {
    "tile.load": "read memory", "tile.store": "write memory", "tile.barrier": "wait at a barrier",
    "tile.program_id": "ask for the program's place in the grid", "tile.num_programs": "ask for the extent of the grid",
    "tile.addptr": "compute addresses",
    "tile.print": "print", "tile.observe": "ask what the machine knows", "tile.inline_asm": "run inline assembly",
    "scf.for": "loop at run time", "scf.while": "loop at run time",
    "scf.yield": "loop at run time", "scf.condition": "loop at run time",
}


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion of a debug build: an int1 that is true where it fails, what it says and where it stands."""

    fails: RuntimeValue
    message: str
    location: LocationAttr
    block: Block


class CombineBuilder(Builder):
    """Appends the ops of a combine function, and refuses all that are not elementwise on scalars.

    An assertion only computes whether it fails: whoever runs the function collects that and stops the program behind it.

    Tiles of one element may be made, to ask for their type; nothing that may be done leads from them to a result, so that
    `without_tiles` takes them out in the end.
    """

    __slots__ = ("assertions",)
    # What is built, for messages: what it is called, and why it may only compute.
    builds = "a combine function"
    reason = "it runs on pairs of elements, in any groups and in all lanes at once, so it may only compute with scalars"
    instead: Mapping[str, str] = MappingProxyType({
        "read memory": "load before, and combine the loaded tile along with the others: `(x, y)` instead of `x`",
        "loop at run time": "unroll the loop with tl.static_range",
    })

    def __init__(self, block: Block, debug: bool = False) -> None:
        super().__init__(block, debug)
        self.assertions: list[Assertion] = []

    def trap_where(self, fails: RuntimeValue, message: str) -> None:
        self.assertions.append(Assertion(fails, message, self.location, self.block))

    def insert(self, op: Operation) -> Operation:
        computes = isinstance(op, ElementwiseOp) or op.name == "tile.constant"
        if (computes and types.is_tile(op.results[0].type)) or op.name == "tile.splat":
            computes = math.prod(types.shape_of(op.results[0].type)) == 1
        if not computes:
            deed = _REFUSED.get(op.name, "work on tiles")
            raise CompileError(
                f"{self.builds} cannot {deed}",
                "TFW0215",
                note=self.reason,
                help=self.instead.get(deed),
            )
        return super().insert(op)

    def branch(
        self, condition: RuntimeValue, then: Block, otherwise: Block, results: Sequence[tuple[RuntimeValue, RuntimeValue]]
    ) -> list[SSAValue]:
        """Both sides are computed, since they only compute, and each result is chosen."""
        for block in (then, otherwise):
            for op in list(block.ops):
                op.detach()
                self.block.add_op(op)
        self._keep_assertions(condition, then, otherwise)
        return [self.row("select", condition, left, right).ssa for left, right in results]

    def _keep_assertions(self, condition: RuntimeValue, then: Block, otherwise: Block) -> None:
        """What one side asserts fails only where the condition chooses that side."""
        for index, found in enumerate(self.assertions):
            if found.block is then or found.block is otherwise:
                chosen = condition if found.block is then else self.row("xori", condition, self.constant(1, tl.int1, ()))
                fails = self.row("andi", found.fails, chosen)
                self.assertions[index] = replace(found, fails=fails, block=self.block)


@dataclass(frozen=True, slots=True)
class UserCombine:
    """A jit function of the user's as combine function; `inline` builds its body with a builder and gives what it returns."""

    kernel: Any
    inline: Callable[[Builder, list[RuntimeValue]], Any]
    deed: Deed = REDUCE

    def __call__(self, b: Builder, arguments: Sequence[RuntimeValue]) -> tuple[RuntimeValue, ...]:
        self._check_parameters(len(arguments))
        result = self.inline(b, list(arguments))
        results = result if isinstance(result, tuple) else (result,)
        wanted = [argument.dtype for argument in arguments[: len(arguments) // 2]]
        if len(results) != len(wanted):
            tiles = "a tile is" if len(wanted) == 1 else f"{len(wanted)} tiles are"
            raise self._mistake(
                f"returns {_count(len(results), 'value')}, but {tiles} {self.deed.done}",
                "a combine function returns one value for each tile, in their order",
            )
        for index, (found, element) in enumerate(zip(results, wanted, strict=True)):
            if not isinstance(found, RuntimeValue) or found.is_tile or found.dtype != element:
                self._refuse_result(index, found, element)
        return tuple(results)

    def _check_parameters(self, count: int) -> None:
        parameters = list(self.kernel.signature.parameters.values())
        if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            return  # it takes any number; what is missing is told where jit functions are inlined
        needed = sum(p.default is inspect.Parameter.empty for p in parameters)
        positional = sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters)
        if not needed <= count <= positional:
            raise self._mistake(
                f"takes {_count(positional, 'argument')}, but is called with {count}",
                f"a {self.deed.noun} of {_count(count // 2, 'tile')} passes {count // 2} of one group, then as many of the next",
            )

    def _refuse_result(self, index: int, found: Any, element: tl.dtype) -> None:
        which = "" if index == 0 else f" as value {index}"
        help = f"cast it: `.to(tl.{element.codegen_name()})`" if isinstance(found, RuntimeValue) and not found.is_tile else None
        raise self._mistake(
            f"returns {'nothing' if found is None else named(found)}{which}, where {element} is {self.deed.done}",
            f"a combine function returns the element types of the {self.deed.done} tiles, for its results are combined again",
            help,
        )

    def _mistake(self, message: str, note: str, help: str | None = None) -> CompileError:
        line = self.kernel.source.tree.lineno
        return CompileError(f"combine function `{self.kernel.__name__}` (line {line}) {message}", "TFW0214", note=note, help=help)


def user_combine(function: str, inputs: tuple[Any, ...], combine: Any, deed: Deed) -> UserCombine:
    """What was passed to tl.`function` as combine_fn, for a tuple of tiles; raises for anything but a jit function."""
    if not isinstance(combine, UserCombine):
        raise not_a_combine_function(combine)
    if not inputs:
        raise CompileError(f"tl.{function} takes a tile or a tuple of tiles, not an empty tuple", "TFW0201")
    return replace(combine, deed=deed)


def combinable(function: str, value: Any, deed: Deed = REDUCE) -> RuntimeValue:
    """A tile of numbers; raises for anything else."""
    scalar = isinstance(value, RuntimeValue)
    if not isinstance(value, RuntimeValue) or not value.is_tile:
        raise CompileError(
            f"tl.{function} {deed.does} tiles, not {named(value)}",
            "TFW0201",
            help="for two scalars use tl.minimum, tl.maximum or an operator" if scalar and deed is REDUCE else None,
        )
    if value.dtype.is_ptr():
        raise CompileError(f"tl.{function} {deed.does} numbers, not pointers", "TFW0201")
    return value


def combinables(function: str, inputs: Sequence[Any], deed: Deed = REDUCE) -> list[RuntimeValue]:
    """Tiles of numbers of one shape; raises for anything else."""
    tiles = [combinable(function, value, deed) for value in inputs]
    shape = tiles[0].shape
    for tile in tiles[1:]:
        if tile.shape != shape:
            raise CompileError(
                f"tl.{function} takes tiles of one shape, not {list(shape)} and {list(tile.shape)}",
                "TFW0202",
                help="bring them to one shape with tl.broadcast",
            )
    return tiles


def not_a_combine_function(value: Any) -> CompileError:
    """For what is passed as combine_fn and is not a jit function."""
    return CompileError(
        f"combine_fn is a jit function, not {describe(value) if not callable(value) else f'`{_name(value)}`'}",
        "TFW0214",
        help="write a function of two elements and decorate it with @tilefw.jit",
    )


@dataclass(frozen=True, slots=True)
class Combination:
    """A block that combines two groups of values, without its terminator, its results, and what it asserts."""

    block: Block
    results: list[RuntimeValue]
    assertions: list[Assertion]


def combine_block(b: Builder, elements: Sequence[tl.dtype], combine: Combine) -> Combination:
    """The block that combines two groups of values of `elements`.

    Behind the values of each group stands an int1 for each assertion, whether it failed in what the group was made of.
    """
    block = Block(arg_types=[lowered(element) for element in (*elements, *elements)])
    inner = CombineBuilder(block, b.debug)
    inner.location, inner.steps = b.location, b.steps
    found = combine(inner, [RuntimeValue(ssa, type) for ssa, type in zip(block.args, (*elements, *elements), strict=True)])
    b.steps = inner.steps
    results = list(found) if isinstance(found, tuple) else [found]
    for assertion in inner.assertions:
        first = RuntimeValue(block.insert_arg(lowered(tl.int1), len(results)), tl.int1)
        second = RuntimeValue(block.insert_arg(lowered(tl.int1), len(block.args)), tl.int1)
        results.append(inner.row("ori", assertion.fails, inner.row("ori", first, second)))
    without_tiles(block)
    return Combination(block, results, inner.assertions)


def assertions_stop(b: Builder, assertions: Sequence[Assertion], failed: Sequence[RuntimeValue]) -> None:
    """Stop the program, at the place of each assertion, where any element of what was collected of it is true."""
    after = b.location
    for assertion, fails in zip(assertions, failed, strict=True):
        b.location = assertion.location
        b.trap_where(fails, assertion.message)
    b.location = after


def without_tiles(block: Block) -> None:
    """Take out what was computed in tiles of one element."""
    for op in reversed(list(block.ops)):
        if types.is_tile(op.results[0].type):
            op.detach()
            op.erase()


def _name(value: Any) -> str:
    return getattr(value, "__tilefw_builtin__", None) or getattr(value, "__name__", repr(value))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
