"""Accesses as a uniform base and 32 bits of each lane, for chips that have them, wherever the lane's part surely fits.

An access is at base + offset + immediate. The base is 64 bits, equal in all lanes, and what a loop advances; the offset has no
sign. So where it may be negative, as strides may be, a bias is added to it and taken from the base.

Constant strides tell how far a block reaches. What others do is known where all buffers are small (`Machine.small`): the first
element of a block is accessed if any is, as none of its indices is greater than another element's, and both are in one buffer.
That is said of the kernel's arguments alone: a pointer that was loaded from memory may be one of a buffer of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from tilefw.api.target import UNDER_2_GIB
from tilefw.machine.inst import NoWrap
from tilefw.passes.pointer_origins import arguments_of
from tilefw.simt import lane
from tilefw.simt.assign.accesses import PointerOp, covering
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower.access import APART, I32_LIMIT, Addressing, Constants, Indices, Placed, summands
from tilefw.simt.lower.buffer_bounds import FAR, BufferBounds, literal
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.kernel_info import is_argument

_FEW = 2  # offsets that are moved rather than their base
_SPARE = 1 << 15  # how far lanes out of bounds may be from the rest, with `UNDER_2_GIB` on both sides of it
_Made = dict[tuple[Constants, Constants], SSAValue]


@dataclass(frozen=True, slots=True)
class _BlockOffsets:
    """Where an access of a block goes: constants XORed to the thread's index, added where strides are not constants, and bytes."""

    xor: Constants
    add: Constants
    immediate: int


