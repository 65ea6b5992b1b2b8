"""Tile memory accesses to lane accesses: addresses split into a uniform part, a part per lane and constants, masks, widths.

An element's coordinates are those of its thread plus those of its register (the bases are disjoint), so its address
is uniform base + what the thread adds + a constant: the instruction's immediate where strides are constants, one
address register for each distinct product of a register coordinate and a run-time stride otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilefw.api.errors import InternalError
from tilefw.simt import lane
from tilefw.simt.assign import access_width
from tilefw.simt.builder import LaneBuilder
from tilefw.simt.facts import Facts
from tilefw.simt.layout import LinearLayout
from tilefw.tile import ops, types

_I32_LIMIT = 1 << 31


class Addressing:
    """Makes indices, addresses and masks with a builder; `scalars` maps tile-level scalars to lane-level ones."""

    def __init__(
        self, builder: LaneBuilder, scalars: dict[SSAValue, SSAValue], facts: Facts, pointer: Attribute, access_bytes: int
    ) -> None:
        self.builder = builder
        self.scalars = scalars
        self.facts = facts
        self.pointer = pointer
        self.access_bytes = access_bytes

    def thread_id(self) -> SSAValue:
        return self.builder.numbered("thread_id", lambda: lane.ThreadIdOp.create(result_types=[lane.vector(1, types.i32)]))

    def thread_part(self, bases: Sequence[int]) -> SSAValue | None:
        """XOR of the bases of the thread index's set bits, as `vector<1xi32>`; None when all are zero."""
        b, terms = self.builder, []
        vec1 = lane.vector(1, types.i32)
        i = 0
        while i < len(bases):
            start = i
            i += 1
            if not bases[start]:
                continue
            while i < len(bases) and bases[i] == bases[i - 1] << 1 and bases[start].bit_count() == 1:
                i += 1
            term = b.op("shru", self.thread_id(), b.constant(start, vec1)) if start else self.thread_id()
            if i < len(bases):
                term = b.op("andi", term, b.constant((1 << (i - start)) - 1, vec1))
            shift = bases[start].bit_length() - 1
            if bases[start].bit_count() == 1:
                terms.append(b.op("shl", term, b.constant(shift, vec1)) if shift else term)
            else:
                terms.append(b.op("andi", b.op("subi", b.constant(0, vec1), term), b.constant(bases[start], vec1)))
        if not terms:
            return None
        total = terms[0]
        for term in terms[1:]:
            total = b.op("xori", total, term)
        return total

    def index(self, layout: LinearLayout) -> SSAValue:
        """The flat index of every register's element: `vector<Nxi32>`."""
        b = self.builder
        part = self.thread_part(layout.thread)
        constants = b.constants([layout.element(r, 0) for r in range(layout.registers)], types.i32)
        if part is None:
            return constants
        return b.op("addi" if layout.disjoint else "xori", b.splat(part, layout.registers), constants)

    def only_copy(self, layout: LinearLayout) -> SSAValue | None:
        """Whether this thread holds the copy that stores, `vector<1xi1>`; None when there are no copies."""
        if not layout.copies:
            return None
        vec1 = lane.vector(1, types.i32)
        bits = self.builder.op("andi", self.thread_id(), self.builder.constant(layout.copies, vec1))
        return self.builder.op("eqi", bits, self.builder.constant(0, vec1))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        """The conjunction of two masks, of which either may be absent or of one element."""
        if a is None or b is None:
            return b if a is None else a
        n = max((types.shape_of(v.type) or (1,))[0] for v in (a, b))
        return self.builder.op("andi", self.builder.splat(a, n), self.builder.splat(b, n))

    def scaled(self, offset: SSAValue, size: int) -> SSAValue:
        """An offset in elements as bytes, in the pointer's width."""
        b = self.builder
        wide = b.extend(offset, self.pointer)
        return b.op("muli", wide, b.constant(size, wide.type))

    def block(
        self, op: ops.LoadBlockOp | ops.StoreBlockOp, layout: LinearLayout
    ) -> tuple[SSAValue, SSAValue | None, dict[str, object]]:
        """Addresses, mask (one i1 an access, or one for all) and the width, slots and immediates of a block access."""
        if not layout.disjoint:
            raise InternalError("a block access needs a layout whose bases are disjoint")
        width = self._width(op, layout)
        firsts = [layout.coordinates(layout.element(k, 0)) for k in range(0, layout.registers, width)]
        parts = [self.thread_part([layout.coordinates(t)[d] for t in layout.thread]) for d in range(len(op.block))]
        address = self._base(op, parts)
        address, slots, immediates = self._registers(op, address, firsts)
        mask = self._bounds(op, parts, firsts)
        return address, mask, {"width": width, "slots": slots, "immediates": immediates}

    def _width(self, op: ops.LoadBlockOp | ops.StoreBlockOp, layout: LinearLayout) -> int:
        """Consecutive registers along a dim of stride 1, as far as alignment and bounds allow."""
        best = 1
        for d, stride in enumerate(op.strides):
            if self.facts.constant(stride) == 1:
                # The other bases of this dim must keep accesses aligned: with disjoint bases they are multiples of the run.
                best = max(best, min(_run(layout, d), access_width(op, d, self.facts, self.access_bytes)))
        return best

    def computed(
        self, op: ops.LoadOp | ops.StoreOp, layout: LinearLayout, address: SSAValue, mask: SSAValue | None
    ) -> tuple[SSAValue, SSAValue | None, dict[str, object]]:
        """Addresses, mask and width of an access whose addresses are computed one by one: of each wide access its first."""
        runs = [(min(_run(layout, d), self.facts.width(op, d, self.access_bytes)), d) for d in range(len(layout.shape))]
        width = max(runs)[0] if runs and layout.disjoint else 1
        firsts = range(0, layout.registers, width)
        address = self.builder.pick(address, firsts)
        if mask is not None and types.shape_of(mask.type)[0] > 1:
            mask = self.builder.pick(mask, firsts)
        n = len(firsts)
        return address, mask, {"width": width, "slots": range(n), "immediates": [0] * n}

    def _size(self, op: ops.LoadBlockOp | ops.StoreBlockOp) -> int:
        return types.dtype_of(op.block_type).storage_bits // 8

    def _base(self, op: ops.LoadBlockOp | ops.StoreBlockOp, parts: list[SSAValue | None]) -> SSAValue:
        b, size = self.builder, self._size(op)
        uniform = self.scalars[op.base]
        for offset, stride in zip(op.offsets, op.strides, strict=True):
            product = b.op("muli", b.extend(self.scalars[offset], self.pointer), b.extend(self.scalars[stride], self.pointer))
            uniform = b.op("addi", uniform, self.scaled(product, size))
        address = b.splat(uniform, 1)
        narrow: list[tuple[SSAValue, int]] = []
        bound = 0
        for d, part in enumerate(parts):
            if part is None:
                continue
            stride = self.facts.constant(op.strides[d])
            reach = _I32_LIMIT if stride is None else op.block[d] * abs(stride) * size
            if stride is not None and bound + reach < _I32_LIMIT:
                bound += reach
                narrow.append((part, stride * size))
                continue
            step = b.op("muli", b.extend(self.scalars[op.strides[d]], self.pointer), b.constant(size, self.pointer))
            address = b.op("addi", address, b.op("muli", b.extend(part, self.pointer), b.splat(step, 1)))
        return b.op("addi", address, self._lane_offset(narrow)) if narrow else address

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

    def _registers(
        self, op: ops.LoadBlockOp | ops.StoreBlockOp, address: SSAValue, firsts: list[tuple[int, ...]]
    ) -> tuple[SSAValue, list[int], list[int]]:
        b, size = self.builder, self._size(op)
        constants = [self.facts.constant(s) for s in op.strides]
        slots: list[int] = []
        immediates: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        addresses: list[SSAValue] = []
        for coordinates in firsts:
            immediate = sum(c * s * size for c, s in zip(coordinates, constants, strict=True) if s is not None)
            variable = tuple(0 if s is not None else c for c, s in zip(coordinates, constants, strict=True))
            if abs(immediate) >= _I32_LIMIT // 2:
                raise InternalError(f"a block spans {immediate} bytes, more than an immediate holds")
            if variable not in known:
                known[variable] = len(addresses)
                here = address
                for d, c in enumerate(variable):
                    if c:
                        step = b.op("muli", b.extend(self.scalars[op.strides[d]], self.pointer), b.constant(c * size, self.pointer))
                        here = b.op("addi", here, b.splat(step, 1))
                addresses.append(here)
            slots.append(known[variable])
            immediates.append(immediate)
        return self.join(addresses), slots, immediates

    def join(self, values: list[SSAValue]) -> SSAValue:
        """Vectors of one as one vector."""
        if len(values) == 1:
            return values[0]
        type = lane.vector(len(values), types.element_of(values[0].type))
        return self.builder.numbered(("join", *values), lambda: lane.JoinOp.create(operands=values, result_types=[type]))

    def _bounds(
        self, op: ops.LoadBlockOp | ops.StoreBlockOp, parts: list[SSAValue | None], firsts: list[tuple[int, ...]]
    ) -> SSAValue | None:
        b = self.builder
        mask: SSAValue | None = None
        for d, (check, bound) in enumerate(zip(op.checks, op.shape, strict=True)):
            if bound is None:
                continue
            offset, limit = self.scalars[op.offsets[d]], self.scalars[bound]
            wide = max((offset.type, limit.type), key=lambda t: types.dtype_of(t).bits)
            index = b.splat(b.extend(offset, wide), 1)
            part = parts[d]
            if part is not None:
                index = b.op("addi", index, b.extend(part, wide))
            steps = [c[d] for c in firsts]
            n = 1 if all(s == steps[0] for s in steps) else len(steps)
            each = b.op("addi", b.splat(index, n), b.constants(steps[:n], wide))
            mask = self.both(mask, b.op("lts", each, b.splat(b.extend(limit, wide), n)))
            if check == "both":
                mask = self.both(mask, b.op("ges", each, b.constant(0, each.type)))
        return mask


def _run(layout: LinearLayout, dim: int) -> int:
    """How many of a lane's registers in a row hold consecutive elements along `dim`."""
    stride, run = 1, 0
    for size in layout.shape[dim + 1 :]:
        stride *= size
    while run < len(layout.register) and layout.register[run] == stride << run and 1 << run < layout.shape[dim]:
        run += 1
    return 1 << run
