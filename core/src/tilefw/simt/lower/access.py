"""Tile memory accesses to lane accesses: addresses split into a uniform part, a part per lane and constants, masks, widths.

In each dim an element's index is (thread part XOR c1) + c2: c1 are the bits of the register's constant that threads have too, c2
the others. Where the bases of a layout are disjoint c1 is zero, and an address is uniform base + what the thread adds + a
constant: the instruction's immediate where strides are constants, one address register for each distinct product of a register
coordinate and a run-time stride otherwise. Every further c1 costs address registers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir import Attribute, SSAValue

from tilefw.api.errors import InternalError
from tilefw.simt import lane
from tilefw.simt.assign.accesses import Accesses, PointerOp
from tilefw.simt.facts import LaneFacts
from tilefw.simt.lane import thread_bits
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.simt.layout import LinearLayout
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import BlockAccess

I32_LIMIT = 1 << 31
APART = 16  # up to so many addresses or masks are computed one by one, so that what a loop does not change stands before it

Constants = tuple[int, ...]  # one a dim


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the accesses of an op go: address vector, mask (one i1 an access, or one for all), and `MemoryOp`'s properties.

    With a base, addresses are offsets from it; with a limit, the mask is there only if a load has something for what lies beyond.
    `inside` stands for such a mask, an i1 an element, where the limit may part the elements of an access.
    """

    address: SSAValue
    mask: SSAValue | None
    width: int
    slots: Sequence[int]
    immediates: Sequence[int]
    base: SSAValue | None = None
    limit: SSAValue | None = None
    inside: SSAValue | None = None


@dataclass(frozen=True, slots=True)
class Indices:
    """A block's indices: `parts` of the thread a dim (None for 0), and of each access the two constants."""

    parts: list[SSAValue | None]
    xors: list[Constants]
    adds: list[Constants]


