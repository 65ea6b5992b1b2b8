"""Lane ops on a whole wave: shuffles between its lanes, uniform values, matrix atoms.

All lanes of the wave take part: they stand only where control flow is uniform.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr

from tilefw.simt.lane.base import GenericOp
from tilefw.simt.lane.memory import ORDERS
from tilefw.tile import types
from tilefw.tile.dialect.base import PURE

SHUFFLES = ("xor", "index", "up", "down", "lower", "upper")
HALVES = ("lower", "upper")
ROLES = "lane.roles"  # of the branch between roles: the threads of its second region, the first ones; the others take the first


class LeaveOp(GenericOp):
    """The threads whose index has any of these `bits` end here: whole waves, of which nobody waits for anything."""

    name = "lane.leave"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"bits"})
    traits = ORDERS

    @property
    def bits(self) -> int:
        return self.integer("bits")

    def problem(self) -> str | None:
        return None if self.bits > 0 else "no bits of the thread index"


class RegistersOp(GenericOp):
    """Each lane of the waves that come here has `count` registers from here on: `more` than before, or less.

    All waves of a role come here. What some give others take, so that all together have no more than the processor.
    """

    name = "lane.registers"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"count", "more"})
    traits = ORDERS

    @property
    def count(self) -> int:
        return self.integer("count")

    @property
    def more(self) -> bool:
        return "more" in self.properties

    def problem(self) -> str | None:
        return None if self.count > 0 else "no registers"


class ShuffleOp(GenericOp):
    """Each lane gets the element that another lane of its wave holds.

    `xor`: of lane ^ amount; `up`: of lane - amount and `down`: of lane + amount, its own where there is no such lane; `index`: of
    lane `amount`, or of the lane that the second operand says, one i32 for all elements or one each. Of each 2 · amount lanes, with
    amount a power of two: `lower` brings those of the upper half what the last lane of the lower half holds, and `upper` those of
    the lower half what the first lane of the upper half holds; the others get anything.
    """

    name = "lane.shuffle"
    property_names = frozenset({"mode", "amount"})
    traits = PURE

    @property
    def mode(self) -> str:
        attribute = self.properties.get("mode")
        return attribute.data if isinstance(attribute, StringAttr) else ""

    @property
    def amount(self) -> int | None:
        """The constant; None when lanes are computed."""
        return self.integer("amount") if "amount" in self.properties else None

    def problem(self) -> str | None:
        if self.mode not in SHUFFLES:
            return f"the mode is one of {', '.join(SHUFFLES)}"
        if not self._operands or self._operands[0].type != self.result.type or len(types.shape_of(self.result.type)) != 1:
            return "shuffles a vector to one of the same type"
        if len(self._operands) != (1 if self.amount is not None else 2):
            return "takes either an amount or an operand with lanes"
        if self.amount is not None:
            if self.mode in HALVES and (self.amount < 1 or self.amount & self.amount - 1):
                return "half of so many lanes is not a power of two"
            return None if self.amount >= 0 else "a negative amount"
        n, lanes = types.shape_of(self.result.type)[0], self._operands[1].type
        fits = types.element_of(lanes) == types.i32 and types.shape_of(lanes) in ((1,), (n,))
        return None if self.mode == "index" and fits else f"lanes are i32 and for the mode index, not {lanes} for {self.mode}"


class UniformOp(GenericOp):
    """A `vector<1xT>` that is known to be equal in all threads of the workgroup, as the scalar T."""

    name = "lane.uniform"
    operand_count = 1
    traits = PURE

    def problem(self) -> str | None:
        source = self._operands[0].type
        fits = types.shape_of(source) == (1,) and types.element_of(source) == self.result.type
        return None if fits else "takes vector<1xT> to T"


class AtomOp(GenericOp):
    """The chip's matrix atom called `atom`, once for each repeat: acc += A · B on fragments.

    Operands A, B, acc and, of an atom with scales, those of A and of B, bytes; the result is the accumulator, in acc's registers.
    Repeat j takes the atom's elements from A[a[j]] and B[b[j]] on and adds to those from acc[d[j]] on; its scales are element
    `a_scale[j]` and element `b_scale[j]`. Repeats that share an accumulator are added in order.
    """

    SCALES: ClassVar = ("a_scale", "b_scale")
    name = "lane.atom"
    operand_count = None
    property_names = frozenset({"atom", "a", "b", "d", *SCALES})
    traits = PURE

    @property
    def atom(self) -> str:
        attribute = self.properties.get("atom")
        return attribute.data if isinstance(attribute, StringAttr) else ""

    def firsts(self, name: str) -> tuple[int, ...]:
        """The first element of each repeat, of operand `a`, `b`, `d`, `a_scale` or `b_scale`."""
        return self.integers(name)

    def problem(self) -> str | None:
        names = ("a", "b", "d", *self.SCALES)[: len(self._operands)]
        if not self.atom:
            return "the atom has no name"
        if len(self._operands) not in (3, 5):
            return f"takes A, B, acc and maybe the scales of A and B, got {len(self._operands)} operands"
        if self.result.type != self._operands[2].type:
            return "the result has the accumulator's type"
        if len({len(self.firsts(name)) for name in names}) != 1:
            return f"{', '.join(names)} need one first element for each repeat"
        for name, operand in zip(names, self._operands, strict=True):
            size = types.shape_of(operand.type)
            if len(size) != 1 or not all(0 <= first < size[0] for first in self.firsts(name)):
                return f"{name}: a first element is out of the range of {operand.type}"
        return None


WAVE_OPS = (LeaveOp, RegistersOp, ShuffleOp, UniformOp, AtomOp)
