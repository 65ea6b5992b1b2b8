"""The comparison of a sort as keys: tensors of whole numbers, by the first of which that differs one element comes before another.

    lt(f(a0), f(b0)) or (eq(f(a0), f(b0)) and lt(g(a1), g(b1)))       keys f(values[0]), g(values[1])

What is compared must be one function of an operand's two elements, whatever that function is: JAX makes all zeros and all NaN
alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.graph.builder import GraphValue
from tilefw.graph.ordering import order_key
from tilefw_jax.element_types import is_float, kind_of
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import texts
from tilefw_jax.rules.bodies import pointwise
from tilefw_jax.rules.combining import constant
from tilefw_jax.rules.pointwise import POINTWISE

_FALLING = {"LT": False, "GT": True}


@dataclass(frozen=True, slots=True)
class ComparedKey:
    """A value of the body that is compared with its twin, and how."""

    value: Any
    twin: Any
    falling: bool
    total: bool


def compared_keys(b: KnownValueBuilder, block: Any, values: Sequence[GraphValue]) -> list[GraphValue] | None:
    """The keys by which a body compares, the first counts most; None where it is no such comparison."""
    arguments = list(block.arguments)
    (result,) = list(list(block.operations)[-1].operands)
    found = _keys(result)
    twins = {one: other for one, other in zip(arguments[::2], arguments[1::2], strict=True)}
    if found is None or not all(_are_twins(key.value, key.twin, twins) for key in found):
        return None
    known = dict(zip(arguments[::2], values, strict=True))
    return [order_key(b, _of_operands(b, key.value, known), kind_of(key.value.type), key.falling, key.total) for key in found]


def _keys(result: Any) -> list[ComparedKey] | None:
    """The comparisons of a body's result, as they stand."""
    op = _maker(result)
    if op is None:
        return None
    if op.name == "stablehlo.compare":
        key = _compared(op)
        return None if key is None else [key]
    if op.name != "stablehlo.or":
        return None
    for first, rest in (list(op.operands), list(op.operands)[::-1]):
        before, both = _maker(first), _maker(rest)
        if before is None or both is None or before.name != "stablehlo.compare" or both.name != "stablehlo.and":
            continue
        for equal, more in (list(both.operands), list(both.operands)[::-1]):
            key, others = _compared(before), _keys(more)
            if key is not None and others is not None and _is_equality(_maker(equal), before):
                return [key, *others]
    return None


def _compared(op: Any) -> ComparedKey | None:
    direction, kind = (_word(op, name) for name in ("comparison_direction", "compare_type"))
    if direction not in _FALLING:
        return None
    value, twin = op.operands
    return ComparedKey(value, twin, _FALLING[direction], is_float(kind_of(value.type)) and kind == "TOTALORDER")


def _is_equality(op: Any, before: Any) -> bool:
    """Whether an op says that what `before` compares is equal."""
    if op is None or op.name != "stablehlo.compare" or _word(op, "comparison_direction") != "EQ":
        return False
    same_type = _word(op, "compare_type") == _word(before, "compare_type")
    return same_type and set(op.operands) == set(before.operands)


def _word(op: Any, name: str) -> str:
    """The last word of an attribute, such as LT of `#stablehlo<comparison_direction LT>`."""
    return texts(op).get(name, "").rstrip(">").rpartition(" ")[2]


def _maker(value: Any) -> Any:
    """The op that makes a value of a body; None for an argument."""
    owner = value.owner
    return getattr(owner, "operation", owner) if hasattr(owner, "results") or hasattr(owner, "operation") else None


def _are_twins(value: Any, twin: Any, arguments: dict[Any, Any]) -> bool:
    """Whether two values are one function of the first and of the second elements."""
    if value in arguments:
        return arguments[value] == twin
    one, other = _maker(value), _maker(twin)
    if one is None or other is None or one.name != other.name or value.type != twin.type:
        return False
    names = list(one.attributes)
    if names != list(other.attributes) or any(one.attributes[name] != other.attributes[name] for name in names):
        return False
    if one.name not in POINTWISE and one.name != "stablehlo.constant":
        return False
    return all(_are_twins(a, b, arguments) for a, b in zip(one.operands, other.operands, strict=True))


def _of_operands(b: KnownValueBuilder, value: Any, known: dict[Any, GraphValue]) -> GraphValue:
    """The value of a body for whole tensors in the place of its elements."""
    if value not in known:
        op = _maker(value)
        if op.name == "stablehlo.constant":
            return constant(b, op)
        known[value] = pointwise(b.map, op, [_of_operands(b, operand, known) for operand in op.operands])
    return known[value]
