"""The algebra with poison: each value is bits and, beside them, which of those bits are undefined.

The engine turns to it only for an instruction that meets undefined bits. Bitwise operations, moves and choices are exact to
the bit, sums and products from the lowest undefined bit upwards; every other primitive makes the whole result undefined in lanes
where any operand is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.algebra.boxes import Box
from tilefw.sim.algebra.primitives import PRIMITIVES
from tilefw.sim.engine.frame import all_ones
from tilefw.sim.floats import Array
from tilefw.sim.matrix.fragments import Accumulation, Fragment
from tilefw.sim.matrix.group_product import GroupProduct


@dataclass(slots=True, eq=False)
class Shadowed:
    """Bits and poison of one value; the poison has the bits' dtype and a shape that broadcasts with theirs.

    No tuple: a tuple is several results of one instruction, and meanings may tell the two apart.
    """

    bits: Array
    poison: Array


def nonzero(poison: Array) -> Array:
    return poison if poison.dtype == np.bool_ else poison != 0


def _clean(like: Array) -> Array:
    return np.zeros((1, 1, 1), dtype=like.dtype)


def _filled(where: Array, like: Array) -> Array:
    """Full poison of the value's width in marked lanes."""
    return np.where(where, all_ones(like), _clean(like))


def _unpair(value: Any) -> Any:
    if isinstance(value, Shadowed):
        return value.bits
    if isinstance(value, (list, tuple)) and value and not isinstance(value, str):
        return [_unpair(v) for v in value]
    return value.mapped(_unpair) if isinstance(value, Box) else value


def _poisons(value: Any) -> list[Array]:
    if isinstance(value, Shadowed):
        return [nonzero(value.poison)]
    if isinstance(value, (list, tuple)):
        return [p for v in value for p in _poisons(v)]
    return _poisons(value.values) if isinstance(value, Box) else []


def _bits_and_poison(value: Any) -> Shadowed:
    return value if isinstance(value, Shadowed) else Shadowed(value, _clean(value))


