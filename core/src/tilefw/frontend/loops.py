"""Run-time loops: `for` over range as `scf.for`, `while` as `scf.while`, and what they carry from one iteration to the next.

Carried is every name that the body assigns and that had a value before. Names first assigned in the body are gone after
the loop, since it may run zero times.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend.arithmetic import add, subtract
from tilefw.frontend.builder import name_value
from tilefw.frontend.calls import Calls
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.constructs import unsupported
from tilefw.frontend.continuation import assigned_names
from tilefw.frontend.semantics import not_constexpr, promote_integers
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, flatten, leaves, lowered, named, rebuild, same_type
from tilefw.language.constants import unwrap

UNROLL_LIMIT = 65536
# The wishes of tl.range that are numbers; the others are flags.
_COUNTS = ("num_stages", "loop_unroll_factor")


class CarriedNames:
    """The names that a loop carries, their values before it, and the block arguments that stand for them inside."""

    __slots__ = ("before", "initial", "names")

    def __init__(self, names: Sequence[str], values: dict[str, Any]) -> None:
        self.names = list(names)
        self.before = {name: values[name] for name in names}
        self.initial = [leaf for name in names for leaf in flatten(values[name])]

    def hints(self) -> list[str]:
        return [name for name in self.names for _ in flatten(self.before[name])]


class LoopStatements(Calls):
    """The visitor of run-time loops."""

    def run_block(self, statements: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def loop_head(self, node: ast.For) -> Any:
        """What a `for` goes over: an instance of range, tl.range or tl.static_range."""
        if not isinstance(node.iter, ast.Call):
            raise self._no_iterator(node)
        function = self.expression(node.iter.func)
        args, keywords = self._arguments(node.iter)
        head = self.head_of(node, function, args, keywords)
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target, "a loop variable that is not a plain name")
        return head

    def head_of(self, node: ast.For, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """The range that a function of a `for` makes of its arguments."""
        function = unwrap(function)
        if function not in (builtins.range, tl.range, tl.static_range):
            raise self._no_iterator(node)
        assert isinstance(node.iter, ast.Call)
        self.frame.at(node.iter)
        if function is builtins.range:
            if not 1 <= len(args) <= 3:
                raise CompileError("range takes one to three arguments", "TFW0107", self.frame.place(node.iter))
            function = tl.range
        return self.invoke(node.iter, function, args, keywords)

    def _no_iterator(self, node: ast.For) -> CompileError:
        return CompileError(
            "a kernel's `for` goes over range, tl.range or tl.static_range only",
            "TFW0102",
            self.frame.place(node.iter),
            help="go over indices: `for i in tl.static_range(len(items))`",
        )

    def run_time_for(self, node: ast.For, head: tl.range) -> None:
        """One `scf.for`. A negative constexpr step counts the same steps upwards and mirrors the induction variable."""
        b, scope = self.frame.b, self.frame.scope
        start, end, step, mirrored = self.bounds(node, head)
        assert isinstance(node.target, ast.Name)  # loop_head refuses any other
        name = node.target.id
        assigned = assigned_names(node.body)
        carried = self._carried(assigned, {name})
        block = Block(arg_types=[lowered(start.type), *[lowered(leaf.type) for leaf in carried.initial]])
        before = scope.snapshot()
        with b.inside(block):
            induction = RuntimeValue(block.args[0], start.type)
            if mirrored:
                induction = add(b, subtract(b, end, induction), start)
            name_value(induction.ssa, name)
            self._enter(carried, block.args[1:])
            scope.locals[name] = induction
            scope.lines[name] = node.target.lineno
            self.run_block(node.body)
            self.frame.at(node)
            final = self._leave(node, carried)
        kept = _prune(carried, [block.args[1:]], final)
        with b.inside(block):
            b.insert(scf.YieldOp(*[final[i] for i in kept]))
        op = scf.ForOp(start.ssa, end.ssa, step.ssa, [carried.initial[i].ssa for i in kept], Region(block))
        for wish, value in head.wishes.items():
            attribute = _wish(wish, value)
            if attribute is not None:
                op.attributes[f"tile.{wish}"] = attribute
        b.insert(op)
        scope.restore(before)
        self._after(node, carried, kept, list(op.results), {**assigned, name: node.lineno})
        scope.locals.pop(name, None)

    def bounds(self, node: ast.For, head: tl.range) -> tuple[RuntimeValue, RuntimeValue, RuntimeValue, bool]:
        """Start, end and step of a run-time loop as integers of one type, and whether it counts them backwards."""
        b, step = self.frame.b, head.step
        if isinstance(step, int) and step == 0:
            raise CompileError("the step of a loop must not be 0", "TFW0212", self.frame.place(node.iter))
        mirrored = isinstance(step, int) and step < 0
        bounds = (head.end, head.start, -step) if mirrored else (head.start, head.end, step)
        values = [to_value(b, bound) for bound in bounds]
        for word, value in zip(("start", "end", "step"), values, strict=True):
            if value.is_tile or not value.dtype.is_int():
                place = self.frame.place(node.iter)
                raise CompileError(f"the {word} of a loop must be an integer scalar, not {named(value)}", "TFW0201", place)
        type = promote_integers(promote_integers(values[0].dtype, values[1].dtype), values[2].dtype)
        start, end, step = (cast(b, value, type) for value in values)
        return start, end, step, mirrored

    def run_time_while(self, node: ast.While) -> None:
        """One `scf.while`: the condition is built in its first region, the body in its second."""
        b, scope = self.frame.b, self.frame.scope
        before = scope.snapshot()
        assigned = assigned_names([node.test, *node.body])
        carried = self._carried(assigned, set())
        types = [lowered(leaf.type) for leaf in carried.initial]
        test, body = Block(arg_types=types), Block(arg_types=types)
        with b.inside(test):
            self._enter(carried, test.args)
            condition = self._loop_condition(node)
            if condition is None:
                scope.restore(before)
                return
            after_test = [leaf.ssa for name in carried.names for leaf in flatten(scope.locals[name])]
        scope.restore(before)
        with b.inside(body):
            self._enter(carried, body.args)
            self.run_block(node.body)
            self.frame.at(node)
            final = self._leave(node, carried)
        changed = any(value is not argument for value, argument in zip(after_test, test.args, strict=True))
        kept = list(range(len(final))) if changed else _prune(carried, [test.args, body.args], final)
        with b.inside(test):
            b.insert(scf.ConditionOp(condition.ssa, *[after_test[i] for i in kept]))
        with b.inside(body):
            b.insert(scf.YieldOp(*[final[i] for i in kept]))
        arguments = [carried.initial[i].ssa for i in kept]
        op = scf.WhileOp(arguments, [value.type for value in arguments], Region(test), Region(body))
        b.insert(op)
        scope.restore(before)
        self._after(node, carried, kept, list(op.results), assigned)

    def _loop_condition(self, node: ast.While) -> RuntimeValue | None:
        """The condition as int1; None for a loop that never runs."""
        condition = self.expression(node.test)
        if isinstance(condition, tl.condition):
            condition = condition.condition
        self.frame.at(node.test)
        if isinstance(condition, RuntimeValue):
            return self.condition(condition)
        if condition:
            raise CompileError(
                "this loop never ends: its condition is true at compile time",
                "TFW0118",
                self.frame.place(node.test),
                help="kernels have no `break`; put into the condition what ends the loop",
            )
        return None

    def _carried(self, assigned: Iterable[str], ignored: set[str]) -> CarriedNames:
        values = self.frame.scope.locals
        names = [name for name in assigned if name in values and name not in ignored]
        return CarriedNames(names, values)

    def _enter(self, carried: CarriedNames, arguments: Sequence[SSAValue]) -> None:
        """Let the carried names stand for a block's arguments."""
        standing = iter(arguments)
        for name in carried.names:
            self.frame.scope.locals[name] = rebuild(carried.before[name], standing)
        for argument, name in zip(arguments, carried.hints(), strict=True):
            name_value(argument, name)

    def _leave(self, node: ast.For | ast.While, carried: CarriedNames) -> list[SSAValue]:
        """The carried values at the end of the body, checked against those before the loop."""
        scope, final = self.frame.scope, []
        for name in carried.names:
            before, after = carried.before[name], scope.locals.get(name)
            if not same_type(before, after) and not self._unrolled_variable(node, name, before, after):
                raise self._type_change(node, name, before, after)
            final += [leaf.ssa for leaf in flatten(after)] if same_type(before, after) else []
        return final

    def _unrolled_variable(self, node: ast.For | ast.While, name: str, before: Any, after: Any) -> bool:
        """Whether a compile-time name only counts an unrolled loop inside the body, so that its value carries nothing."""
        if any(isinstance(leaf, RuntimeValue) for leaf in (*leaves(before), *leaves(after))):
            return False
        targets = {t.target.id for s in node.body for t in ast.walk(s) if isinstance(t, ast.For) and isinstance(t.target, ast.Name)}
        return name in targets

    def _type_change(self, node: ast.For | ast.While, name: str, before: Any, after: Any) -> CompileError:
        line = assigned_names(node.body).get(name, node.lineno)
        place = next((self.frame.place(n) for s in node.body for n in ast.walk(s)
                      if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name and n.lineno == line), None)
        if name in self.frame.scope.gone:
            reason = self.frame.scope.gone[name]
            return CompileError(f"`{name}` has no value at the end of the loop's body", "TFW0109", place, reason)
        runtime = any(isinstance(leaf, RuntimeValue) for leaf in leaves(before))
        return CompileError(
            f"`{name}` changes its type in the loop" if runtime else f"the compile-time `{name}` changes in a run-time loop",
            "TFW0109" if runtime else "TFW0115",
            place,
            note=f"before the loop in line {node.lineno} it is {named(before)}; line {line} leaves it as {named(after)}",
            help=_help_with_type(name, before, runtime),
        )

    def _after(
        self, node: ast.stmt, carried: CarriedNames, kept: list[int], results: list[SSAValue], assigned: dict[str, int]
    ) -> None:
        """Names after the loop: carried ones are its results, those born in the body are gone."""
        scope = self.frame.scope
        standing = [leaf.ssa for leaf in carried.initial]
        for index, result in zip(kept, results, strict=True):
            standing[index] = result
            name_value(result, carried.hints()[index])
        values = iter(standing)
        for name in carried.names:
            scope.locals[name] = rebuild(carried.before[name], values)
        for name, line in assigned.items():
            scope.lines[name] = line
            if name not in carried.before:
                scope.gone[name] = f"it is assigned only by the loop in line {node.lineno}, which may run zero times"


