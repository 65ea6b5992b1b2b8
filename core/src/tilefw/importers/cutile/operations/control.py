"""Loops and branches, which may be left from within: what follows a branch that one side leaves goes into the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

import tilefw.language as tl
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.bytecode_tree import BytecodeBlock
from tilefw.importers.cutile.bytecode_types import BytecodeType, TokenType
from tilefw.importers.cutile.memory_order import AccessToken, joined, kinds_within
from tilefw.importers.cutile.opcodes import TERMINATORS

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

# What is given where a way ends: by the operation that ends it and its operands.
Ending = Callable[["BytecodeOperation", list[Any]], list[Any]]


def run_block(t: BytecodeTranslation, block: BytecodeBlock, arguments: Sequence[Any]) -> BytecodeOperation:
    """Translate a block that nothing within it leaves; the operation that ends it."""
    _bind_arguments(t, block, arguments)
    *operations, end = block.operations
    for operation in operations:
        t.operation(operation)
    return end


def run_body(t: BytecodeTranslation, block: BytecodeBlock, arguments: Sequence[Any], ending: Ending) -> list[Any]:
    """Translate a block on all ways through it; what they give."""
    _bind_arguments(t, block, arguments)
    return _run_from(t, block, 0, ending)


def _bind_arguments(t: BytecodeTranslation, block: BytecodeBlock, arguments: Sequence[Any]) -> None:
    for number, type, value in zip(block.arguments, block.types, arguments, strict=True):
        t.bind(number, type, value)


def _run_from(t: BytecodeTranslation, block: BytecodeBlock, index: int, ending: Ending) -> list[Any]:
    for place, operation in enumerate(block.operations[index:], index):
        if operation.name in TERMINATORS:
            t.counted(operation)
            return ending(operation, t.listed(operation))
        if operation.name != "if" or not any(_leaves(region) for region in operation.regions):
            t.operation(operation)
            continue

        def goes_on(
            end: BytecodeOperation, values: list[Any], place: int = place, left: BytecodeOperation = operation
        ) -> list[Any]:
            if end.name != "yield":
                return ending(end, values)
            kept = t.values.copy(), t.types.copy()  # numbers of a region are used again behind it, and the other side reads on
            for number, type, value in zip(left.results, left.types, values, strict=True):
                t.bind(number, type, value)
            given = _run_from(t, block, place + 1, ending)
            t.values, t.types = kept
            return given

        t.counted(operation)
        with t.guarded(operation.name, operation.start):
            return _branch(t, operation, [_side(t, region, goes_on) for region in operation.regions])
    return []


def _side(t: BytecodeTranslation, region: BytecodeBlock, ending: Ending) -> Callable[[], list[Any]]:
    return lambda: run_body(t, region, (), ending)


def _leaves(block: BytecodeBlock) -> bool:
    """Whether some way through the region of a branch does not come out behind the branch."""
    if block.operations[-1].name != "yield":
        return True
    return any(op.name == "if" and any(_leaves(region) for region in op.regions) for op in block.operations)


def _branch(t: BytecodeTranslation, op: BytecodeOperation, sides: Sequence[Callable[[], list[Any]]]) -> list[Any]:
    """What one of two sides gives, by the branch's condition."""
    condition = t.tile(op, "condition")
    blocks, given = [Block(), Block()], list[list[Any]]()
    for block, side in zip(blocks, sides, strict=True):
        with t.inside(block), t.order.conditional():
            given.append(side())
    left, right = ([value for value in values if isinstance(value, RuntimeValue)] for values in given)
    if [value.type for value in left] != [value.type for value in right] or len(given[0]) != len(given[1]):
        raise ValueError("the two sides of a branch give other types")
    t.parts(given[0] + given[1])
    results = t.b.branch(condition, blocks[0], blocks[1], list(zip(left, right, strict=True)))
    merged = [_merged(t, *pair) for pair in zip(*given, strict=True)]
    return t.standing(merged, results)


