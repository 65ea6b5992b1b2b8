"""What an element of a value is: read from memory where it is stored, else made of elements of its operands.

`Elements.at(value, index)` writes the code of one vector of elements. Uniform indices make one element, which the machine repeats
where it meets vectors. What was made for one index is not made again in the same region.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import Any, Generic, cast

import numpy as np
from xdsl.ir import OpResult, SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.loops.access import AccessDim, TileAccess, access_of, element_name
from tilefw.loops.buffers import TileBuffer, bytes_of
from tilefw.loops.index import Index, IndexMath, Scopes, fixed
from tilefw.loops.index_map import Indices, flat_index, operand_index
from tilefw.loops.limits import Limits, MaskLimit, limit_of_dim, limit_of_row
from tilefw.loops.machine import ElementMemory, LoopMachine, V
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.simt.expand.builder import Legal
from tilefw.tile import numbers, types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.text.source_location import place_of

_SHORT = 1024
"""Bytes: a run of this length in memory is long enough for processors to notice, and as much is fetched ahead of shorter ones: 16
cache lines are under way while one arrives."""


def code_of(op: ops.ConstantOp) -> int:
    """The bits of a constant's element, read without a sign."""
    type_ = op.result.type
    if types.is_pointer(type_):
        return int(op.value) % (1 << 64)
    dtype = types.dtype_of(type_)
    value = np.array([op.value], np.float64 if dtype.is_float else np.int64)
    return int.from_bytes(numbers.to_bytes(value, dtype).tobytes(), "little")


