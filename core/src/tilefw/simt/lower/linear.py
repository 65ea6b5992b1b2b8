"""Scalars that a loop makes anew of its index in several steps, such as what is left of a dim, are carried: one sum an iteration.

Of sums, differences and products with constants of a loop index the next value is this one and a constant. It stands there when the
iteration begins, where what is computed from the index comes later.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.lane.promises import promise, promise_of
from tilefw.simt.lower.loop_carried import Moved, is_before
from tilefw.tile import types

_SHORTEST = 2  # steps that one sum takes the place of
_Add, _Sub, _Mul, _Shl = (lane.ELEMENTWISE[row] for row in ("addi", "subi", "muli", "shl"))


def carry_linear(builder: LaneBuilder, body: Block, lower: SSAValue, step: SSAValue, moved: Moved) -> None:
    """Have a loop's finished body take such scalars as arguments, for which `moved` gets what the loop starts with."""
    index, by = body.args[0], _literal(step)
    if by is None:
        return
    factors: dict[SSAValue, int] = {index: 1}
    first: dict[SSAValue, SSAValue] = {index: lower}  # with what is carried, as later ones may be computed from it
    for op in body.ops:
        factor = _factor(op, factors, body)
        if factor is not None:
            factors[op.results[0]] = factor
    last = body.last_op
    assert last is not None
    for value in [v for v in factors if v is not index and factors[v] and _is_asked_for(v, factors)]:
        if len(_steps(value, factors, step)) < _SHORTEST and not isinstance(value.owner, _Sub):
            continue  # products alone go into the sums that they are for
        assert isinstance(value.owner, Operation)
        promised = promise_of(value.owner)  # of a part of an offset, which it stays when it is carried
        start = _at(builder, value, factors, dict(first))
        moved.starts.append(start)
        carried = body.insert_arg(value.type, len(body.args))
        factors[carried], first[carried] = factors[value], start
        value.replace_all_uses_with(carried)
        following = _Add(carried, builder.constant(factors[value] * by, value.type))
        promise(following, promised)
        following.location = last.location
        body.insert_op_before(following, last)
        last.operands = [*last.operands, following.results[0]]


def _factor(op: Operation, factors: dict[SSAValue, int], body: Block) -> int | None:
    """What an op's result grows by where the index grows by 1; None where that is not a constant, or nothing of the index is in
    it."""
    if not isinstance(op, _Add | _Sub | _Mul | _Shl) or op.results[0].type != body.args[0].type:
        return None
    x, y = op.operands
    if x not in factors and y not in factors:
        return None
    if isinstance(op, _Mul | _Shl):
        constant = _literal(y)
        if constant is None or x not in factors:
            return None
        return factors[x] * constant if isinstance(op, _Mul) else factors[x] << constant if 0 <= constant < 32 else None
    if not all(v in factors or is_before(v, body) for v in (x, y)):
        return None
    a, b = (factors.get(v, 0) for v in (x, y))
    return a + b if isinstance(op, _Add) else a - b


def _is_asked_for(value: SSAValue, factors: dict[SSAValue, int]) -> bool:
    """Whether anything but such a scalar is computed from a value."""
    return any(not any(result in factors for result in use.operation.results) for use in value.uses)


def _steps(value: SSAValue, factors: dict[SSAValue, int], step: SSAValue) -> set[Operation]:
    """The ops that nobody asks for when a value is carried; the loop makes the next index in any case."""
    op = value.owner
    if not isinstance(op, Operation) or (isinstance(op, _Add) and step in op.operands):
        return set()
    found = {op}
    for operand in op.operands:
        if operand in factors and len(list(operand.uses)) == 1:
            found |= _steps(operand, factors, step)
    return found


def _at(
    builder: LaneBuilder, value: SSAValue, factors: dict[SSAValue, int], made: dict[SSAValue, SSAValue]
) -> SSAValue:
    """A scalar for the first index, made where the builder stands."""
    if value not in factors:
        return value
    if value not in made:
        op = value.owner
        assert isinstance(op, Operation)
        row = op.name.removeprefix("lane.")
        operands = [_at(builder, operand, factors, made) for operand in op.operands]
        with builder.promising(promise_of(op)):
            made[value] = builder.op(row, *operands)
    return made[value]


def _literal(value: SSAValue) -> int | None:
    owner = value.owner
    known = owner.value if isinstance(owner, lane.ConstantOp) and not types.is_float(value.type) else None
    return known if isinstance(known, int) else None
