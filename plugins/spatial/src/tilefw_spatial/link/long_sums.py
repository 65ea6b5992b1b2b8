"""Products over several axes, one of which is a batch of an earlier product, as are heads of an attention: summed over it apart.

Earlier products have such an axis in time, since both of their operands have it. A product over it along lanes would ask for
another layout of its operand.
"""

from __future__ import annotations

from dataclasses import replace

from tilefw_spatial.arrange.normal import NormalTarget, operands, reached, with_operands
from tilefw_spatial.graph import Axis, Dot, Reduce, ReductionKind, Value
from tilefw_spatial.postorder import postorder


def with_sums_apart(targets: list[NormalTarget]) -> list[NormalTarget]:
    """The targets with such sums outside of products."""
    done: dict[Value, Value] = {}
    for value in postorder((target.value for target in targets), lambda user: operands(user.op)):
        done[value] = _rewritten(value, tuple(done[part] for part in operands(value.op)))
    return [replace(target, value=done[target.value]) for target in targets]


def _rewritten(value: Value, parts: tuple[Value, ...]) -> Value:
    op = value.op if parts == operands(value.op) else with_operands(value.op, parts)
    apart = _apart(op) if isinstance(op, Dot) else ()
    if not apart or not isinstance(op, Dot):
        return value if op is value.op else Value(op, value.axes, value.dtype, value.place)
    rest = tuple(axis for axis in op.contracted if axis not in apart)
    product = Value(replace(op, contracted=rest), (*value.axes, *apart), value.dtype, value.place)
    kind = ReductionKind.ADDF if value.dtype.startswith("fp") else ReductionKind.ADDI
    return Value(Reduce(kind, product, apart), value.axes, value.dtype, value.place)


def _apart(op: Dot) -> tuple[Axis, ...]:
    """The axes of the sum that are batches of an operand's own products, unless all are."""
    batches = {
        axis for part in (op.a, op.b) for below in reached(part) if isinstance(below.op, Dot)
        for axis in below.op.a.axes if axis in below.op.b.axes and axis not in below.op.contracted
    }
    found = tuple(axis for axis in op.contracted if axis in batches)
    return found if len(found) < len(op.contracted) else ()
