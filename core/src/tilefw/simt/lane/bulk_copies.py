"""Lane ops of copy engines: one thread starts the copy of a whole block of an array, which an engine makes by itself."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.simt.lane.memory import ORDERS, AccessOp
from tilefw.tile import types


class BulkCopyOp(AccessOp):
    """A block of an array to shared memory, by the chip's copy engine, which is told of the array by a descriptor.

    Operands: address (shared, a scalar i32), descriptor (the kernel's argument), at0, at1, … (scalar i32: where the block begins in
    the array, innermost dim first), when, barrier?. The one thread starts it for which `when`, a `vector<1xi1>`, holds, if any. It
    writes `bytes` bytes: rows one behind the other as the descriptor says, zeros for what is beyond the array. Without a barrier it
    is one of that thread's copies since its last `lane.commit`, and lands at the `lane.wait` that covers them; with one, a counting
    barrier's address, it completes with its bytes on that. `argument` is the kernel argument that is read.
    """

    name = "lane.bulk_copy"
    operand_count = None
    result_count = 0
    property_names = frozenset({"parts", "buffer", "ring", "phase", "bytes", "argument"})
    traits = ORDERS

    @property
    def bytes(self) -> int:
        return self.integer("bytes")

    @property
    def argument(self) -> int:
        return self.integer("argument")

    @property
    def at(self) -> tuple[SSAValue, ...]:
        """Where the block begins, innermost dim first."""
        return _places(self)

    def needed(self, name: str) -> SSAValue:
        """An operand that is there."""
        return _needed(self, name)

    def problem(self) -> str | None:
        _ = self.buffer, self.ring, self.phase, self.argument
        if self.bytes < 1:
            return f"a copy of {self.bytes} bytes"
        for name in ("address", "descriptor", "at0", "when"):
            if self.part(name) is None:
                return f"there is no {name}"
        barrier = self.part("barrier")
        scalars = [self.part("address"), *self.at, *([] if barrier is None else [barrier])]
        if any(value is not None and value.type != types.i32 for value in scalars):
            return "addresses in shared memory and places are i32"
        return self.mask_problem("when", (1,))


class BulkStoreOp(AccessOp):
    """A block of shared memory to an array, by the chip's copy engine: `BulkCopyOp` the other way round.

    Operands: address (shared, a scalar i32), descriptor, at0, at1, … (not negative), when. Nothing of what is beyond the array is
    written. The engine reads the `bytes` bytes until the thread's next `lane.bulk_store_wait`, and has written them when the kernel
    is over. `argument` is the kernel argument that is written.
    """

    name = "lane.bulk_store"
    operand_count = None
    result_count = 0
    property_names = frozenset({"parts", "buffer", "bytes", "argument"})
    traits = ORDERS

    @property
    def bytes(self) -> int:
        return self.integer("bytes")

    @property
    def argument(self) -> int:
        return self.integer("argument")

    @property
    def at(self) -> tuple[SSAValue, ...]:
        """Where the block begins, innermost dim first."""
        return _places(self)

    def needed(self, name: str) -> SSAValue:
        """An operand that is there."""
        return _needed(self, name)

    def problem(self) -> str | None:
        _ = self.buffer, self.argument
        if self.bytes < 1:
            return f"a store of {self.bytes} bytes"
        for name in ("address", "descriptor", "at0", "when"):
            if self.part(name) is None:
                return f"there is no {name}"
        if any(value is not None and value.type != types.i32 for value in (self.part("address"), *self.at)):
            return "addresses in shared memory and places are i32"
        return self.mask_problem("when", (1,))


class BulkStoreWaitOp(AccessOp):
    """The engine has read all that the threads for which `when` holds had it store from the allocation `buffer`; and has written
    it to arrays, with `written`."""

    name = "lane.bulk_store_wait"
    operand_count = None
    result_count = 0
    property_names = frozenset({"parts", "buffer", "written"})
    traits = ORDERS

    @property
    def written(self) -> bool:
        return "written" in self.properties

    @property
    def when(self) -> SSAValue:
        return _needed(self, "when")

    def problem(self) -> str | None:
        _ = self.buffer
        return "there is no when" if self.part("when") is None else self.mask_problem("when", (1,))


def _places(op: AccessOp) -> tuple[SSAValue, ...]:
    found: list[SSAValue] = []
    while (value := op.part(f"at{len(found)}")) is not None:
        found.append(value)
    return tuple(found)


def _needed(op: AccessOp, name: str) -> SSAValue:
    found = op.part(name)
    assert found is not None
    return found


BULK_COPY_OPS = (BulkCopyOp, BulkStoreOp, BulkStoreWaitOp)
