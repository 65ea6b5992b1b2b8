"""What is known of scalars at compile time: the power of two that divides each, from arguments and arithmetic."""

from __future__ import annotations

from math import gcd

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, SSAValue

from tilefw.tile import ops
from tilefw.tile.elementwise import ElementwiseOp

UNBOUNDED = 1 << 30  # what divides zero, and the cap of every fact


class Facts:
    """Answers `divisor(value)`: a number that surely divides the integer (or, for a pointer, its address in bytes)."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, int] = {}

    def divisor(self, value: SSAValue) -> int:
        """A positive power of two that divides `value`; 1 when nothing is known."""
        if value not in self._known:
            self._known[value] = 1  # for cycles
            self._known[value] = max(1, min(UNBOUNDED, self._compute(value)))
        return self._known[value]

    def constant(self, value: SSAValue) -> int | None:
        """The value of an integer constant; None for all others."""
        owner = value.owner
        if isinstance(owner, ops.ConstantOp) and isinstance(owner.value, int):
            return owner.value
        if isinstance(owner, ElementwiseOp) and owner.row.name in ("exts", "trunci"):
            return self.constant(owner.operands[0])
        return None

    def _compute(self, value: SSAValue) -> int:
        if isinstance(value, BlockArgument):
            return self._argument(value)
        owner = value.owner
        stated = _stated(owner.attributes.get("tile.divisible"))  # type: ignore[union-attr]
        constant = self.constant(value)
        if constant is not None:
            return max(stated, constant & -constant or UNBOUNDED)
        return max(stated, self._arithmetic(owner)) if isinstance(owner, ElementwiseOp) else max(stated, self._pointer(owner))

    def _pointer(self, owner: object) -> int:
        if not isinstance(owner, ops.AddPtrOp) or owner.pointer is None:
            return 1
        from tilefw.tile import types

        size = types.dtype_of(types.pointee_of(owner.pointer.type)).storage_bits // 8
        return gcd(self.divisor(owner.pointer), self.divisor(owner._operands[1]) * size)

    def _arithmetic(self, op: ElementwiseOp) -> int:
        operands = op._operands
        match op.row.name:
            case "muli":
                return self.divisor(operands[0]) * self.divisor(operands[1])
            case "addi" | "subi" | "select" | "mins" | "maxs" | "minu" | "maxu" | "ori" | "xori":
                return gcd(self.divisor(operands[-2]), self.divisor(operands[-1]))
            case "andi":
                return max(self.divisor(operands[0]), self.divisor(operands[1]))
            case "exts" | "extu" | "trunci":
                return self.divisor(operands[0])
            case "shl":
                amount = self.constant(operands[1])
                return self.divisor(operands[0]) << amount if amount is not None and 0 <= amount < 30 else 1
        return 1

    def _argument(self, value: BlockArgument) -> int:
        parent = value.block.parent_op()
        if isinstance(parent, FuncOp) and parent.arg_attrs is not None:
            return _stated(parent.arg_attrs.data[value.index].data.get("tile.divisible"))
        if isinstance(parent, ForOp):
            if value.index == 0:
                return gcd(self.divisor(parent.lb), self.divisor(parent.step))
            return self._carried(parent, value)
        return 1

    def _carried(self, loop: ForOp, value: BlockArgument) -> int:
        """A carried value: assume what the start has, then see what one round makes of it, downwards to a fixed point."""
        guess = self.divisor(loop.iter_args[value.index - 1])
        back = loop.body.block.last_op.operands[value.index - 1]  # type: ignore[union-attr]
        while True:
            trial = Facts()
            trial._known = {**self._known, value: guess}
            found = gcd(guess, trial.divisor(back))
            if found == guess:
                return guess
            guess = found


def _stated(attribute: object) -> int:
    if isinstance(attribute, IntegerAttr):
        return max(1, attribute.value.data & -attribute.value.data)
    if isinstance(attribute, DenseArrayBase):
        values = attribute.get_values()
        return max(1, int(values[0]) & -int(values[0])) if len(values) == 1 else 1
    return 1