class Elements(Generic[V]):
    """Writes elements of values for one function.

    `scalars` are the values of no dims, `buffers` the memory of those that are stored, `filling` that of those whose elements are
    stored as they are made. `inside` are bases of vectors that lie below limits of masks, and below which. `run`: how many elements
    of a row are made before those of the next; 0 where it is not known.
    """

    def __init__(self, machine: LoopMachine[V], facts: AxisInfoAnalysis) -> None:
        self.machine = machine
        self.facts = facts
        self.scopes = Scopes()
        self.legal = Legal(machine, machine.rules)
        self.scalars: dict[SSAValue, V] = {}
        self.buffers: dict[SSAValue, TileBuffer] = {}
        self.filling: dict[SSAValue, TileBuffer] = {}
        self.inside: dict[Any, Limits] = {}
        self.run = 0

    def math(self, lanes: int) -> IndexMath[V]:
        """Index arithmetic for vectors of `lanes` elements."""
        return IndexMath(self.machine, self.scopes, lanes)

    def at(self, value: SSAValue, index: Indices, math: IndexMath[V]) -> V:
        """The elements of a value at an index: of one lane where they are one element."""
        if not types.is_tile(value.type):
            return self.scalars[value]
        return self.scopes.cached((value, index, math.lanes), lambda: self.made(value, index, math))

    def made(self, value: SSAValue, index: Indices, math: IndexMath[V]) -> V:
        """The elements of a value, read or computed now."""
        if value in self.buffers:
            return self.read(self.buffers[value], index, math)
        around, self.machine.origin = self.machine.origin, cast(OpResult, value).op
        found = self._computed(value, index, math)
        self.machine.origin = around
        if value in self.filling:
            self.write(self.filling[value], index, found, math)
        return found

    def ahead(self, value: SSAValue, outer: Indices, math: IndexMath[V]) -> None:
        """Before the loop along the last dim of a value: make what its elements are made of that is the same all along the loop,
        but for what is loaded for it. The loop may have no turn."""
        self._ahead(value, (*outer, None), math, set())

    def _ahead(self, value: SSAValue, index: tuple[Index[V] | None, ...], math: IndexMath[V], seen: set[SSAValue]) -> None:
        if value in seen or not types.is_tile(value.type):
            return
        seen.add(value)
        known = [each for each in index if each is not None]
        op = value.owner
        if len(known) == len(index):
            if not self.loads(value):
                self.at(value, tuple(known), math)
        elif value in self.buffers:
            return
        elif isinstance(op, ElementwiseOp):
            for operand in op.operands:
                self._ahead(operand, index, math, seen)
        elif isinstance(op, ops.BroadcastOp):
            sizes = types.shape_of(op.source.type)
            self._ahead(op.source, tuple(fixed(0) if n == 1 else each for n, each in zip(sizes, index, strict=True)), math, seen)
        elif isinstance(op, ops.ExpandDimsOp):
            self._ahead(op.source, (*index[: op.axis], *index[op.axis + 1 :]), math, seen)

    def loads(self, value: SSAValue) -> bool:
        """Whether making elements of a value reads memory of arguments, or what is being written."""
        return self._loads(value, set())

    def _loads(self, value: SSAValue, seen: set[SSAValue]) -> bool:
        if value in seen or value in self.buffers or not types.is_tile(value.type):
            return False
        seen.add(value)
        op = value.owner
        pure = value not in self.filling and isinstance(op, ElementwiseOp | StructuralOp | ops.ConstantOp | ops.IotaOp)
        return not pure or any(self._loads(operand, seen) for operand in op.operands)  # type: ignore[union-attr]  # an op has them

    def _computed(self, value: SSAValue, index: Indices, math: IndexMath[V]) -> V:
        assert isinstance(value, OpResult)
        op = value.op
        if isinstance(op, ElementwiseOp):
            limit = limit_of_row(value)
            if limit is not None and self._is_inside(limit, index[0]):
                return self.machine.const(1, "i1")
            return self.row(op, [self.at(operand, index, math) for operand in op.operands])
        if isinstance(op, ops.ConstantOp):
            return self.machine.const(code_of(op), element_name(op.result.type))
        if isinstance(op, ops.IotaOp):
            return self._counted(math.add(index[0], Index(op.start, 0, op.start)), math)
        if isinstance(op, ops.LoadOp | ops.LoadBlockOp):
            return self.load(access_of(op), index, math)
        if isinstance(op, ops.AddPtrOp):
            return self.moved(self.at(op.pointer, index, math), self.at(op.offset, index, math), op.pointer)
        if isinstance(op, GatherOp):
            return self._picked(op, index, math)
        if isinstance(op, ops.JoinOp):
            return self._joined(op, index, math)
        if isinstance(op, ops.SplitOp):
            number = op.results.index(value)
            return self.at(op.source, (*index, Index(number, 0, number)), math)
        source = operand_index(op, index, math) if isinstance(op, StructuralOp) else None
        if source is None:
            raise UnsupportedError(f"no machine without lanes serves '{op.name}'", code="TFW0610", place=place_of(op))
        return self.at(op.operands[0], source, math)

    def _counted(self, index: Index[V], math: IndexMath[V]) -> V:
        """An index as an i32."""
        if index.vector is not None or index.stride == 0:
            return self.legal("trunci", math.value(index), to="i32")
        lanes = self.legal("trunci", self.machine.numbered(math.lanes), to="i32")
        steps = self.legal("muli", lanes, self.legal.i32(index.stride))
        return self.legal("addi", self.legal("trunci", math.value(Index(index.base)), to="i32"), steps)

    def row(self, op: ElementwiseOp, operands: list[V]) -> V:
        """A row of the elementwise table on operands of any lanes."""
        name, result = op.row.name, element_name(op.result.type)
        if name in ("ptr_to_int", "int_to_ptr"):
            wider = name == "int_to_ptr" and operands[0].type != result
            return self.legal("extu", operands[0], to=result) if wider else self.resized(operands[0], result)
        if name == "castf" and op.rounding == "rtz":
            name = "castf_rtz"
        try:
            return self.legal(name, *operands, to=result if op.row.is_cast else None)
        except UnsupportedError as error:
            raise UnsupportedError(str(error.message), code=error.code, place=place_of(op)) from None

    def moved(self, pointer: V, offset: V, of: SSAValue) -> V:
        """A pointer moved by an offset in elements."""
        width = bytes_of(element_name(types.pointee_of(of.type)))
        distance = self.legal("muli", self.resized(offset, "i64"), self.legal.integer(width, "i64"))
        return self.legal("addi", pointer, distance)

    def resized(self, value: V, to: str) -> V:
        """An integer as one of another width."""
        if value.type == to:
            return value
        return self.legal("exts" if to == "i64" else "trunci", value, to=to)

    # -- the program's own memory

    def place(self, buffer: TileBuffer, index: Indices, math: IndexMath[V]) -> tuple[ElementMemory[V], int]:
        """Where elements of a buffer stand, and in how many lanes."""
        return self._placed(buffer, math.spread(self._flat(buffer, index, math)), math)

    def _flat(self, buffer: TileBuffer, index: Indices, math: IndexMath[V]) -> Index[V]:
        """The number of an element in a buffer's memory."""
        shape = buffer.shape
        if buffer.panel:
            front, (row, column) = index[:-2], index[-2:]
            number, within = math.divided(column, buffer.panel)
            index, shape = (*front, number, row, within), (*shape[:-2], shape[-1] // buffer.panel, shape[-2], buffer.panel)
        return flat_index(index, shape, math)

    def _placed(self, buffer: TileBuffer, flat: Index[V], math: IndexMath[V]) -> tuple[ElementMemory[V], int]:
        address = self.base(buffer)
        size = bytes_of(buffer.element)
        if flat.vector is not None:
            return ElementMemory(address, flat.vector, 0, True, size), math.lanes
        aligned = gcd(64, flat.divisor * size) or 64
        lanes = 1 if flat.stride == 0 else math.lanes
        return ElementMemory(address, math.value(Index(flat.base)), flat.stride or 1, True, aligned), lanes

    def base(self, buffer: TileBuffer) -> V:
        """The address of a buffer's first byte."""
        address = self.machine.scratch(buffer.offset)
        return address if buffer.moved is None else self.legal("addi", address, buffer.moved)

    def address(self, buffer: TileBuffer, index: Indices = ()) -> V:
        """The address of a buffer, or of one of its elements."""
        if not index:
            return self.base(buffer)
        memory, _ = self.place(buffer, index, self.math(1))
        assert memory.address is not None
        distance = self.legal("muli", memory.offset, self.legal.integer(bytes_of(buffer.element), "i64"))
        return self.legal("addi", memory.address, distance)

    def read(self, buffer: TileBuffer, index: Indices, math: IndexMath[V]) -> V:
        """Elements of a buffer; those of one stretch of memory that is no longer than a vector at once, and then in their order."""
        flat = self._flat(buffer, index, math)
        first, width = _stretch(flat, prod(buffer.shape), math.lanes)
        if width:
            there = Index(flat.base, 0, flat.divisor)
            start = Index(math.add(there, fixed(first)).base, 1 if width > 1 else 0, gcd(flat.divisor, width))
            memory, lanes = self._placed(buffer, start, self.math(width))
            found = self.machine.load(memory, buffer.element, lanes)
            return self.machine.permuted(found, [step - first for step in flat.steps])
        memory, lanes = self._placed(buffer, math.spread(flat), math)
        return self.machine.load(memory, buffer.element, lanes)

    def write(self, buffer: TileBuffer, index: Indices, value: V, math: IndexMath[V]) -> None:
        """Elements into a buffer."""
        memory, lanes = self.place(buffer, index, math)
        self.machine.store(memory, value if value.lanes == lanes else self.machine.repeated(value, lanes))

    def _picked(self, op: GatherOp, index: Indices, math: IndexMath[V]) -> V:
        size = types.shape_of(op.source.type)[op.axis]
        number = self.legal("exts", self.at(op.index, index, math), to="i64")
        within = self.legal("rems", number, self.legal.integer(size, "i64"))
        negative = self.legal("lts", within, self.legal.integer(0, "i64"))
        within = self.legal("select", negative, self.legal("addi", within, self.legal.integer(size, "i64")), within)
        picked: Index[Any] = Index(within) if within.lanes == 1 else Index(0, vector=within)
        return self.at(op.source, (*index[: op.axis], picked, *index[op.axis + 1 :]), math)

    def _joined(self, op: ops.JoinOp, index: Indices, math: IndexMath[V]) -> V:
        last, rest = index[-1], index[:-1]
        if last.number is not None:
            return self.at(op.operands[last.number], rest, math)
        first = self.legal("eqi", math.value(last), self.legal.integer(0, "i64"))
        return self.legal("select", first, *(self.at(operand, rest, math) for operand in op.operands))

    # -- memory of the kernel's arguments

    def load(self, access: TileAccess, index: Indices, math: IndexMath[V]) -> V:
        """Elements that a load reads."""
        memory, mask, lanes = self.reach(access, index, math)
        other = None
        if mask is not None and access.other is not None:
            other = self.at(access.other, index if types.is_tile(access.other.type) else (), math)
        lanes = max(lanes, 1 if mask is None else mask.lanes, 1 if other is None else other.lanes)
        if sum(size > 1 for size in access.shape) == 1:
            memory = replace(memory, streamed=True)
        elif memory.stride == 1:
            memory = replace(memory, ahead=self._ahead_of(access))
        return self.machine.load(memory, access.element, lanes, mask, other)

    def _ahead_of(self, access: TileAccess) -> V | None:
        """How many elements further what is read some rows later stands, where rows are read in short runs: a processor that looks
        for runs in memory ends its search with each, and fetches nothing of the next."""
        dims, length = access.dims or (), self.run * bytes_of(access.element)
        if not self.machine.fetches or access.volatile or len(dims) < 2 or not dims[-1].unit or not 0 < length <= _SHORT:
            return None
        rows, stride = _SHORT // length, dims[-2].stride.owner
        if access.shape[-2] <= rows:
            return None
        if isinstance(stride, ops.ConstantOp) and stride.value == self.run == access.shape[-1]:
            return None  # the rows are one run
        step = self.resized(self.scalars[dims[-2].stride], "i64")
        return self.legal("muli", step, self.legal.integer(rows, "i64"))

    def reach(self, access: TileAccess, index: Indices, math: IndexMath[V]) -> tuple[ElementMemory[V], V | None, int]:
        """Where the accessed elements at an index stand, which of them are accessed (None for all), and in how many lanes."""
        if access.dims is not None:
            return self._block(access, access.dims, tuple(math.spread(each) for each in index), math)
        mask = None if access.mask is None else self.at(access.mask, index, math)
        zero = self.legal.integer(0, "i64")
        size = bytes_of(access.element)
        if access.offsets is None:
            addresses = self.at(access.base, index, math)
            if addresses.lanes == 1:
                return ElementMemory(addresses, zero, 0, alignment=size, volatile=access.volatile), mask, 1
            return self._addressed(access, access.base, addresses, index, math), mask, addresses.lanes
        base = self.scalars[access.base]
        if self._consecutive(access.offsets, index, math):
            first = self.at(access.offsets, _first_lane(index), math)
            memory = ElementMemory(base, self.resized(first, "i64"), 1, alignment=size, volatile=access.volatile)
            return memory, mask, math.lanes
        offsets = self.resized(self.at(access.offsets, index, math), "i64")
        return ElementMemory(base, offsets, 0, alignment=size, volatile=access.volatile), mask, offsets.lanes

    def _addressed(
        self, access: TileAccess, pointers: SSAValue, addresses: V, index: Indices, math: IndexMath[V]
    ) -> ElementMemory[V]:
        """Memory at a vector of addresses."""
        size = bytes_of(access.element)
        if self._consecutive(pointers, index, math):
            first = self.at(pointers, _first_lane(index), math)
            return ElementMemory(first, self.legal.integer(0, "i64"), 1, alignment=size, volatile=access.volatile)
        return ElementMemory(None, addresses, 0, alignment=size, volatile=access.volatile)

    def _consecutive(self, value: SSAValue, index: Indices, math: IndexMath[V]) -> bool:
        """Whether the elements at an index are surely consecutive numbers, or pointers."""
        moving = [dim for dim, i in enumerate(index) if not i.uniform]
        if len(moving) != 1 or math.lanes == 1:
            return False
        dim = moving[0]
        at = index[dim]
        run = self.facts[value].contiguity[dim]
        return at.vector is None and at.stride == 1 and run % math.lanes == 0 and at.divisor % math.lanes == 0

    def _block(
        self, access: TileAccess, dims: tuple[AccessDim, ...], index: Indices, math: IndexMath[V]
    ) -> tuple[ElementMemory[V], V | None, int]:
        base = self.scalars[access.base]
        total = self.legal.integer(0, "i64")
        stride: V | int = 0
        masks: list[V] = []
        spread = False
        for dim, size, at in zip(dims, access.shape, index, strict=True):
            if dim.bound is not None:
                masks += self._within(dim, size, at, math)
            step = self.resized(self.scalars[dim.stride], "i64")
            whole = at.vector is not None
            first = math.value(at if whole else Index(at.base))
            start = self.legal("addi", self.resized(self.scalars[dim.offset], "i64"), first)
            total = self.legal("addi", total, start if dim.unit else self.legal("muli", start, step))
            if whole:
                spread = True
            elif at.stride:
                lane = at.stride if dim.unit else self.legal("muli", step, self.legal.integer(at.stride, "i64"))
                stride = lane if isinstance(stride, int) and stride == 0 else self._sum(stride, lane)
        mask = None
        for found in masks:
            mask = found if mask is None else self.legal("andi", mask, found)
        size = bytes_of(access.element)
        lanes = 1 if isinstance(stride, int) and stride == 0 and not spread else math.lanes
        if spread and not (isinstance(stride, int) and stride == 0):
            steps = self.legal("muli", self.machine.numbered(math.lanes), self._word(stride))
            total = self.legal("addi", total, steps)
        memory = ElementMemory(base, total, 0 if spread else stride if lanes > 1 else 0, alignment=size, volatile=access.volatile)
        return memory, mask, lanes

    def _word(self, stride: V | int) -> V:
        return cast(V, self.legal.integer(stride, "i64") if isinstance(stride, int) else stride)

    def _sum(self, a: V | int, b: V | int) -> V | int:
        return a + b if isinstance(a, int) and isinstance(b, int) else self.legal("addi", self._word(a), self._word(b))

    def _within(self, dim: AccessDim, size: int, at: Index[V], math: IndexMath[V]) -> list[V]:
        """The conditions that an element of a dim of `size` is accessed under."""
        assert dim.bound is not None
        if self._is_inside(limit_of_dim(dim), at):
            return []
        offset, bound = (self.resized(self.scalars[v], "i64") for v in (dim.offset, dim.bound))
        if at.vector is not None or at.stride not in (0, 1):
            place = self.legal("addi", offset, math.value(at))
            conditions = [self.legal("lts", place, bound)]
            return [*conditions, self.legal("ges", place, self.legal.integer(0, "i64"))] if dim.lower else conditions
        zero = self.legal.integer(0, "i64")
        if at.stride == 0:
            place = self.legal("addi", offset, math.value(at))
            conditions = [self.legal("lts", place, bound)]
            return [*conditions, self.legal("ges", place, zero)] if dim.lower else conditions
        # Lanes are compared in 32 bits with how many of the tile's elements lie below the bound, and below 0, less those before.
        lanes = self.legal("trunci", self.machine.numbered(math.lanes), to="i32")
        before = self.legal("trunci", math.value(Index(at.base)), to="i32")
        below = self._count(bound, offset, size)
        conditions = [self.legal("lts", lanes, self.legal("subi", below, before))]
        if dim.lower:
            negative = self._count(zero, offset, size)
            conditions.append(self.legal("ges", lanes, self.legal("subi", negative, before)))
        return conditions

    def _count(self, bound: V, offset: V, size: int) -> V:
        return self.legal("trunci", self._clamped(bound, offset, size), to="i32")

    def _clamped(self, bound: V, offset: V, size: int) -> V:
        """`bound` - `offset`, from 0 to `size`. The difference may have 65 bits: a positive one fits into 64 without a sign."""
        distance = self.legal("minu", self.legal("subi", bound, offset), self.legal.integer(size, "i64"))
        return self.legal("select", self.legal("lts", offset, bound), distance, self.legal.integer(0, "i64"))

    # -- limits of masks

    def below(self, limit: MaskLimit, size: int) -> V:
        """How many elements of a dim of `size` lie below a limit, an i64."""

        def make() -> V:
            offset = limit.offset
            first = self.legal.integer(offset, "i64") if isinstance(offset, int) else self.resized(self.scalars[offset], "i64")
            return self._clamped(self.resized(self.scalars[limit.bound], "i64"), first, size)

        return self.scopes.cached(("below", limit, size), make)

    def _is_inside(self, limit: MaskLimit | None, at: Index[V]) -> bool:
        plain = at.vector is None and not at.steps and at.stride in (0, 1)
        return plain and not isinstance(at.base, int) and limit in self.inside.get(at.base, ())


def _stretch(flat: Index[Any], size: int, lanes: int) -> tuple[int, int]:
    """Of elements of a buffer of `size`, the least aligned stretch that has them all: where it begins from the base on, and its
    length. That is 0 where it is longer than a vector."""
    if not flat.steps:
        return 0, 0
    least, most = min(flat.steps), max(flat.steps)
    width = 1
    while width < lanes and least // width != most // width:
        width *= 2
    first = least // width * width
    return (first, width) if most < first + width and flat.divisor % width == 0 and size % width == 0 else (0, 0)


def _first_lane(index: Indices) -> Indices:
    """The index of lane 0."""
    return tuple(Index(i.base, 0, i.divisor) for i in index)