class ShadowLanes:
    """Wraps the executing algebra `base`; a drop-in `Algebra` whose values are `Shadowed`."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.wave_size = base.wave_size
        for name in PRIMITIVES:
            if not hasattr(type(self), name):
                setattr(self, name, self._general(name))

    def _general(self, name: str) -> Callable[..., Any]:
        primitive = getattr(self.base, name)

        def call(*operands: Any, **keywords: Any) -> Any:
            result = primitive(*map(_unpair, operands), **{k: _unpair(v) for k, v in keywords.items()})
            if result is None:
                return None
            marks = [p for v in (*operands, *keywords.values()) for p in _poisons(v)]
            where = np.zeros((1, 1, 1), dtype=np.bool_)
            for mark in marks:
                where = where | mark
            return _poisoned(result, self._across(name, where, operands))

        return call

    def _across(self, name: str, where: Array, operands: Sequence[Any]) -> Array:
        """Primitives that mix lanes spread poison over the wave, or over those of each lane's mask, the last operand."""
        if name in ("wave_reduce", "match"):
            return where | self.base.in_some_member(where, _unpair(operands[-1]))
        if name == "sparse_matrix_multiply":
            if self.base.mask is not None:
                where = where & self.base.mask
            return np.asarray(where.any(axis=2, keepdims=True))
        return where

    # --- exact to the bit ----------------------------------------------------------------------------------------------

    def undefined(self, bits: int) -> Shadowed:
        zero = self.base.const(0, bits)
        return Shadowed(zero, all_ones(zero))

    def and_(self, a: Any, b: Any) -> Shadowed:
        a, b = _bits_and_poison(a), _bits_and_poison(b)
        return Shadowed(a.bits & b.bits, (a.poison & b.poison) | (a.poison & b.bits) | (b.poison & a.bits))

    def or_(self, a: Any, b: Any) -> Shadowed:
        a, b = _bits_and_poison(a), _bits_and_poison(b)
        return Shadowed(a.bits | b.bits, (a.poison & b.poison) | (a.poison & ~b.bits) | (b.poison & ~a.bits))

    def xor(self, a: Any, b: Any) -> Shadowed:
        a, b = _bits_and_poison(a), _bits_and_poison(b)
        return Shadowed(a.bits ^ b.bits, a.poison | b.poison)

    def lookup3(self, a: Any, b: Any, c: Any, table: int) -> Shadowed:
        """Undefined where some choice of the undefined bits changes the result."""
        pairs = [_bits_and_poison(v) for v in (a, b, c)]
        value = self.base.lookup3(*(p.bits for p in pairs), table)
        poison = _clean(value)
        for chosen in range(1, 8):
            flipped = [p.bits ^ p.poison if chosen >> i & 1 else p.bits for i, p in enumerate(pairs)]
            poison = poison | (self.base.lookup3(*flipped, table) ^ value)
        return Shadowed(value, poison)

    def not_(self, a: Any) -> Shadowed:
        a = _bits_and_poison(a)
        return Shadowed(~a.bits, a.poison)

    def select(self, p: Any, a: Any, b: Any) -> Shadowed:
        p, a, b = _bits_and_poison(p), _bits_and_poison(a), _bits_and_poison(b)
        poison = np.where(p.bits, a.poison, b.poison)
        if p.poison.any():
            differs = (a.bits != b.bits) | nonzero(a.poison) | nonzero(b.poison)
            poison = np.where(p.poison & differs, all_ones(a.bits), poison)
        return Shadowed(np.where(p.bits, a.bits, b.bits), poison)

    def _same_move(self, name: str, a: Any, *rest: Any) -> Shadowed:
        a = _bits_and_poison(a)
        move = getattr(self.base, name)
        return Shadowed(move(a.bits, *rest), move(a.poison, *rest))

    def zero_extend(self, a: Any, bits: int) -> Shadowed:
        return self._same_move("zero_extend", a, bits)

    def sign_extend(self, a: Any, bits: int) -> Shadowed:
        return self._same_move("sign_extend", a, bits)

    def truncate(self, a: Any, bits: int) -> Shadowed:
        return self._same_move("truncate", a, bits)

    def _upward(self, name: str, a: Any, b: Any) -> Shadowed:
        """Sums and products: a bit of the result depends on the operands' bits at and below it."""
        a, b = _bits_and_poison(a), _bits_and_poison(b)
        poison = a.poison | b.poison
        return Shadowed(getattr(self.base, name)(a.bits, b.bits), poison | (_clean(poison) - poison))

    def add(self, a: Any, b: Any) -> Shadowed:
        return self._upward("add", a, b)

    def sub(self, a: Any, b: Any) -> Shadowed:
        return self._upward("sub", a, b)

    def mul(self, a: Any, b: Any) -> Shadowed:
        return self._upward("mul", a, b)

    def _with_carry(self, name: str, a: Any, b: Any, carry: Any) -> tuple[Shadowed, Shadowed]:
        """As a sum of three, the carry at its lowest bit; what is carried out depends on all bits."""
        a, b, carry = _bits_and_poison(a), _bits_and_poison(b), _bits_and_poison(carry)
        total, out = getattr(self.base, name)(a.bits, b.bits, carry.bits)
        poison = a.poison | b.poison | carry.poison.astype(a.poison.dtype)
        return Shadowed(total, poison | (_clean(poison) - poison)), Shadowed(out, nonzero(poison))

    def add_carry(self, a: Any, b: Any, carry: Any) -> tuple[Shadowed, Shadowed]:
        return self._with_carry("add_carry", a, b, carry)

    def sub_borrow(self, a: Any, b: Any, borrow: Any) -> tuple[Shadowed, Shadowed]:
        return self._with_carry("sub_borrow", a, b, borrow)

    def reverse_bits(self, a: Any) -> Shadowed:
        return self._same_move("reverse_bits", a)

    def fneg(self, a: Any, fmt: str, ftz: bool = False) -> Shadowed:
        a = _bits_and_poison(a)
        return Shadowed(self.base.fneg(a.bits, fmt, ftz), a.poison)

    def join(self, parts: Sequence[Any]) -> Shadowed:
        pairs = [_bits_and_poison(p) for p in parts]
        return Shadowed(self.base.join([p.bits for p in pairs]), self.base.join([p.poison for p in pairs]))

    def split(self, a: Any, bits: int) -> tuple[Shadowed, ...]:
        a = _bits_and_poison(a)
        return tuple(map(Shadowed, self.base.split(a.bits, bits), self.base.split(a.poison, bits)))

    def _shift(self, name: str, a: Any, amount: Any, *rest: Any) -> Shadowed:
        a, amount = _bits_and_poison(a), _bits_and_poison(amount)
        move = getattr(self.base, name)
        poison = move(a.poison, amount.bits, *rest) | _filled(nonzero(amount.poison), a.bits)
        return Shadowed(move(a.bits, amount.bits, *rest), poison)

    def shl(self, a: Any, amount: Any) -> Shadowed:
        return self._shift("shl", a, amount)

    def shr(self, a: Any, amount: Any, signed: bool) -> Shadowed:
        return self._shift("shr", a, amount, signed)

    def permute_bytes(self, a: Any, b: Any, selector: Any) -> Shadowed:
        a, b, selector = _bits_and_poison(a), _bits_and_poison(b), _bits_and_poison(selector)
        poison = self.base.permute_bytes(a.poison, b.poison, selector.bits) | _filled(nonzero(selector.poison), a.bits)
        return Shadowed(self.base.permute_bytes(a.bits, b.bits, selector.bits), poison)

    def rearrange(self, values: Sequence[Any], bits: int, mapping: Any) -> tuple[Shadowed, ...]:
        pairs = [_bits_and_poison(v) for v in values]
        moved = self.base.rearrange([p.bits for p in pairs], bits, mapping)
        return tuple(map(Shadowed, moved, self.base.rearrange([p.poison for p in pairs], bits, mapping)))

    def read_lane(self, a: Any, lane: Any, inactive: str = "undefined") -> Shadowed:
        a, lane = _bits_and_poison(a), _bits_and_poison(lane)
        base = self.base
        index = (lane.bits & np.uint32(base.wave_size - 1)).astype(np.intp)
        lost = nonzero(lane.poison)
        if base.mask is not None and inactive == "undefined":
            lost = lost | ~base.lane_is_active(index)
        poison = base.read_lane(np.broadcast_to(a.poison, np.broadcast_shapes(a.poison.shape, a.bits.shape)), lane.bits, inactive)
        return Shadowed(base.read_lane(a.bits, lane.bits, inactive), poison | _filled(lost, a.bits))

    def ballot(self, p: Any) -> tuple[Shadowed, Shadowed]:
        """A bit is undefined where its lane's predicate is."""
        p = _bits_and_poison(p)
        marks = self.base.ballot(p.poison)
        low, high = self.base.ballot(p.bits)
        return Shadowed(low, marks[0]), Shadowed(high, marks[1])

    def unballot(self, low: Any, high: Any) -> Shadowed:
        low, high = _bits_and_poison(low), _bits_and_poison(high)
        return Shadowed(self.base.unballot(low.bits, high.bits), self.base.unballot(low.poison, high.poison))

    def matrix_multiply(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], a_map: Fragment, b_map: Fragment, c_map: Fragment,
        accumulation: Accumulation, d_map: Fragment | None = None,
    ) -> tuple[Shadowed, ...]:
        operands = [[_bits_and_poison(v) for v in values] for values in (a, b, c)]
        maps = (a_map, b_map, c_map, d_map or c_map)
        values = self.base.matrix_multiply(*([v.bits for v in side] for side in operands), *maps[:3], accumulation, d_map)
        lost = [[self._acting(v.poison) for v in side] for side in operands]
        return tuple(map(Shadowed, values, self.base.matrix_unit.poison(self.base.frame.shape, lost, maps)))

    def scaled_matrix_multiply(
        self, a: Sequence[Any], a_scales: Any, b: Sequence[Any], b_scales: Any, c: Sequence[Any], a_map: Fragment,
        a_scale_map: Fragment, b_map: Fragment, b_scale_map: Fragment, c_map: Fragment, accumulation: Accumulation,
    ) -> tuple[Shadowed, ...]:
        maps = (a_map, b_map, c_map, a_scale_map, b_scale_map)
        operands = [[_bits_and_poison(v) for v in values] for values in (a, b, c, (a_scales,), (b_scales,))]
        unit, shape = self.base.matrix_unit, self.base.frame.shape
        values = unit.multiply_scaled(shape, [[v.bits for v in side] for side in operands], maps, accumulation)
        lost = [[self._acting(v.poison) for v in side] for side in operands]
        return tuple(map(Shadowed, values, unit.poison_scaled(shape, lost, maps)))

    def group_multiply(
        self, a: Sequence[Any], b: Any, c: Sequence[Any], accumulate: Any, product: GroupProduct
    ) -> tuple[Shadowed, ...]:
        a, c = [_bits_and_poison(v) for v in a], [_bits_and_poison(v) for v in c]
        b, accumulate = _bits_and_poison(b), _bits_and_poison(accumulate)
        described = not isinstance(product.a, Fragment)
        base, bits = self.base, [v.bits for v in a]
        for value in (b, *(a if described else ())):
            if value.poison.any():
                base.report_undefined("a descriptor", nonzero(value.poison))
        if accumulate.poison.any():
            base.report_undefined("whether to accumulate", accumulate.poison)
        values = base.group_multiply(bits, b.bits, [v.bits for v in c], accumulate.bits, product)
        left = bits if described else [self._acting(v.poison) for v in a]
        lost = base.group_poison(left, b.bits, [self._acting(v.poison) for v in c], accumulate.bits, product)
        return tuple(map(Shadowed, values, lost))

    def _acting(self, poison: Array) -> Array:
        """The poison in lanes that act."""
        return poison if self.base.mask is None else np.where(self.base.mask, poison, _clean(poison))

    # --- memory ----------------------------------------------------------------------------------------------------------

    def _address(self, address: Any) -> Array:
        address = _bits_and_poison(address)
        if address.poison.any():
            self.base.report_undefined("the address", nonzero(address.poison))
        return address.bits

    def _where(self, where: Any) -> Array | None:
        """The lanes that an access is narrowed to."""
        if where is None:
            return None
        where = _bits_and_poison(where)
        self.base.report_undefined("whether a lane accesses memory", where.poison)
        return where.bits

    def load(
        self, space: str, address: Any, bits: int, count: int = 1, *, where: Any = None, **keywords: Any
    ) -> tuple[Shadowed, ...]:
        with self.base.narrowed(self._where(where)):
            return self._load(space, address, bits, count, keywords)

    def _load(self, space: str, address: Any, bits: int, count: int, keywords: dict[str, Any]) -> tuple[Shadowed, ...]:
        where = self._address(address)
        values = self.base.load(space, where, bits, count, **keywords)
        poison = self.base.load_poison(space, where, bits, count, keywords.get("lanes"), keywords.get("alignment"))
        return tuple(map(Shadowed, values, poison))

    def store(
        self, space: str, address: Any, values: Sequence[Any], *, order: str = "weak", scope: str = "workgroup",
        alignment: int | None = None, where: Any = None,
    ) -> None:
        with self.base.narrowed(self._where(where)):
            self._store(space, address, values, order, scope, alignment)

    def _store(
        self, space: str, address: Any, values: Sequence[Any], order: str, scope: str, alignment: int | None
    ) -> None:
        where = self._address(address)
        pairs = [_bits_and_poison(v) for v in values]
        if space in ("global", "generic"):
            lost = np.zeros((1, 1, 1), dtype=np.bool_)
            for pair in pairs:
                lost = lost | nonzero(pair.poison)
            self.base.report_undefined("the stored value", lost)
        keep = None if space == "global" else [p.poison for p in pairs]
        self.base.store_poisoned(space, where, [p.bits for p in pairs], keep, order, scope, alignment)

    def atomic(
        self, space: str, address: Any, op: str, operands: Sequence[Any], fmt: str = "", *, where: Any = None, **keywords: Any
    ) -> Shadowed:
        with self.base.narrowed(self._where(where)):
            return self._atomic(space, address, op, operands, fmt, keywords)

    def _atomic(
        self, space: str, address: Any, op: str, operands: Sequence[Any], fmt: str, keywords: dict[str, Any]
    ) -> Shadowed:
        where = self._address(address)
        pairs = [_bits_and_poison(v) for v in operands]
        lost = np.zeros((1, 1, 1), dtype=np.bool_)
        for pair in pairs:
            lost = lost | nonzero(pair.poison)
        self.base.report_undefined("the operand of an atomic operation", lost)
        return _bits_and_poison(self.base.atomic(space, where, op, [p.bits for p in pairs], fmt, **keywords))

    def multicast_load(self, address: Any, op: str, fmt: str, bits: int, count: int = 1, **keywords: Any) -> tuple[Shadowed, ...]:
        where, base = self._address(address), self.base
        values = base.multicast_load(where, op, fmt, bits, count, **keywords)
        return tuple(map(Shadowed, values, base.multicast_poison(where, fmt, bits, count)))

    def multicast_store(self, address: Any, values: Sequence[Any], **keywords: Any) -> None:
        for copy in self.base.multicast_copies(self._address(address)):
            self.store("global", copy, values, **keywords)

    def multicast_atomic(self, address: Any, op: str, operands: Sequence[Any], fmt: str = "", **keywords: Any) -> None:
        for copy in self.base.multicast_copies(self._address(address)):
            for number, operand in enumerate(map(_bits_and_poison, operands)):
                place = copy + np.uint64(number * operand.bits.dtype.itemsize)
                self._atomic("global", place, op, [operand], fmt, keywords)

    def load_reserved(self, space: str, address: Any, bits: int, **keywords: Any) -> Shadowed:
        where = self._address(address)
        value = self.base.load_reserved(space, where, bits, **keywords)
        return Shadowed(value, self.base.load_poison(space, where, bits, 1, None, None)[0])

    def store_conditional(self, space: str, address: Any, value: Any, **keywords: Any) -> Shadowed:
        value = _bits_and_poison(value)
        self.base.report_undefined("the stored value", nonzero(value.poison))
        return _bits_and_poison(self.base.store_conditional(space, self._address(address), value.bits, **keywords))

    def copy_async(
        self, destination_space: str, destination: Any, source_space: str, source: Any, size: int, source_size: Any = None
    ) -> None:
        amount = None
        if source_size is not None:
            amount = _bits_and_poison(source_size)
            self.base.report_undefined("the size of an asynchronous copy", nonzero(amount.poison))
            amount = amount.bits
        self.base.copy_async(destination_space, self._address(destination), source_space, self._address(source), size, amount)

    def push_mask(self, p: Any) -> None:
        p = _bits_and_poison(p)
        self.base.report_undefined("the mask", p.poison)
        self.base.push_mask(p.bits)

    def require(self, p: Any, message: str) -> None:
        p = _bits_and_poison(p)
        self.base.report_undefined("an operand", p.poison)
        self.base.require(p.bits, message)


def _poisoned(result: Any, where: Array) -> Any:
    if isinstance(result, tuple):
        return tuple(Shadowed(r, _filled(where, r)) for r in result)
    return Shadowed(result, _filled(where, result))
