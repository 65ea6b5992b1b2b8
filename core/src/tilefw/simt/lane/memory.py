"""Lane ops on memory: global and shared accesses, allocations of shared memory, asynchronous copies, barriers.

An address into shared memory is an i32: bytes from the start of the workgroup's memory. Every shared access names the
allocation (`buffer`) that it accesses, and of a ring the slot: `ring` slots, `phase` iterations ahead of the one that its loop
is in, so that accesses of one iteration overlap only where their phases are equal modulo `ring`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.simt.lane.base import GenericOp
from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, dense_i64, integer_attr, string_attr

SHARED = "shared"
_READS = OpTraits(lambda: (MemoryReadEffect(),))
_WRITES = OpTraits(lambda: (MemoryWriteEffect(),))
ORDERS = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))  # of what keeps its place among accesses


class AllocOp(GenericOp):
    """`bytes` of shared memory at a multiple of `align`; the result is its address. `id` is what accesses call `buffer`.

    `label` is the author's word for it in messages. `place-shared` adds `offset`, its place in the workgroup's memory. With `kept`
    nothing else has its bytes from the program's beginning to its end.
    """

    name = "lane.alloc"
    operand_count = 0
    property_names = frozenset({"id", "bytes", "align", "label", "offset", "kept"})
    traits = PURE

    @property
    def kept(self) -> bool:
        return "kept" in self.properties

    @property
    def id(self) -> int:
        return self.integer("id")

    @property
    def bytes(self) -> int:
        return self.integer("bytes")

    @property
    def align(self) -> int:
        return self.integer("align")

    @property
    def label(self) -> str:
        attribute = self.properties.get("label")
        return attribute.data if isinstance(attribute, StringAttr) else f"buffer {self.id}"

    @property
    def offset(self) -> int | None:
        """None before placement."""
        return self.integer("offset") if "offset" in self.properties else None

    def problem(self) -> str | None:
        if self.result.type != types.i32:
            return f"an address into shared memory is an i32, not {self.result.type}"
        if self.bytes < 1 or self.align < 1 or self.align & (self.align - 1):
            return f"{self.bytes} bytes at a multiple of {self.align}: sizes are positive and alignments powers of two"
        return "the offset is not aligned" if (self.offset or 0) % self.align else None


class AccessOp(GenericOp):
    """Access k is at address[slots[k]] + immediates[k] bytes. `parts` names the operands that are there, in order."""

    global_part: ClassVar[str] = "address"  # what a base is added to
    global_immediates: ClassVar[str] = "immediates"

    def part(self, name: str) -> SSAValue | None:
        names = self.properties["parts"].data.split(",")  # type: ignore[attr-defined]
        return self._operands[names.index(name)] if name in names else None

    def numbers(self, name: str) -> tuple[int, ...]:
        return self.integers(name)

    @property
    def slots(self) -> tuple[int, ...]:
        return self.numbers("slots")

    @property
    def immediates(self) -> tuple[int, ...]:
        return self.numbers("immediates")

    @property
    def buffer(self) -> int:
        return self.integer("buffer")

    @property
    def ring(self) -> int:
        """The slots of the ring that a shared access goes to; 0 where the buffer is none."""
        return self.integer("ring") if "ring" in self.properties else 0

    @property
    def phase(self) -> int:
        return self.integer("phase") if "phase" in self.properties else 0

    @property
    def deal(self) -> int:
        """The number of the way in which elements are dealt to waves; 0 where it is not said."""
        return self.integer("deal") if "deal" in self.properties else 0

    def address_problem(self, part: str, slots: str, immediates: str) -> str | None:
        """Whether the accesses' addresses are there, and the allocation that they go to is named."""
        _ = self.buffer, self.ring, self.phase, self.deal  # each raises VerifyException where it is absent or no integer
        address = self.part(part)
        if address is None:
            return f"there is no {part}"
        count = (types.shape_of(address.type) or (1,))[0]
        if len(self.numbers(slots)) != len(self.numbers(immediates)):
            return f"{slots} and {immediates} differ in number"
        if not all(0 <= slot < count for slot in self.numbers(slots)):
            return f"{slots}: the address has {count} elements"
        return None

    def base_problem(self) -> str | None:
        """Whether base, limit and offsets fit."""
        base, limit, address = self.part("base"), self.part("limit"), self.part(self.global_part)
        if base is None:
            return None if limit is None else "a limit is one of offsets from a base"
        if types.shape_of(base.type) or not types.is_int(base.type):
            return f"the base is {base.type}, no scalar"
        if limit is not None and limit.type != types.i32:
            return f"the limit is {limit.type}, no i32"
        if address is not None and types.element_of(address.type) != types.i32:
            return f"offsets from a base are i32, not {address.type}"
        return "an immediate is negative" if min(self.numbers(self.global_immediates), default=0) < 0 else None

    def mask_problem(self, name: str, counts: tuple[int, ...]) -> str | None:
        mask = self.part(name)
        if mask is None or (types.is_bool(mask.type) and (types.shape_of(mask.type) or (1,))[0] in counts):
            return None
        return f"the {name} is {mask.type}, for {max(counts)} accesses"