def _help_with_type(name: str, before: Any, runtime: bool) -> str:
    if isinstance(before, CompositeValue):
        return "move it with tl.advance, or give another name to another one"
    if runtime:
        return f"start with the type that the loop computes, or cast back: `{name} = (…).to(…)`"
    return "make it a run-time value before the loop, or unroll the loop with tl.static_range"


def _wish(name: str, value: Any) -> Attribute | None:
    """A wish of tl.range as an attribute of the loop; None when nothing is wished."""
    if isinstance(value, RuntimeValue):
        raise not_constexpr(f"{name} of a loop")
    if name not in _COUNTS:
        return UnitAttr() if value else None
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise CompileError(f"{name} of a loop is a number of 0 or more, not {describe(value)}", "TFW0212")
    return IntegerAttr(IntAttr(value), i32) if value else None


def _prune(carried: CarriedNames, arguments: list[Sequence[BlockArgument]], final: list[SSAValue]) -> list[int]:
    """Drop what every iteration passes on unchanged; gives the indices of what is left.

    `final` and the blocks keep their other entries; uses of a dropped argument become uses of its initial value.
    """
    passed_on = arguments[-1]
    kept = [i for i, value in enumerate(final) if value is not passed_on[i]]
    for index in reversed([i for i in range(len(final)) if i not in set(kept)]):
        for block_arguments in arguments:
            argument = block_arguments[index]
            argument.replace_all_uses_with(carried.initial[index].ssa)
            argument.block.erase_arg(argument)
    return kept


def is_range(head: Any) -> bool:
    """Whether a loop's head is one that runs at run time."""
    return isinstance(head, tl.range)


def static_items(head: tl.static_range) -> builtins.range:
    """The values of an unrolled loop; its bounds must be compile-time integers."""
    for word, value in (("start", head.start), ("end", head.end), ("step", head.step)):
        if isinstance(value, RuntimeValue):
            raise not_constexpr(f"the {word} of tl.static_range")
        if not isinstance(value, int):
            raise CompileError(f"the {word} of tl.static_range must be an int, not {describe(value)}", "TFW0212")
    if head.step == 0:
        raise CompileError("the step of a loop must not be 0", "TFW0212")
    items = builtins.range(head.start, head.end, head.step)
    if len(items) > UNROLL_LIMIT:
        raise CompileError(
            f"tl.static_range would unroll {len(items)} iterations; the limit is {UNROLL_LIMIT}", "TFW0114", help="use tl.range"
        )
    return items
