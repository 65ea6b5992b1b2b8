"""Makes the ops of a pipeline: before one place, at one source line, folded where they come out constant."""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.passes.fold import constant_of, fold
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import build


class Emitter:
    """Inserts ops before `place`, with its location unless they have their own; constants go to `outer`, before the loop."""

    def __init__(self, place: Operation, outer: Emitter | None = None) -> None:
        self.place = place
        self.outer = outer or self
        self._constants: dict[tuple[str, Attribute], SSAValue] = {}

    def insert(self, op: Operation, location: LocationAttr | None = None) -> Operation:
        """Insert an op."""
        op.location = location or self.place.location
        assert self.place.parent is not None
        self.place.parent.insert_op_before(op, self.place)
        return op

    def value(self, op: Operation, name: str | None = None) -> SSAValue:
        """Insert an op of one result, or take what it folds to."""
        op.location = self.place.location
        folded = fold(op)
        if isinstance(folded, SSAValue):
            op.erase()
            return folded
        if folded is not None and not isinstance(op, ops.ConstantOp):
            type = op.results[0].type
            same = [o for o in op.operands if o.type == type and isinstance(folded, int) and constant_of(o) == folded]
            op.erase()
            return same[0] if same else self.constant(folded, type)
        result = self.insert(op, op.location).results[0]
        result.name_hint = name or result.name_hint
        return result

    def constant(self, number: int | float, type: Attribute) -> SSAValue:
        """A constant, made once."""
        if self.outer is not self:
            return self.outer.constant(number, type)
        key = (repr(number), type)  # 0.0 and -0.0 are equal
        if key not in self._constants:
            self._constants[key] = self.insert(ops.ConstantOp(number, type)).results[0]
        return self._constants[key]

    def row(self, name: str, *operands: SSAValue, hint: str | None = None) -> SSAValue:
        """An elementwise op."""
        return self.value(build(name, *operands), hint)

    def repeat(self, op: Operation, values: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        """The results of a copy of `op` on other operands."""
        new = op.clone(values)
        if len(new.results) == 1:
            new.location = op.location
            return [self.value(new)]
        return list(self.insert(new, op.location).results)

    def ahead(self, value: SSAValue, step: SSAValue, count: int) -> SSAValue:
        """value + count · step."""
        if not count:
            return value
        return self.row("addi", value, self._times(step, count))

    def before(self, bound: SSAValue, step: SSAValue, count: int) -> SSAValue:
        """bound - count · step."""
        if not count:
            return bound
        return self.row("subi", bound, self._times(step, count))

    def _times(self, step: SSAValue, count: int) -> SSAValue:
        return step if count == 1 else self.outer.row("muli", step, self.constant(count, step.type))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """The conjunction of two conditions, of which either may be absent; a scalar is spread over a tile."""
        if a is None or b is None:
            return b if a is None else a
        shape = types.shape_of(a.type) or types.shape_of(b.type)
        spread = [v if types.shape_of(v.type) == shape else self.value(ops.SplatOp(v, shape)) for v in (a, b)]
        return self.row("andi", *spread)


def always(condition: SSAValue | None) -> bool | None:
    """Whether a condition always holds (True) or never (False); None where that is open."""
    if condition is None:
        return True
    literal = constant_of(condition)
    return None if literal is None else bool(literal)