def _merged(t: BytecodeTranslation, first: Any, second: Any) -> Any:
    if not isinstance(first, AccessToken):
        return first
    return t.order.fresh(joined((first, second)).kinds)


@meaning("if")
def branch(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    return _branch(t, op, [_side(t, region, lambda end, values: values) for region in op.regions])


@meaning("for")
def count(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    if "unsigned" in op.flags:
        raise t.refusal(op, "a loop whose bounds are unsigned is not imported")
    low, high, step, *initial = t.listed(op)
    (region,) = op.regions
    inside = _carried(t, region, initial)
    block = t.block_for([low.type, *(value.type for value in initial if isinstance(value, RuntimeValue))])

    def ending(end: BytecodeOperation, values: list[Any]) -> list[Any]:
        if end.name != "continue":
            raise t.refusal(end, f"{end.name} within `for` is not imported")
        return values

    with t.inside(block), t.order.conditional():
        variable = RuntimeValue(block.args[0], low.type)
        final = run_body(t, region, [variable, *t.standing(inside, block.args[1:])], ending)
        _check_carried(final, initial)
        t.b.insert(scf.YieldOp(*t.parts(final)))
    made = t.b.insert(scf.ForOp(low.ssa, high.ssa, step.ssa, t.parts(initial), Region(block)))
    return t.standing(_carried(t, region, initial), made.results)


def _carried(t: BytecodeTranslation, region: BytecodeBlock, initial: Sequence[Any]) -> list[Any]:
    """The values that a loop carries: a token stands for what its body accesses too."""
    within = kinds_within(region)
    return [t.order.fresh(value.kinds | within) if isinstance(value, AccessToken) else value for value in initial]


def _check_carried(final: Sequence[Any], initial: Sequence[Any]) -> None:
    types = [[value.type if isinstance(value, RuntimeValue) else None for value in values] for values in (final, initial)]
    if types[0] != types[1]:
        raise ValueError("a loop goes on with values of other types than it began with")


@meaning("loop")
def repeat(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    """A loop that `break` leaves: its state is what it goes on with, and what it gives in the end."""
    initial, (region,) = t.listed(op), op.regions
    given = [_placeholder(t, type) for type in op.types]
    inside = _carried(t, region, initial)
    state = [*initial, *given]

    def ending(end: BytecodeOperation, values: list[Any]) -> list[Any]:
        if end.name == "continue":
            _check_carried(values, initial)
            return [t.b.constant(True, tl.int1), *values, *given]
        if end.name == "break":
            _check_carried(values, given)
            return [t.b.constant(False, tl.int1), *initial, *values]
        raise t.refusal(end, f"{end.name} within `loop` is not imported")

    types = [value.type for value in state if isinstance(value, RuntimeValue)]
    before, after = t.block_for(types), t.block_for(types)
    with t.inside(before), t.order.conditional():
        going, *final = run_body(t, region, t.standing(inside, before.args), ending)
        t.b.insert(scf.ConditionOp(going.ssa, *t.parts(final)))
    with t.inside(after):
        t.b.insert(scf.YieldOp(*after.args))
    parts: list[SSAValue] = t.parts(state)
    made = t.b.insert(scf.WhileOp(parts, [part.type for part in parts], Region(before), Region(after)))
    results = t.standing(state, made.results)[len(initial) :]
    kinds = kinds_within(region).union(*(value.kinds for value in initial if isinstance(value, AccessToken)))
    return [t.order.fresh(kinds) if isinstance(value, AccessToken) else value for value in results]


def _placeholder(t: BytecodeTranslation, type: BytecodeType) -> Any:
    """What a result of a loop is before it is given: zero."""
    if isinstance(type, TokenType):
        return AccessToken()
    found = t.type_of(type)
    shape = found.shape if isinstance(found, tl.block_type) else ()
    if found.scalar.is_ptr():
        return cast(t.b, t.b.constant(0, tl.int64, shape), found.scalar)
    return constant(t.b, 0, found.scalar, shape)