class MemoryOp(AccessOp):
    """Elements k·width … (k+1)·width - 1 are one access, at address[slots[k]] + immediates[k] bytes, contiguous in memory.

    Operands: address, base?, limit?, value (stores), mask?, other? (loads). The mask has one i1 an access, or is one scalar; a
    masked-off access does not happen. Without `space` memory is global, `buffer` the kernel argument that the address comes
    from, -1 for unknown; scalar loads read one uniform value. With `space = "shared"` see the head of this file. `repeated` is said
    of a global load where several waves read the same elements; global accesses of the same `deal` have each element in the same
    wave.

    With a base, a scalar of a pointer's width, addresses are i32, what each lane adds to it, without a sign; immediates are not
    negative then. A limit, a scalar i32 without a sign, ends what may be reached: of elements whose end is beyond it, counted as
    addresses are, a load reads zeros and a store writes nothing. A mask beside it is false just there, of all elements of an
    access alike, and says where a load has `other`.
    """

    property_names = frozenset(
        {
            "parts", "width", "slots", "immediates", "buffer", "cache", "eviction", "volatile", "space", "phase", "ring",
            "repeated", "deal",
        }
    )

    @property
    def width(self) -> int:
        return self.integer("width")

    @property
    def shared(self) -> bool:
        return self.word("space") == SHARED

    @property
    def repeated(self) -> bool:
        return "repeated" in self.properties

    @property
    def fetches_anew(self) -> bool:
        """Whether each access looks at memory, as those of tile ops that say so do."""
        return "volatile" in self.properties or self.word("cache") == ".cv"

    @property
    def accessed(self) -> Attribute:
        """The type of the loaded or stored elements."""
        value = self.part("value")
        return self.results[0].type if value is None else value.type

    def problem(self) -> str | None:
        n = (types.shape_of(self.accessed) or (1,))[0]
        count = len(self.slots)
        if self.word("space") not in ("", SHARED):
            return f"there is no memory called {self.word('space')}"
        if count * self.width != n or len(self.immediates) != count:
            return f"{count} accesses of {self.width} elements are not the {n} elements"
        problem = self.base_problem() or self.address_problem("address", "slots", "immediates")
        return problem or self.mask_problem("mask", (1, count))


def access_properties(
    parts: str, width: int, slots: Sequence[int], immediates: Sequence[int], buffer: int
) -> dict[str, Attribute]:
    """The properties that every access has."""
    return {
        "parts": string_attr(parts), "width": integer_attr(width), "slots": dense_i64(tuple(slots)),
        "immediates": dense_i64(tuple(immediates)), "buffer": integer_attr(buffer),
    }


def shared_properties(buffer: int, ring: int = 0, phase: int = 0) -> dict[str, Attribute]:
    """What an access to shared memory says of where it goes; for loads and stores `space` comes on top."""
    found: dict[str, Attribute] = {"buffer": integer_attr(buffer)}
    return {**found, "ring": integer_attr(ring), "phase": integer_attr(phase)} if ring else found


class LoadOp(MemoryOp):
    """Reads global or shared memory; see MemoryOp."""

    name = "lane.load"
    traits = _READS


class StoreOp(MemoryOp):
    """Writes global or shared memory; see MemoryOp."""

    name = "lane.store"
    result_count = 0
    traits = _WRITES