class Offsets:
    """Places accesses with a base; what it cannot place so is None, and `Addressing` does it."""

    def __init__(self, addressing: Addressing, machine: LaneMachine) -> None:
        self.addressing = addressing
        self.builder = addressing.builder
        self.scalars = addressing.scalars
        self.facts = addressing.facts
        self.small = machine.small
        self._of_arguments: dict[SSAValue, bool] = {}
        self.limits = BufferBounds(addressing) if machine.chip.bounded else None
        self.centered: set[SSAValue] = set()  # bases as far below what is accessed as their offsets reach up and down

    # -- blocks

    def block(self, op: BlockAccess, layout: LinearLayout, also: SSAValue | None, filled: bool) -> Placed | None:
        """The accesses of a block that `also`, an i1 a thread, does not mask off; `filled`: those out of bounds have values."""
        bias = self._bias(op)
        if bias is None:
            return None
        a, b = self.addressing, self.builder
        width = a.accesses.access_width(op, layout, a.accesses.limited(op))
        indices = a.indices(op, layout, width)
        places = self._block_offsets(op, indices)
        least = min(0, *(place.immediate for place in places))
        places = [_BlockOffsets(p.xor, p.add, p.immediate - least) for p in places]
        own = None if self.limits is None else covering(op, self.facts)
        with b.promising():
            base, shift, moves = self._start(op, len({(p.xor, p.add) for p in places}), bias, least, own)
        if bias >= UNDER_2_GIB:
            self.centered.add(base)
        limit, masked = (None, []) if self.limits is None else self.limits.of(op, own, moves, also)
        chosen = bool(masked) or (limit is not None and also is not None)

        checked = [a.checked(op, indices, d) for d in masked]
        firsts: dict[object, int] = {}  # one access of each offset, in the order of the slots
        slots, immediates = [], []
        for k, place in enumerate(places):
            far = place.immediate & FAR if chosen else 0
            key = (place.xor, place.add, far, *(constants[k] for constants in checked))
            slots.append(list(firsts).index(key) if key in firsts else len(firsts))
            firsts.setdefault(key, k)
            immediates.append(place.immediate - far)
        made: _Made = {}
        promised = self._promised(op, shift)
        with b.promising(promised):
            offsets = [self._far(op, indices, places[k], shift, chosen, made) for k in firsts.values()]
        if chosen:
            assert self.limits is not None
            offsets = self.limits.chosen(op, indices, list(firsts.values()), masked, also, offsets, promised)
        placed = Placed(b.join(offsets), None, width, slots, immediates, base, limit)
        if filled and width > a.accesses.access_width(op, layout):
            return replace(placed, inside=a.both(a.bounds(op, a.indices(op, layout, 1)), also))
        return replace(placed, mask=a.both(a.bounds(op, indices), also)) if filled or limit is None else placed

    def _promised(self, op: BlockAccess, shift: SSAValue) -> NoWrap:
        """What is promised of the offsets of a block's lanes: where strides are constant, and nothing else is added to the thread's
        part, `_bias` has made sure of them."""
        strides = [self.facts.constant(stride) for stride, extent in zip(op.strides, op.block, strict=True) if extent > 1]
        return "proven" if None not in strides and isinstance(shift.owner, lane.ConstantOp) else "exact"

    def _start(
        self, op: BlockAccess, addresses: int, bias: int, least: int, own: int | None
    ) -> tuple[SSAValue, SSAValue, int | None]:
        """The base, what is added to each lane's offset, and if that holds where the block begins along the dim `own`, from how
        many bytes before index 0.

        Where a block begins is the base's business, unless loops move it: to move the few offsets that there are is less work than
        to move the base, with all that a chip makes of it, and serves every access alike. Nor is it worth 64 bits to sum up what
        32 hold: the sum of index times stride, of small buffers.
        """
        b = self.builder
        start, few = self.scalars[op.base], not self.builder.in_loop or addresses <= _FEW
        if own is not None and few and self._moves(op, own):
            assert self.limits is not None
            low = self.facts.bounds(op.offsets[own])[0]
            before = UNDER_2_GIB if low is None or low < 0 else 0
            return self._base(op, least - bias - before, own), self.limits.begin(op, own, before), before
        from_argument = None if self.limits is None or own is not None else self._from_argument(op, least)
        if from_argument is not None:
            return *from_argument, None
        steady = all(self.facts.constant(s) is not None for s in op.strides)
        if steady or not few or not self._in_small(op.base) or not bias or any(self._below(op, d) for d in range(len(op.block))):
            base = self._near(op, least - bias) or self._base(op, least - bias)
            return base, b.constant(literal(bias), types.i32), None
        shift = self._begin(op, b.constant(literal(bias), types.i32))
        return b.op("addi", start, b.constant(least - bias, start.type)), shift, None

    def _begin(self, op: BlockAccess, shift: SSAValue) -> SSAValue:
        """Where a block begins, in bytes from its base, and `shift`: the low 32 bits of it."""
        b, size = self.builder, self.addressing.size(op)
        for d, offset in enumerate(op.offsets):
            if self.facts.constant(offset) == 0:
                continue
            index, stride = b.extend(self.scalars[offset], types.i32), self.facts.constant(op.strides[d])
            step = self._step(op, d) if stride is None else b.constant(literal(stride * size), types.i32)
            shift = b.op("addi", b.op("muli", index, step), shift)
        return shift

    def _from_argument(self, op: BlockAccess, least: int) -> tuple[SSAValue, SSAValue] | None:
        """The base and what is added to offsets, of a block whose accesses may all start from the kernel's argument.

        Of a small buffer no accessed byte is further from the argument than 32 bits tell, whatever the sums on the way to it, and
        one base serves all blocks of an argument. None for a block in a loop, whose base is best advanced, and for one that begins
        at the argument itself.
        """
        b, size = self.builder, self.addressing.size(op)
        argument, terms = _behind(op.base)
        if not (self.small and is_argument(argument) and not b.in_loop) or any(self._below(op, d) for d in range(len(op.block))):
            return None
        strides = [self.facts.constant(s) for s in op.strides]
        if (not terms and None not in strides) or any(s is not None and s < 0 for s in strides):
            return None
        positive = all(self._positive(v) for v in (*terms, *op.offsets)) and all(self._grows(op, d) for d in range(len(op.block)))
        bias = 0 if positive else UNDER_2_GIB
        parted = self._parted(terms, size, bias + least)
        if parted is None:
            return None
        taken, shift = parted
        base = self.scalars[argument]
        return b.op("addi", base, b.constant(taken - bias, base.type)), self._begin(op, shift)

    def _parted(self, terms: Sequence[SSAValue], size: int, constant: int) -> tuple[int, SSAValue] | None:
        """Of what stands behind an argument the bytes that its base takes, and what offsets begin with: the rest and `constant`,
        which makes them positive. Constants are one number of 32 bits, which has a sign: where their sum does not fit, the exact
        integer would be another, and the base takes them all. None where offsets from there had a sign, or no base helps."""
        known = [self.facts.constant(term) for term in terms]
        fixed = size * sum(number for number in known if number is not None)
        taken = fixed if fixed + constant >= I32_LIMIT else 0
        if taken > max(0, constant) or fixed + constant < -I32_LIMIT:
            return None
        moving = [term for term, number in zip(terms, known, strict=True) if number is None]
        return taken, self._sum(moving, size, self.builder.constant(literal(fixed - taken + constant), types.i32))

    def _beyond(self, terms: Sequence[SSAValue]) -> bool:
        """Whether a constant, or all of them, is one that 32 bits do not tell: the low ones are those of another exact integer."""
        constants = [number for term in terms if (number := self.facts.constant(term)) is not None]
        return any(not -I32_LIMIT <= number < I32_LIMIT for number in (*constants, sum(constants)))

    def _positive(self, value: SSAValue) -> bool:
        """Whether an integer surely has no sign."""
        low = self.facts.bounds(value)[0]
        return low is not None and low >= 0

    def _grows(self, op: BlockAccess, dim: int) -> bool:
        """Whether a dim's stride surely has no sign where a block is accessed, as no bound has that an index which has none is
        below."""
        stride = op.strides[dim]
        least = [self.facts.bounds(offset)[0] for offset, bound in zip(op.offsets, op.shape, strict=True) if bound is stride]
        return self._positive(stride) or any(low is not None and low >= 0 for low in least)

    def _moves(self, op: BlockAccess, own: int) -> bool:
        """Whether a loop moves a block along a dim, from where the offsets to come along others have no sign, and all fit."""
        b = self.builder
        begin = self.scalars[op.offsets[own]]
        if not (b.in_loop and b.depth(begin) > b.depth(self.scalars[op.base]) and self._in_small(op.base)):
            return False
        stride = self.facts.constant(op.strides[own])
        if stride is None or op.block[own] * stride * self.addressing.size(op) >= I32_LIMIT // 2:
            return False
        for d, offset in enumerate(op.offsets):
            low, stride = self.facts.bounds(offset)[0], self.facts.constant(op.strides[d])
            if d != own and self.facts.constant(offset) != 0 and (low is None or low < 0 or stride is None or stride < 0):
                return False
        return True

    def _below(self, op: BlockAccess, dim: int) -> bool:
        """Whether a block may begin below a bound, so that its first element is not accessed when others are."""
        least = self.facts.bounds(op.offsets[dim])[0]
        return op.checks[dim] == "both" and (least is None or least < 0)

    def _far(self, op: BlockAccess, indices: Indices, place: _BlockOffsets, shift: SSAValue, chosen: bool, made: _Made) -> SSAValue:
        """A lane's offset; of one that is chosen, with what is too much for an immediate beside `OUTSIDE`."""
        b, offset = self.builder, self._offset(op, indices, place.xor, place.add, shift, made)
        far = place.immediate & FAR if chosen else 0
        return b.op("addi", offset, b.constant(far, offset.type)) if far else offset

    def _bias(self, op: BlockAccess) -> int | None:
        """What makes the offsets of a block's lanes positive; None where 32 bits may not hold them."""
        size, low, high, loose = self.addressing.size(op), 0, 0, 0
        known = positive = True
        for d, extent in enumerate(op.block):
            if extent == 1:
                continue
            stride = self.facts.constant(op.strides[d])
            below = self._below(op, d)
            if stride is None:
                if below or not self._in_small(op.base):
                    return None
                known = False
                positive = positive and self._grows(op, d)
                continue
            reach = (extent - 1) * stride * size
            low, high, positive = low + min(0, reach), high + max(0, reach), positive and stride >= 0
            loose += abs(reach) if below or reach < 0 else 0
        if known:
            return -low if high - low + size <= I32_LIMIT else None
        if loose > _SPARE:
            return None
        return 0 if positive and not loose else UNDER_2_GIB + loose

    def _block_offsets(self, op: BlockAccess, indices: Indices) -> list[_BlockOffsets]:
        size = self.addressing.size(op)
        strides = [self.facts.constant(s) for s in op.strides]
        found = []
        for xor, add in zip(indices.xors, indices.adds, strict=True):
            immediate = sum(c * s * size for c, s in zip(add, strides, strict=True) if s is not None)
            found.append(_BlockOffsets(xor, tuple(0 if s is not None else c for c, s in zip(add, strides, strict=True)), immediate))
        return found

    def _base(self, op: BlockAccess, constant: int, without: int | None = None) -> SSAValue:
        """The address of the block's first element (index 0 of the dim `without`) and a constant, as a scalar.

        What loops around change least is added first.
        """
        b, size, pointer = self.builder, self.addressing.size(op), self.addressing.pointer
        start = self.scalars[op.base]
        entries = [(b.depth(start), 1, start)]
        if constant:
            entries.append((0, 2, b.constant(constant, pointer)))
        for d, offset in enumerate(op.offsets):
            if d != without and self.facts.constant(offset) != 0:
                entries += [(b.depth(term), 0, term) for term in self._terms(op, d, size)]
        terms = [term for *_, term in sorted(entries, key=lambda entry: entry[:2])]
        total = terms[0]
        for term in terms[1:]:
            total = b.op("addi", total, term)
        return total

    def _near(self, op: BlockAccess, constant: int) -> SSAValue | None:
        """The address of the block's first element and a constant, as one sum of an argument and 32 bits, which tell how far any
        byte of a small buffer is from it; None where there is not more than one term, or a loop moves some."""
        b, size = self.builder, self.addressing.size(op)
        argument, terms = _behind(op.base)
        begins = [d for d, offset in enumerate(op.offsets) if self.facts.constant(offset) != 0]
        if not self.small or b.in_loop or not is_argument(argument) or len(terms) + len(begins) < 2:
            return None
        if self._beyond(terms) or any(self._below(op, d) for d in range(len(op.block))):
            return None
        parts = [b.extend(self.scalars[term], types.i32) for term in terms]
        for d in begins:
            index, stride = b.extend(self.scalars[op.offsets[d]], types.i32), self.facts.constant(op.strides[d])
            factor = b.extend(self.scalars[op.strides[d]], types.i32) if stride is None else b.constant(literal(stride), types.i32)
            parts.append(b.op("muli", index, factor))
        total = parts[0]
        for part in parts[1:]:
            total = b.op("addi", total, part)
        base = self.scalars[argument]
        far = b.extend(b.op("muli", total, b.constant(size, types.i32)), base.type)
        return b.op("addi", b.op("addi", base, b.constant(constant, base.type)), far)

    def _terms(self, op: BlockAccess, d: int, size: int) -> list[SSAValue]:
        """Where a block begins along a dim, in bytes, as terms that loops change alike."""
        b, pointer = self.builder, self.addressing.pointer
        offset, stride = self.scalars[op.offsets[d]], self.facts.constant(op.strides[d])
        reach = self.facts.reach(op.offsets[d])
        if stride is not None and reach is not None and reach * abs(stride) * size < I32_LIMIT:
            narrow = b.extend(offset, types.i32)
            return [b.extend(b.op("muli", narrow, b.constant(stride * size, narrow.type)), pointer)]
        terms, apart = [], summands(offset)
        if types.dtype_of(offset.type).bits <= 32 and len({b.depth(term) for term in apart}) == 1:
            apart = [offset]
        for term in apart:
            wide = b.extend(term, pointer)
            if stride is not None:
                terms.append(self._times(wide, stride * size))
                continue
            factor = b.extend(self.scalars[op.strides[d]], pointer)
            terms.append(self._times(b.op("muli", wide, factor), size))
        return terms

    def _times(self, value: SSAValue, factor: int) -> SSAValue:
        """A wide product with a constant, which of a power of two is not a product."""
        if factor == 1:
            return value
        if factor > 0 and not factor & (factor - 1):
            return self.builder.op("shl", value, self.builder.constant(factor.bit_length() - 1, value.type))
        return self.builder.op("muli", value, self.builder.constant(factor, value.type))

    def _step(self, op: BlockAccess, d: int) -> SSAValue:
        """The low 32 bits of a dim's stride in bytes, a scalar."""
        b = self.builder
        stride = b.extend(self.scalars[op.strides[d]], types.i32)
        return b.op("muli", stride, b.constant(self.addressing.size(op), types.i32))

    def _offset(
        self, op: BlockAccess, indices: Indices, xor: Constants, add: Constants, shift: SSAValue, made: _Made
    ) -> SSAValue:
        """A lane's offset, one register. In a loop it is another one's and the step of one bit, as steps of all hold registers."""
        key = (xor, add)
        if key not in made:
            b, d = self.builder, next((d for d, c in enumerate(add) if c), None)
            if d is None:
                made[key] = self._thread(op, indices, xor, shift)
                return made[key]
            last = 1 << (add[d].bit_length() - 1) if b.in_loop else add[d]
            rest = (*add[:d], add[d] - last, *add[d + 1 :])
            step = b.op("muli", self._step(op, d), b.constant(last, types.i32))
            made[key] = b.op("addi", self._offset(op, indices, xor, rest, shift, made), b.splat(step, 1))
        return made[key]

    def _thread(self, op: BlockAccess, indices: Indices, xor: Constants, shift: SSAValue) -> SSAValue:
        """The thread's index times stride, of all dims, and what is added to it."""
        a, b, size = self.addressing, self.builder, self.addressing.size(op)
        total = None
        for d, (part, constant) in enumerate(zip(indices.parts, xor, strict=True)):
            index = a.part(part, constant)
            if index is None:
                continue
            stride = self.facts.constant(op.strides[d])
            factor = b.splat(self._step(op, d), 1) if stride is None else b.constant(literal(stride * size), index.type)
            product = b.op("muli", index, factor)
            total = product if total is None else b.op("addi", total, product)
        more = b.splat(shift, 1)
        return more if total is None else b.op("addi", total, more)

    # -- computed offsets

    def computed(
        self, op: PointerOp, layout: LinearLayout, pointer: SSAValue, offsets: SSAValue | None, mask: SSAValue | None,
        also: SSAValue | None, filled: bool,
    ) -> Placed | None:
        """The accesses at offsets from one pointer, which come once an access, as the mask does."""
        a, b, size = self.addressing, self.builder, self._pointee_bytes(op)
        with b.promising():
            start = None if offsets is None else self._computed_from(op, pointer, b.depth(offsets))
        if offsets is None or start is None:
            return None
        base, shift, surely = start
        promised: NoWrap = "proven" if surely and len(_terms(offsets)) == 1 else "exact"
        width = a.accesses.access_width(op, layout)
        n = layout.registers // width
        groups = [[k] for k in range(n)] if b.in_loop and n <= APART else [list(range(n))]
        with b.promising(promised):
            terms = sorted(_terms(b.extend(offsets, types.i32)), key=_different)
            parts = [self._scaled([b.pick(term, group) for term in terms], size, shift) for group in groups]
        masked, limit = a.both(mask, also), None
        if self.limits is not None and masked is not None:
            limit, chosen = self.limits.parted(masked)
            if chosen is not None:
                masks = [chosen if types.shape_of(chosen.type) in ((), (1,)) else b.pick(chosen, group) for group in groups]
                with b.promising(promised):
                    parts = [self.limits.choose(m, part) for m, part in zip(masks, parts, strict=True)]
        return Placed(b.join(parts), masked if filled or limit is None else None, width, range(n), [0] * n, base, limit)

    def scalar(self, address: SSAValue, mask: SSAValue | None) -> Placed:
        """One element at a uniform address."""
        b = self.builder
        offset, limit = b.constant(0, lane.vector(1, types.i32)), None
        if self.limits is not None and mask is not None:
            (limit, chosen), mask = self.limits.parted(mask), None
            offset = offset if chosen is None else self.limits.choose(chosen, offset)
        return Placed(offset, mask, 1, range(1), [0], address, limit)

    def _computed_from(self, op: PointerOp, pointer: SSAValue, depth: int) -> tuple[SSAValue, SSAValue, bool] | None:
        """The base, what makes offsets from it positive, in bytes, and whether all of them surely fit 32 bits, not only those that
        are accessed; None where 32 bits may not hold them.

        Of a small buffer no accessed byte is further from the argument than 32 bits tell, wherever the pointer is; what it is away
        from there goes to the offsets, unless these stay while loops move it.
        """
        b, size = self.builder, self._pointee_bytes(op)
        assert op.offsets is not None
        low, high = self.facts.bounds(op.offsets)
        if low is not None and high is not None and (high + 1 - min(0, low)) * size <= I32_LIMIT:
            bias = -min(0, low) * size
            return b.op("addi", pointer, b.constant(-bias, pointer.type)), b.constant(literal(bias), types.i32), True
        if not self._in_small(op.pointer):
            return None
        argument, terms = _behind(op.pointer)
        away = terms and is_argument(argument) and b.depth(pointer) <= depth
        bias = 0 if not away and low is not None and low >= 0 else UNDER_2_GIB
        parted = self._parted(terms if away else (), size, bias)
        if parted is None:
            return None
        taken, shift = parted
        pointer = self.scalars[argument] if away else pointer
        base = b.op("addi", pointer, b.constant(taken - bias, pointer.type))
        if bias and not taken:
            self.centered.add(base)
        return base, shift, False

    def _sum(self, terms: Sequence[SSAValue], size: int, shift: SSAValue) -> SSAValue:
        """Offsets in elements as bytes, and `shift`: the low 32 bits of their sum."""
        b = self.builder
        for term in terms:
            low = b.extend(self.scalars[term], types.i32)
            shift = b.op("addi", b.op("muli", low, b.constant(size, low.type)), shift)
        return shift

    def _in_small(self, pointer: SSAValue) -> bool:
        """Whether what is accessed from a pointer surely lies in a small buffer, as that of an argument may be known to be."""
        if self.small and pointer not in self._of_arguments:
            self._of_arguments[pointer] = arguments_of(pointer) is not None
        return self.small and self._of_arguments[pointer]

    def _scaled(self, terms: list[SSAValue], size: int, shift: SSAValue) -> SSAValue:
        """The sum of a group's terms in bytes, and a shift, which goes to the first, in which fewest of all offsets differ: in
        every group to the same one, and before a loop to the same as in it."""
        b = self.builder
        each = [b.op("muli", term, b.constant(size, term.type)) for term in terms]
        total = b.op("addi", each[0], b.splat(shift, (types.shape_of(terms[0].type) or (1,))[0]))
        for term in each[1:]:
            total = b.op("addi", total, term)
        return total

    def _pointee_bytes(self, op: PointerOp) -> int:
        return types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8


def _behind(pointer: SSAValue) -> tuple[SSAValue, list[SSAValue]]:
    """What a scalar pointer was made from by adding offsets, and these."""
    terms = []
    while isinstance(pointer.owner, ops.AddPtrOp):
        terms.append(pointer.owner.offset)
        pointer = pointer.owner.pointer
    return pointer, terms


def _terms(sum: SSAValue) -> list[SSAValue]:
    """The terms of a vector that is a sum of two."""
    return list(sum.owner.operands) if isinstance(sum.owner, lane.ELEMENTWISE["addi"]) else [sum]


def _different(vector: SSAValue) -> int:
    """How many elements of a vector differ, at most."""
    owner = vector.owner
    if isinstance(owner, lane.SplatOp | lane.ConstantOp):
        return 1
    if isinstance(owner, lane.PickOp):
        return len(set(owner.indices))
    return (types.shape_of(vector.type) or (1,))[0]
