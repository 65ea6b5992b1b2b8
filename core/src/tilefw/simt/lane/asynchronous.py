"""Lane ops of matrix units that run by themselves: products under way, waits for them, and the fence before they read memory.

All lanes of the workgroup take part, in the same order. A product is under way from its op to the `lane.atom_wait` that covers it.
Until then its result may only be another product's accumulator, and what it reads from shared memory may not be written.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from tilefw.simt.lane.base import GenericOp
from tilefw.simt.lane.memory import ORDERS


class SharedRead(NamedTuple):
    """What a product reads from shared memory: an allocation or, of a ring, the slot `phase` iterations ahead."""

    side: str
    buffer: int
    ring: int
    phase: int


class AsyncAtomOp(GenericOp):
    """The chip's asynchronous atom called `atom`, all repeats of a dot in order, as one group: acc += A · B.

    `parts` names the operands, in order: `a` (a fragment) or `a_address`, `b_address`, and `acc`. Repeat j takes the elements of A
    from a[j] on, or those that stand at a_address[a_slots[j]] + a[j] bytes, so too of B, and adds to those from acc[d[j]] on. An
    address is equal in all waves that work together. An operand in shared memory lies in the atom's form number `a_form`
    (`b_form`), whose rows go on `a_stride` (`b_stride`) bytes further.
    """

    name = "lane.async_atom"
    operand_count = None
    property_names = frozenset({
        "atom", "parts", "d", *(f"{side}{what}" for side in "ab" for what in (
            "", "_slots", "_form", "_stride", "_buffer", "_ring", "_phase",
        )),
    })
    traits = ORDERS
    SIDES: ClassVar = ("a", "b")

    @property
    def atom(self) -> str:
        attribute = self.properties.get("atom")
        return attribute.data if isinstance(attribute, StringAttr) else ""

    def part(self, name: str) -> SSAValue | None:
        """The operand of that name; None where there is none."""
        names = self.properties["parts"].data.split(",")  # type: ignore[attr-defined]
        return self._operands[names.index(name)] if name in names else None

    @property
    def acc(self) -> SSAValue:
        found = self.part("acc")
        assert found is not None
        return found

    def numbers(self, name: str) -> tuple[int, ...]:
        """A property with a number for each repeat."""
        return self.integers(name)

    def number(self, name: str) -> int:
        """A property with one number, 0 where it is absent."""
        return self.integer(name) if name in self.properties else 0

    def shared_reads(self) -> tuple[SharedRead, ...]:
        """What is read from shared memory."""
        return tuple(
            SharedRead(side, *(self.number(f"{side}_{what}") for what in ("buffer", "ring", "phase")))
            for side in self.SIDES if self.part(f"{side}_address") is not None
        )

    def problem(self) -> str | None:
        if not self.atom:
            return "the atom has no name"
        acc = self.part("acc")
        if acc is None or self.result.type != acc.type:
            return "the result has the accumulator's type"
        counts = {len(self.numbers(name)) for name in "abd"}
        if len(counts) != 1:
            return "a, b and d need one number for each repeat"
        for side in self.SIDES:
            address = self.part(f"{side}_address")
            if (address is None) == (self.part(side) is None):
                return f"{side} is either a fragment or an address"
            if address is not None and len(self.numbers(f"{side}_slots")) not in counts:
                return f"{side}_slots needs one number for each repeat"
        return None


class AtomWaitOp(GenericOp):
    """Until all but the last `pending` products are done: the operands, results of those, may be touched then.

    The last `factors` of the operands are what those products read from registers instead, which stays there until then.
    """

    name = "lane.atom_wait"
    operand_count = None
    result_count = 0
    property_names = frozenset({"pending", "factors"})
    traits = ORDERS

    @property
    def pending(self) -> int:
        return self.integer("pending")

    @property
    def results_done(self) -> tuple[SSAValue, ...]:
        """The results that may be touched."""
        return tuple(self._operands[: len(self._operands) - self._count])

    @property
    def factors_read(self) -> tuple[SSAValue, ...]:
        """What was read from registers."""
        return tuple(self._operands[len(self._operands) - self._count :])

    @property
    def _count(self) -> int:
        return self.integer("factors") if "factors" in self.properties else 0

    def problem(self) -> str | None:
        if not 0 <= self._count <= len(self._operands):
            return "more factors than operands"
        return None if self.pending >= 0 else "a negative number of products"


class FenceViewOp(GenericOp):
    """Matrix units and engines see, from here on, what lanes and their copies wrote to shared memory before it; with `arrays` also
    what they wrote to global memory."""

    name = "lane.fence_view"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"arrays"})
    traits = ORDERS

    @property
    def arrays(self) -> bool:
        return "arrays" in self.properties


ASYNCHRONOUS_OPS = (AsyncAtomOp, AtomWaitOp, FenceViewOp)