class Addressing:
    """Makes indices, addresses and masks with a builder; `scalars` maps tile-level scalars to lane-level ones."""

    def __init__(
        self, builder: LaneBuilder, scalars: dict[SSAValue, SSAValue], facts: LaneFacts, pointer: Attribute, accesses: Accesses
    ) -> None:
        self.builder = builder
        self.scalars = scalars
        self.facts = facts
        self.pointer = pointer
        self.accesses = accesses
        self.spare = 0  # bits of the thread index that are 0 in all threads, as the others have left

    def thread_id(self) -> SSAValue:
        """The thread's index in the workgroup, as `vector<1xi32>`."""
        return self.builder.numbered("thread_id", lambda: lane.ThreadIdOp.create(result_types=[lane.vector(1, types.i32)]))

    def thread_part(self, bases: Sequence[int]) -> SSAValue | None:
        """XOR of the bases of the thread index's set bits, as `vector<1xi32>`; None when all are zero."""
        ours = [0 if self.spare >> bit & 1 else basis for bit, basis in enumerate(bases)]
        highest = ((1 << len(ours)) - 1 & ~self.spare).bit_length()
        return thread_bits.linear(self.builder, self.thread_id(), ours[:highest])

    def index(self, layout: LinearLayout) -> SSAValue:
        """The flat index of every register's element: `vector<Nxi32>`."""
        b = self.builder
        part = self.thread_part(layout.thread)
        constants = b.constants(list(layout.elements), types.i32)
        if part is None:
            return constants
        return b.op("addi" if layout.disjoint else "xori", b.splat(part, layout.registers), constants)

    def only_copy(self, layout: LinearLayout) -> SSAValue | None:
        """Whether this thread is the one of those that hold the same elements that may store; None when there are no copies."""
        copies, ours = layout.copies & ~self.spare, (1 << len(layout.thread)) - 1 & ~self.spare
        if not copies:
            return None
        vec1 = lane.vector(1, types.i32)
        bits = self.thread_id()
        if copies != ours:
            bits = self.builder.op("andi", bits, self.builder.constant(copies, vec1))
        return self.builder.op("eqi", bits, self.builder.constant(0, vec1))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """The conjunction of two masks, of which either may be absent or of one element."""
        if a is None or b is None or a is b:
            return b if a is None else a
        n = max((types.shape_of(v.type) or (1,))[0] for v in (a, b))
        return self.builder.op("andi", self.builder.splat(a, n), self.builder.splat(b, n))

    def scaled(self, offset: SSAValue, size: int) -> SSAValue:
        """An offset in elements as bytes, in the pointer's width."""
        b = self.builder
        with b.promising():
            wide = b.extend(offset, self.pointer)
            return b.op("muli", wide, b.constant(size, wide.type))

    def advance(self, pointer: SSAValue, offset: SSAValue, size: int) -> SSAValue:
        """A pointer and an offset in elements. Of a sum, which must not wrap, the terms that loops change least are added first."""
        b = self.builder
        terms = sorted(summands(offset), key=b.depth)
        at = 0
        while at < len(terms):
            depth = b.depth(terms[at])
            total = terms[at]
            at += 1
            with b.promising():
                while at < len(terms) and (b.depth(terms[at]) == depth):
                    total = b.op("addi", total, terms[at])
                    at += 1
                pointer = b.op("addi", pointer, self.scaled(total, size))
        return pointer

    # Blocks.

    def block(self, op: BlockAccess, layout: LinearLayout) -> Placed:
        """The accesses of a block, each at an address of its own."""
        width = self.accesses.access_width(op, layout)
        indices = self.indices(op, layout, width)
        with self.builder.promising():
            address, slots, immediates = self._registers(op, indices)
        return Placed(address, self.bounds(op, indices), width, slots, immediates)

    def indices(self, op: BlockAccess, layout: LinearLayout, width: int) -> Indices:
        bases = [layout.coordinates(t) for t in layout.thread]
        parts = [self.thread_part([basis[d] for basis in bases]) for d in range(len(op.block))]
        common = [0] * len(op.block)
        for basis in bases:
            common = [c | x for c, x in zip(common, basis, strict=True)]
        firsts = [layout.coordinates(layout.elements[k]) for k in range(0, layout.registers, width)]
        xors = [tuple(x & c for x, c in zip(first, common, strict=True)) for first in firsts]
        adds = [tuple(x & ~c for x, c in zip(first, common, strict=True)) for first in firsts]
        return Indices(parts, xors, adds)

    def part(self, part: SSAValue | None, constant: int) -> SSAValue | None:
        """The thread's part of an index for one of the constants that XOR it."""
        return self.builder.op("xori", part, self.builder.constant(constant, part.type)) if part is not None and constant else part

    def size(self, op: BlockAccess) -> int:
        return types.dtype_of(op.block_type).storage_bits // 8

    def _registers(self, op: BlockAccess, indices: Indices) -> tuple[SSAValue, list[int], list[int]]:
        b, size = self.builder, self.size(op)
        constants = [self.facts.constant(s) for s in op.strides]
        slots: list[int] = []
        immediates: list[int] = []
        known: dict[tuple[Constants, Constants], int] = {}
        made: dict[tuple[Constants, Constants], SSAValue] = {}
        addresses: list[SSAValue] = []
        for xor, add in zip(indices.xors, indices.adds, strict=True):
            immediate = sum(c * s * size for c, s in zip(add, constants, strict=True) if s is not None)
            variable = tuple(0 if s is not None else c for c, s in zip(add, constants, strict=True))
            if abs(immediate) >= I32_LIMIT // 2:
                raise InternalError(f"a block spans {immediate} bytes, more than an immediate holds")
            if (xor, variable) not in known:
                known[xor, variable] = len(addresses)
                addresses.append(self._address(op, indices, xor, variable, made))
            slots.append(known[xor, variable])
            immediates.append(immediate)
        return b.join(addresses), slots, immediates

    def _address(
        self, op: BlockAccess, indices: Indices, xor: Constants, add: Constants, made: dict[tuple[Constants, Constants], SSAValue]
    ) -> SSAValue:
        """An address register. In a loop it is another one and the step of one bit, as steps of all would hold registers."""
        key = (xor, add)
        if key not in made:
            b, d = self.builder, next((d for d, c in enumerate(add) if c), None)
            if d is None:
                made[key] = self._base(op, [self.part(p, c) for p, c in zip(indices.parts, xor, strict=True)])
                return made[key]
            last = 1 << (add[d].bit_length() - 1) if b.in_loop else add[d]
            rest = (*add[:d], add[d] - last, *add[d + 1 :])
            stride = b.extend(self.scalars[op.strides[d]], self.pointer)
            step = b.op("muli", stride, b.constant(last * self.size(op), self.pointer))
            made[key] = b.op("addi", self._address(op, indices, xor, rest, made), b.splat(step, 1))
        return made[key]

    def _base(self, op: BlockAccess, parts: list[SSAValue | None]) -> SSAValue:
        """The base and every dim's index times stride. What loops around change least is added first, so that it stands before
        them; where nothing tells terms apart the base comes last, and accesses of other bases share the rest."""
        b = self.builder
        start, away = self._start(op)
        terms = [(b.depth(term), 0, term) for term in (*self._terms(op, parts), *away)]
        terms.append((b.depth(start), 1, start))
        total: SSAValue | None = None
        for _, _, term in sorted(terms, key=lambda entry: entry[:2]):
            if total is not None and types.shape_of(total.type) != types.shape_of(term.type):
                total, term = b.splat(total, 1), b.splat(term, 1)
            total = term if total is None else b.op("addi", total, term)
        assert total is not None
        return b.splat(total, 1)

    def _start(self, op: BlockAccess) -> tuple[SSAValue, list[SSAValue]]:
        """The pointer that a block's base was made from, and how far the base is from it, as terms in bytes.

        Where no loop is around, 64 bits that were added to a pointer go with the other terms, as blocks of other pointers may be as
        far from theirs. 32 bits stay: many chips scale and add them at once.
        """
        made = op.base.owner
        if not isinstance(made, ops.AddPtrOp) or types.dtype_of(made.offset.type).bits <= 32 or self.builder.in_loop:
            return self.scalars[op.base], []
        return self.scalars[made.pointer], [self.scaled(self.scalars[made.offset], self.size(op))]

    def _terms(self, op: BlockAccess, parts: list[SSAValue | None]) -> list[SSAValue]:
        """Index times stride in bytes, of each dim for itself, and together of those whose sum surely fits 32 bits."""
        b, size = self.builder, self.size(op)
        terms: list[SSAValue] = []
        narrow: list[tuple[SSAValue, int]] = []
        bound = 0
        for d, part in enumerate(parts):
            stride = self.facts.constant(op.strides[d])
            for index, reach in self._from(op, d, part):
                if stride is None:
                    # Index times stride first: many chips multiply two 32-bit numbers to 64 bits at once.
                    factor = b.extend(self.scalars[op.strides[d]], self.pointer)
                    wide = b.extend(index, self.pointer)
                    product = b.op("muli", wide, factor if wide.type == factor.type else b.splat(factor, 1))
                    terms.append(b.op("muli", product, b.constant(size, product.type)))
                elif reach is None or bound + reach * abs(stride) * size >= I32_LIMIT:
                    terms.append(self._lane_offset([(index, stride * size)]))
                else:
                    bound += reach * abs(stride) * size
                    narrow.append((b.splat(b.extend(index, types.i32), 1), stride * size))
        return [*terms, *([self._lane_offset(narrow)] if narrow else [])]

    def _from(self, op: BlockAccess, d: int, part: SSAValue | None) -> list[tuple[SSAValue, int | None]]:
        """A block's offset and the thread's part, which sum up to the index of a dim, each with what it surely stays below.

        An offset of 32 bits is added to the part, which must not wrap. One that a loop changes stays apart, in uniform registers,
        while the part's product stands before the loop; so do the terms of a wide one, each where it changes. Where a bound asks
        for the index anyway, to scale that is no more work, and the part's product holds no registers throughout the loop.
        """
        b, offset, extent = self.builder, op.offsets[d], op.block[d]
        parts: list[tuple[SSAValue, int | None]] = [] if part is None else [(part, extent)]
        if self.facts.constant(offset) == 0:
            return parts
        lowered, reach = self.scalars[offset], self.facts.reach(offset)
        moved = part is not None and b.depth(lowered) > b.depth(part)
        if types.dtype_of(lowered.type).bits > 32 or (moved and op.shape[d] is None):
            return [*((term, None) for term in summands(lowered)), *parts]
        most = None if reach is None else reach + extent
        if part is None:
            return [(lowered, most)]
        return [(b.op("addi", b.splat(b.extend(lowered, types.i32), 1), part), most)]

    def _lane_offset(self, terms: list[tuple[SSAValue, int]]) -> SSAValue:
        """The sum of index times bytes, in the pointer's width; many chips multiply one 32-bit index to 64 bits at once."""
        b = self.builder
        if len(terms) == 1:
            wide = b.extend(terms[0][0], self.pointer)
            return b.op("muli", wide, b.constant(terms[0][1], wide.type))
        products = [b.op("muli", index, b.constant(step, index.type)) for index, step in terms]
        total = products[0]
        for product in products[1:]:
            total = b.op("addi", total, product)
        return b.extend(total, self.pointer)

    def bounds(self, op: BlockAccess, indices: Indices, dims: Sequence[int] | None = None) -> SSAValue | None:
        """Which accesses are in bounds, in all checked dims or in these of them."""
        mask: SSAValue | None = None
        for d, (check, bound) in enumerate(zip(op.checks, op.shape, strict=True)):
            if bound is None or (dims is not None and d not in dims):
                continue
            keys = tuple(self.checked(op, indices, d))
            # Blocks side by side are mostly alike: what one compared holds for all of them.
            like = ("bounds", op.offsets[d], bound, check, indices.parts[d], keys)
            inside = self.builder.repeated(like, partial(self._checked_inside, op, d, check, bound, indices.parts[d], keys))
            mask = self.both(mask, inside)
        return mask

    def _checked_inside(
        self, op: BlockAccess, d: int, check: str, bound: SSAValue, part: SSAValue | None, keys: Sequence[tuple[int, int]]
    ) -> SSAValue:
        """For each access whether the index of a dim is in bounds, which is compared once for those that `checked` finds equal."""
        distinct = list(dict.fromkeys(keys))
        inside = self._inside(op, d, check, bound, part, distinct)
        return self.builder.pick(inside, [distinct.index(key) for key in keys]) if len(distinct) > 1 else inside

    def checked(self, op: BlockAccess, indices: Indices, d: int) -> list[tuple[int, int]]:
        """The two constants a dim and access that tell whether it is in bounds.

        Where offset and bound are multiples of a power of two, all indices between two multiples are in bounds or none is.
        """
        bound = op.shape[d]
        assert bound is not None
        alike = -min(self.facts.divisor(op.offsets[d]), self.facts.divisor(bound))
        return [(xor[d] & alike, add[d] & alike) for xor, add in zip(indices.xors, indices.adds, strict=True)]

    def _inside(
        self, op: BlockAccess, d: int, check: str, bound: SSAValue, part: SSAValue | None, constants: list[tuple[int, int]]
    ) -> SSAValue:
        """For each pair of constants whether the index of a dim is in bounds."""
        b = self.builder
        offset, limit = self.scalars[op.offsets[d]], self.scalars[bound]
        wide = max((offset.type, limit.type), key=lambda t: types.dtype_of(t).bits)

        def compare(adds: list[int], xor: int) -> SSAValue:
            index = b.splat(b.extend(offset, wide), 1)
            mine = self.part(part, xor)
            if mine is not None:
                index = b.op("addi", index, b.extend(mine, wide))
            n = len(adds)
            each = b.op("addi", b.splat(index, n), b.constants(adds, wide))
            end = b.extend(limit, wide)
            if check == "both":
                return b.op("ltu", each, b.splat(self.no_sign(bound, end), n))
            return b.op("lts", each, b.splat(end, n))

        if len(constants) > APART and not any(xor for xor, _ in constants):
            return compare([add for _, add in constants], 0)
        return b.join([compare([add], xor) for xor, add in constants])

    def no_sign(self, bound: SSAValue, end: SSAValue) -> SSAValue:
        """A bound, lowered to `end`, or 0 where it is negative. Below that without a sign is what is below it and not negative."""
        least = self.facts.bounds(bound)[0]
        return end if least is not None and least >= 0 else self.builder.positive(end)

    # Addresses computed one by one.

    def computed(
        self, op: PointerOp, layout: LinearLayout, pointer: SSAValue, offsets: SSAValue | None, mask: SSAValue | None
    ) -> Placed:
        """The accesses at pointers, or at offsets from one, which come once an access, as the mask does."""
        b = self.builder
        width = self.accesses.access_width(op, layout)
        n = layout.registers // width
        address = pointer
        if offsets is not None:
            size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
            # Element by element in loops: what a loop does not change (most often the offsets) is then scaled before it.
            groups = [[k] for k in range(n)] if b.in_loop and n <= APART else [list(range(n))]
            with b.promising():
                address = b.join(
                    [b.op("addi", b.splat(pointer, len(g)), self.scaled(b.pick(offsets, g), size)) for g in groups]
                )
        return Placed(address, mask, width, range(n), [0] * n)


def summands(value: SSAValue) -> list[SSAValue]:
    """The terms of a sum of scalars; a value that is not such a sum is its own only term."""
    owner = value.owner
    if types.shape_of(value.type) or not isinstance(owner, lane.ELEMENTWISE["addi"]):
        return [value]
    return [term for operand in owner.operands for term in summands(operand)]