class FragmentLoadOp(AccessOp):
    """A wave reads matrices of shared memory by the chip's fragment load called `load`, `count` matrices an access.

    Also by a transposing load, of one access as many registers of 4 bytes as `count` says.

    Every lane gives the address of the row that is its to give. A matrix is 4 bytes in every lane: the result has the accesses'
    matrices one after the other, and the elements of 4 bytes each. `transposed` exchanges a matrix's rows and columns.
    """

    name = "lane.fragment_load"
    property_names = frozenset({"parts", "load", "count", "slots", "immediates", "buffer", "transposed", "phase", "ring"})
    traits = _READS

    @property
    def load(self) -> str:
        return self.word("load")

    @property
    def count(self) -> int:
        return self.integer("count")

    @property
    def transposed(self) -> bool:
        return "transposed" in self.properties

    def problem(self) -> str | None:
        if not self.load:
            return "the fragment load has no name"
        words = len(self.slots) * self.count
        bits = types.dtype_of(self.result.type).storage_bits
        if bits > 32 or types.shape_of(self.result.type) != (words * 32 // bits,):
            return f"{words} registers of 32 bits are not {self.result.type}"
        return self.address_problem("address", "slots", "immediates")


class FragmentStoreOp(AccessOp):
    """A wave writes matrices to shared memory by the chip's fragment store called `store`, `count` matrices an access: what the
    fragment load of the same description would read from there (`FragmentLoadOp`)."""

    name = "lane.fragment_store"
    property_names = frozenset({"parts", "store", "count", "slots", "immediates", "buffer", "transposed", "phase", "ring"})
    result_count = 0
    traits = _WRITES

    @property
    def store(self) -> str:
        return self.word("store")

    @property
    def count(self) -> int:
        return self.integer("count")

    @property
    def transposed(self) -> bool:
        return "transposed" in self.properties

    @property
    def value(self) -> SSAValue:
        """The accesses' matrices one after the other."""
        found = self.part("value")
        assert found is not None
        return found

    def problem(self) -> str | None:
        if not self.store:
            return "the fragment store has no name"
        if self.part("value") is None:
            return "there is no value"
        words = len(self.slots) * self.count
        bits = types.dtype_of(self.value.type).storage_bits
        if bits > 32 or types.shape_of(self.value.type) != (words * 32 // bits,):
            return f"{words} registers of 32 bits are not {self.value.type}"
        return self.address_problem("address", "slots", "immediates")


class CopyAsyncOp(AccessOp):
    """`bytes` an access from global to shared memory, without registers, landing at the `lane.wait` that covers them.

    Operands: address (shared), wave?, source (global), base?, limit?, mask?, when?. A masked-off access writes zeros; the mask has
    one i1 an access or one for all. Where `when`, one i1 a thread, is false, the thread copies nothing at all. `argument` is the
    kernel argument that is read, -1 for unknown; `deal` as a load has it. Each thread's copies since its last `lane.commit` are one
    group. Base and limit are those of `MemoryOp`: beyond the limit zeros are read.

    `consecutive` copies of a wave land one behind the other, lane i's i times `bytes` behind the address. That is equal in all
    lanes of the workgroup then, `wave`, which is added to it, in those of a wave.
    """

    name = "lane.copy_async"
    global_part = "source"
    global_immediates = "source_immediates"
    property_names = frozenset({
        "parts", "bytes", "slots", "immediates", "source_slots", "source_immediates", "buffer", "argument", "cache", "eviction",
        "phase", "ring", "deal", "consecutive",
    })
    result_count = 0
    traits = ORDERS

    @property
    def consecutive(self) -> bool:
        return "consecutive" in self.properties

    @property
    def bytes(self) -> int:
        return self.integer("bytes")

    @property
    def argument(self) -> int:
        return self.integer("argument")

    @property
    def source_slots(self) -> tuple[int, ...]:
        return self.numbers("source_slots")

    @property
    def source_immediates(self) -> tuple[int, ...]:
        return self.numbers("source_immediates")

    def problem(self) -> str | None:
        count = len(self.slots)
        if self.bytes < 1:
            return f"a copy of {self.bytes} bytes"
        if len(self.source_slots) != count:
            return f"{count} places for {len(self.source_slots)} sources"
        return (
            self.address_problem("address", "slots", "immediates")
            or self.address_problem("source", "source_slots", "source_immediates") or self.base_problem()
            or self.mask_problem("mask", (1, count)) or self.mask_problem("when", (1,))
        )


class CommitOp(GenericOp):
    """Closes the group of the thread's asynchronous copies since the last commit; an empty group counts as well."""

    name = "lane.commit"
    operand_count = 0
    result_count = 0
    traits = ORDERS


class WaitOp(GenericOp):
    """Until all but the last `pending` groups of this thread have landed. Other threads' need a barrier after it."""

    name = "lane.wait"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"pending"})
    traits = ORDERS

    @property
    def pending(self) -> int:
        return self.integer("pending")

    def problem(self) -> str | None:
        return None if self.pending >= 0 else "a negative number of groups"


class HandOverOp(GenericOp):
    """The thread's copies since the last one fill a slot of the program's rings, each of `slots`; behind it all threads may read
    it.

    Operands: the slot and its parity, uniform i32. Slots follow one another, and the parity changes with each round. The pass
    `divide-roles` takes it out: what comes before is a producer's, what reads the slot a consumer's.
    """

    name = "lane.hand_over"
    operand_count = 2
    result_count = 0
    property_names = frozenset({"slots"})
    traits = ORDERS

    @property
    def slots(self) -> int:
        return self.integer("slots")

    def problem(self) -> str | None:
        fits = all(operand.type == types.i32 for operand in self._operands)
        return None if fits and self.slots > 1 else "takes a slot and its parity, i32, of two slots at least"


class BarrierOp(GenericOp):
    """All threads of the workgroup arrive before any goes on; memory before it is seen after it, within the workgroup."""

    name = "lane.barrier"
    operand_count = 0
    result_count = 0
    traits = ORDERS


class TrapOp(GenericOp):
    """The launch is given up."""

    name = "lane.trap"
    operand_count = 0
    result_count = 0
    traits = ORDERS


MEMORY_OPS = (
    AllocOp, LoadOp, StoreOp, FragmentLoadOp, FragmentStoreOp, CopyAsyncOp, CommitOp, WaitOp, HandOverOp, BarrierOp, TrapOp,
)
