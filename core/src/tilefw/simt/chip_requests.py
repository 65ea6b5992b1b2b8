"""What selection asks of a chip, as records: accesses of a lane, copies and stores of engines, operands of units and of assembly.

Methods of `LaneChip` take one for each instruction, or few, that they emit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.machine.inst import Slice
from tilefw.simt.description import SharedForm
from tilefw.simt.select.code import Element


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """One memory access of a lane: registers of `bits` bits each, the address, a constant added to it in bytes, hints, guard.

    A load's registers are slices (of one register, in order, on a chip of `consecutive` ones), a store's may be literals and
    be anywhere (`Code.tuple`), in any register file: a slice has its class, a literal its type. Loaded elements that fill a
    register are in the form of their type, where the chip has one (`LaneChip.forms`). Registers of 8 or 16 bits come alone; one of
    16 bits in the form `w32` is two elements of 8 bits (`LaneChip.byte_pairs`). `space`
    is empty for global memory, else `shared` or, of a store to another workgroup's, `cluster`; `buffer` is then the allocation. The
    instruction is told the `buffer`, and whether it is `volatile` (see `Inst`). Where all is uniform (`Code.uniform` of a load's
    registers), one value is read for all lanes.

    With a `base`, uniform and of the pointer's width, `address` is what the lane adds to it: 32 bits, unsigned, in bytes; it may be
    uniform too. `limit`, a uniform i32, bounds that: of registers that end beyond it a load reads zeros and a store writes nothing
    (of an access that may do so in part, each is a multiple of `ChipDescription.bound_bytes`). `early` is a load that comes before
    all that the program writes to global memory.
    """

    registers: tuple[Element, ...]
    bits: int
    address: Slice
    immediate: int
    predicate: Slice | None
    buffer: int
    cache: str
    eviction: str
    volatile: bool
    space: str = ""
    base: Element | None = None
    limit: Element | None = None
    early: bool = False


@dataclass(frozen=True, slots=True)
class AsyncCopy:
    """One asynchronous copy of `bytes` from global to shared memory. Where `mask` is false zeros are written, where `predicate`
    is false nothing happens.

    `base` and `limit` are those of `LaneAccess`. Of `ChipDescription.copies_consecutive`, `address` and `wave`, where
    that is not None, are equal in all lanes of a wave: the lanes of the wave copy to consecutive places from their sum on."""

    bytes: int
    address: Slice
    immediate: int
    source: Slice
    source_immediate: int
    mask: Element | None
    predicate: Slice | None
    buffer: int
    cache: str
    eviction: str
    base: Element | None = None
    limit: Element | None = None
    wave: Slice | None = None


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """One copy of a block of an array to shared memory by the copy engine, started where `predicate` holds.

    `descriptor` is what `LaneChip.descriptor` gave, `places` where the block begins, as i32, innermost dim first. It completes with
    its bytes on the counting barrier at `barrier`: in each of so many `workgroups`, all of a cluster."""

    address: Slice
    immediate: int
    descriptor: Slice
    places: tuple[Element, ...]
    barrier: Slice
    barrier_immediate: int
    predicate: Slice | None
    buffer: int
    workgroups: int = 1


@dataclass(frozen=True, slots=True)
class BulkStore:
    """One copy of a block of shared memory to an array by the copy engine, started where `predicate` holds; the rest as `BulkCopy`
    has it. `LaneChip.finish_bulk_stores` waits for it."""

    address: Slice
    immediate: int
    descriptor: Slice
    places: tuple[Element, ...]
    predicate: Slice | None
    buffer: int


@dataclass(frozen=True, slots=True)
class AtomicAccess:
    """One atomic access of a lane to global memory: what is there becomes `kind` of it and the operand.

    `kind` is one of tile IR's (`add`, `maxs`, `xchg`, …) or `cas`, whose operands are what is expected and what takes its place;
    or `load`, without an operand: a read that sees what other workgroups' atomics wrote. Of the kinds `multicast_store`,
    `multicast_<kind>` and `multicast_load_<kind>`, the last without an operand, the address stands for all ranks' copies, and
    `type` is that of the elements; sums of floats of 16 bits are of pairs, for one element of the word around it. Else it is `i16`,
    `i32` or `i64`, of `add` also `f16`, `bf16`, `f32`, `f64` and, of two in a register, `f16x2`, `bf16x2`. `result` gets what was
    there; None where nobody asks; where `predicate` is false it stays. Order and scope are those of
    `tilefw.tile.dialect.atomic_ops`.
    """

    kind: str
    type: str
    operands: tuple[Element, ...]
    result: Slice | None
    address: Slice
    immediate: int
    predicate: Slice | None
    buffer: int
    order: str
    scope: str


@dataclass(frozen=True, slots=True)
class FragmentAccess:
    """A fragment load, or store, called `load`, of as many matrices as there are `registers`, at the row of the lane's address."""

    load: str
    registers: tuple[Slice, ...]
    address: Slice
    immediate: int
    transposed: bool
    buffer: int


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of a matrix atom: byte `byte` of a register of 32 bits, or of a literal; the others may be anything."""

    register: Element
    byte: int


@dataclass(frozen=True, slots=True)
class SharedSource:
    """An operand that a matrix unit reads from shared memory by itself: its first element is `immediate` bytes behind `address`,
    which is equal in all lanes that work together, and its rows go on `row_stride` bytes further."""

    address: Slice
    immediate: int
    form: SharedForm
    row_stride: int


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """An operand of inline assembly: the constraint's word for its register, or the number of the result whose register it shares;
    its bits, of one element or of packed ones; and what it holds."""

    constraint: str | int
    bits: int
    element: Element


@dataclass(frozen=True, slots=True)
class InlineAssembly:
    """Assembly text of the chip, in which `$0` is the register of the first of `results`, and those of `operands` follow. A result
    is the constraint's word for its register, and its bits."""

    text: str
    results: tuple[tuple[str, int], ...]
    operands: tuple[AsmOperand, ...]
