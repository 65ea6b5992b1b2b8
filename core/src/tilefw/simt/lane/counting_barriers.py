"""Lane ops of barriers that count arrivals and bytes: how they are made, arrived at, and waited for, phase by phase.

A barrier is `ChipDescription.barrier_bytes` of shared memory, at a multiple of that: of an allocation or, of a ring, one a slot. A
phase is over when all its arrivals have come and all bytes that they announced; the next one, of the other parity, begins at once.
The first phase has parity 0. Whoever has waited sees what came with the phase: lanes' writes before their arrivals, and copies.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.simt.lane.base import GenericOp
from tilefw.simt.lane.memory import ORDERS, AccessOp
from tilefw.tile import types


class BeginBarriersOp(GenericOp):
    """The workgroup's first thread makes `number` barriers from the address on, for `count` arrivals a phase.

    The other threads use them behind the next `lane.barrier`, engines with a `lane.show_barriers` before that. They stay to the
    end of the program.
    """

    name = "lane.begin_barriers"
    operand_count = 1
    result_count = 0
    property_names = frozenset({"buffer", "number", "count"})
    traits = ORDERS

    @property
    def buffer(self) -> int:
        return self.integer("buffer")

    @property
    def number(self) -> int:
        return self.integer("number")

    @property
    def count(self) -> int:
        return self.integer("count")

    def problem(self) -> str | None:
        _ = self.buffer
        if self._operands[0].type != types.i32:
            return f"the address is an i32, not {self._operands[0].type}"
        return None if self.number > 0 and self.count > 0 else "makes one barrier at least, for one arrival at least"


class ShowBarriersOp(GenericOp):
    """Engines, and a cluster's other workgroups, see the barriers that the workgroup's first thread has made, behind the next
    `lane.barrier`."""

    name = "lane.show_barriers"
    operand_count = 0
    result_count = 0
    traits = ORDERS


class BarrierUseOp(AccessOp):
    """What is done to one barrier, at an address that is equal in all threads, a scalar i32. `buffer`, `ring` and `phase` are those
    of accesses to shared memory."""

    result_count = 0
    traits = ORDERS

    @property
    def address(self) -> SSAValue:
        found = self.part("address")
        assert found is not None
        return found

    def use_problem(self) -> str | None:
        """Whether the barrier is said."""
        _ = self.buffer, self.ring, self.phase
        address = self.part("address")
        if address is None:
            return "there is no address"
        return None if address.type == types.i32 else f"the address is an i32, not {address.type}"


class ArriveOp(BarrierUseOp):
    """Each thread arrives once, of those for which `when` holds, a `vector<1xi1>`, where it is there.

    Each announces bytes of copies to the phase first: as many as `announced`, a `vector<1xi32>`, says, where it is there, else
    `bytes`. What it wrote before is seen behind the wait for the phase. With `copies` it arrives once the copies that it has
    started have landed. With `products` it stands behind the end of all products but so many, the last ones: it says that what they
    read may be written. With `first` nobody waits for the phase but threads of a cluster's first workgroup.
    """

    name = "lane.arrive"
    operand_count = None
    property_names = frozenset({"parts", "buffer", "ring", "phase", "bytes", "copies", "products", "first"})

    @property
    def copies(self) -> bool:
        return "copies" in self.properties

    @property
    def first(self) -> bool:
        return "first" in self.properties

    @property
    def products(self) -> int | None:
        """The products that may be under way; None where nothing is said of them."""
        return self.integer("products") if "products" in self.properties else None

    @property
    def bytes(self) -> int:
        return self.integer("bytes") if "bytes" in self.properties else 0

    def problem(self) -> str | None:
        if self.bytes < 0:
            return "a negative number of bytes"
        announced = self.part("announced")
        if announced is not None and (types.element_of(announced.type) != types.i32 or types.shape_of(announced.type) != (1,)):
            return "a thread's number of bytes is a vector<1xi32>"
        return self.use_problem() or self.mask_problem("when", (1,))


class WaitPhaseOp(BarrierUseOp):
    """Until the phase of that `parity`, a scalar i32 of 0 or 1, is over: the one that is under way, or the one before it."""

    name = "lane.wait_phase"
    operand_count = 2
    property_names = frozenset({"parts", "buffer", "ring", "phase"})

    @property
    def parity(self) -> SSAValue:
        found = self.part("parity")
        assert found is not None
        return found

    def problem(self) -> str | None:
        parity = self.part("parity")
        if parity is None or parity.type != types.i32:
            return "the parity is an i32"
        return self.use_problem()


COUNTING_BARRIER_OPS = (BeginBarriersOp, ShowBarriersOp, ArriveOp, WaitPhaseOp)
