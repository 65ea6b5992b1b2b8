"""The body of a combining operator, a region of StableHLO on scalars, as rows in a body of the graph dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, MapBodyBuilder
from tilefw_jax.element_types import kind_of, stored_elements
from tilefw_jax.rules.attributes import texts
from tilefw_jax.rules.pointwise import POINTWISE, PointwiseStep, Write

_ENDS = ("stablehlo.return", "func.return")
Functions = Mapping[str, Any]
Constant = Callable[[Any], GraphValue]


def only_operator(block: Any) -> str | None:
    """The operator that a body of two arguments applies to them and nothing else."""
    ops = list(block.operations)
    if len(ops) != 2 or len(block.arguments) != 2 or set(ops[0].operands) != set(block.arguments):
        return None
    return ops[0].operation.name if list(ops[1].operands) == [ops[0].operation.results[0]] else None


def gives_argument(block: Any, place: int) -> bool:
    """Whether a body gives one of its arguments as it is."""
    (last,) = list(block.operations)[-1:]
    return list(last.operands) == [block.arguments[place]]


def applied(write: Write, constant: Constant, block: Any, given: Sequence[GraphValue], functions: Functions) -> list[GraphValue]:
    """What a body gives for values, its ops written one by one. Raises UnsupportedError TFW0992 for an op that is not pointwise."""
    values = dict(zip(block.arguments, given, strict=True))
    for view in block.operations:
        op = view.operation
        if op.name in _ENDS:
            return [values[operand] for operand in op.operands]
        held = [values[operand] for operand in op.operands]
        if op.name == "stablehlo.constant":
            found = [constant(op)]
        elif op.name in ("func.call", "call"):
            found = applied(write, constant, functions[op.attributes["callee"].value].regions[0].blocks[0], held, functions)
        elif op.name in POINTWISE:
            found = [pointwise(write, op, held)]
        else:
            raise UnsupportedError(f"{op.name} in the body of an operator", code="TFW0992")
        values.update(zip(op.results, found, strict=True))
    raise AssertionError("a body ends in a return")


def pointwise(write: Write, op: Any, held: Sequence[GraphValue]) -> GraphValue:
    """A pointwise operator by its rule."""
    place = 1 if op.name == "stablehlo.select" else 0
    step = PointwiseStep(write, kind_of(op.operands[place].type), kind_of(op.results[0].type), texts(op))
    return POINTWISE[op.name](step, held)


def scalar_body(block: Any, functions: Functions) -> Callable[..., Sequence[GraphValue]]:
    """A body as `ModuleBuilder.reduce_by` takes it."""

    def body(s: MapBodyBuilder, *arguments: GraphValue) -> list[GraphValue]:
        def constant(op: Any) -> GraphValue:
            kind = kind_of(op.results[0].type)
            return s.number(stored_elements(op.attributes["value"], kind, ()).item(), kind)

        return applied(s, constant, block, arguments, functions)

    return body
