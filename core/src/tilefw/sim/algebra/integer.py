"""Integer, bit, comparison and width primitives of the lane algebra over NumPy arrays of unsigned elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from tilefw.sim.algebra.primitives import Algebra
from tilefw.sim.floats import SIGNED, UNSIGNED, Array

_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def width(a: Array) -> int:
    """Bits of a value; a 128-bit one is an array with a last axis of two 64-bit words, marked by dtype complex128."""
    return 1 if a.dtype == np.bool_ else a.dtype.itemsize * 8


def signed(a: Array) -> Array:
    return a.view(SIGNED[a.dtype.itemsize * 8])


def unsigned(a: Array) -> Array:
    return a.view(UNSIGNED[a.dtype.itemsize * 8])


@cache
@lru_cache(maxsize=65536)
def constant(value: int, bits: int) -> Array:
    """A value with one element, shared by all users (arrays of values are never written in place)."""
    dtype = UNSIGNED.get(bits)
    if dtype is None:
        words = np.array([value & (2**64 - 1), value >> 64 & (2**64 - 1)], dtype=np.uint64)
        array = words.view(np.complex128).reshape(1, 1, 1)
    else:
        array = np.full((1, 1, 1), value & ((1 << bits) - 1), dtype=dtype)
    array.flags.writeable = False
    return array


class IntegerLanes(Algebra):
    """What `Algebra` says of integers, word for word."""

    def const(self, value: int, bits: int) -> Array:
        return constant(value % (1 << bits), bits)

    def zero_extend(self, a: Array, bits: int) -> Array:
        if bits == 128:
            return self.join([a.astype(np.uint64), constant(0, 64)])
        return a.astype(UNSIGNED[bits])

    def sign_extend(self, a: Array, bits: int) -> Array:
        if a.dtype == np.bool_:
            return np.negative(a.astype(UNSIGNED[bits]))
        return signed(a).astype(SIGNED[bits]).view(UNSIGNED[bits])

    def truncate(self, a: Array, bits: int) -> Array:
        if bits == 1:
            return (a & a.dtype.type(1)).astype(np.bool_)
        if a.dtype == np.complex128:
            return self.split(a, bits)[0]
        return a.astype(UNSIGNED[bits])

    def join(self, parts: Sequence[Array]) -> Array:
        if len(parts) == 1:
            return parts[0]
        bits = width(parts[0])
        total = bits * len(parts)
        if total == 128:
            stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
            return np.ascontiguousarray(stacked).view(np.complex128)[..., 0]
        dtype = UNSIGNED[total]
        value = parts[0].astype(dtype)
        for place, part in enumerate(parts[1:], 1):
            value = value | (part.astype(dtype) << dtype(place * bits))
        return value

    def split(self, a: Array, bits: int) -> tuple[Array, ...]:
        whole = width(a)
        if whole == bits:
            return (a,)
        dtype = UNSIGNED[bits]
        if whole == 128:
            words = np.ascontiguousarray(a)[..., None].view(dtype)
            return tuple(words[..., i] for i in range(whole // bits))
        return tuple((a >> a.dtype.type(i * bits)).astype(dtype) if i else a.astype(dtype) for i in range(whole // bits))

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def sub(self, a: Array, b: Array) -> Array:
        return a - b

    def mul(self, a: Array, b: Array) -> Array:
        return a * b

    def neg(self, a: Array) -> Array:
        return np.negative(a)

    def mul_wide(self, a: Array, b: Array, signed: bool) -> Array:
        types = SIGNED if signed else UNSIGNED
        narrow, wide = types[width(a)], types[2 * width(a)]
        return (a.view(narrow).astype(wide) * b.view(narrow)).view(UNSIGNED[2 * width(a)])

    def mul_high(self, a: Array, b: Array, signed: bool) -> Array:
        bits = width(a)
        if bits < 64:
            return self.split(self.mul_wide(a, b, signed), bits)[1]
        half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
        al, ah, bl, bh = a & low, a >> half, b & low, b >> half
        middle = ah * bl + (al * bl >> half)
        other = al * bh + (middle & low)
        high = ah * bh + (middle >> half) + (other >> half)
        if signed:
            high = high - np.where(a.view(np.int64) < 0, b, np.uint64(0)) - np.where(b.view(np.int64) < 0, a, np.uint64(0))
        return high

    def div(self, a: Array, b: Array, signed: bool) -> Array:
        zero = b == 0
        divisor = np.where(zero, b.dtype.type(1), b)
        if not signed:
            return np.where(zero, ~b.dtype.type(0), a // divisor)
        magnitude = self.abs(a) // self.abs(divisor)
        negative = (a ^ divisor).view(SIGNED[width(a)]) < 0
        return np.where(zero, ~b.dtype.type(0), np.where(negative, np.negative(magnitude), magnitude))

    def rem(self, a: Array, b: Array, signed: bool) -> Array:
        zero = b == 0
        divisor = np.where(zero, b.dtype.type(1), b)
        if not signed:
            return np.where(zero, a, a % divisor)
        magnitude = self.abs(a) % self.abs(divisor)
        return np.where(zero, a, np.where(a.view(SIGNED[width(a)]) < 0, np.negative(magnitude), magnitude))

    def min(self, a: Array, b: Array, signed: bool) -> Array:
        types = SIGNED if signed else UNSIGNED
        return unsigned(np.minimum(a.view(types[width(a)]), b.view(types[width(b)])))

    def max(self, a: Array, b: Array, signed: bool) -> Array:
        types = SIGNED if signed else UNSIGNED
        return unsigned(np.maximum(a.view(types[width(a)]), b.view(types[width(b)])))

    def abs(self, a: Array) -> Array:
        return unsigned(np.abs(signed(a)))

    def add_carry(self, a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
        first = a + b
        total = first + carry.astype(a.dtype)
        return total, (first < a) | (total < first)

    def sub_borrow(self, a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
        first = a - b
        total = first - borrow.astype(a.dtype)
        return total, (a < b) | (first < total)

    def add_saturate(self, a: Array, b: Array, signed: bool) -> Array:
        total = a + b
        if not signed:
            return np.where(total < a, ~a.dtype.type(0), total)
        return self._clamp_signed(total, (a ^ total) & (b ^ total), a)

    def sub_saturate(self, a: Array, b: Array, signed: bool) -> Array:
        total = a - b
        if not signed:
            return np.where(a < b, a.dtype.type(0), total)
        return self._clamp_signed(total, (a ^ b) & (a ^ total), a)

    def _clamp_signed(self, total: Array, overflow: Array, a: Array) -> Array:
        bits = width(a)
        largest = a.dtype.type((1 << (bits - 1)) - 1)
        clamped = largest + (a >> a.dtype.type(bits - 1))
        return np.where(overflow.view(SIGNED[bits]) < 0, clamped, total)

    def and_(self, a: Array, b: Array) -> Array:
        return a & b

    def or_(self, a: Array, b: Array) -> Array:
        return a | b

    def xor(self, a: Array, b: Array) -> Array:
        return a ^ b

    def not_(self, a: Array) -> Array:
        return ~a

    def lookup3(self, a: Array, b: Array, c: Array, table: int) -> Array:
        result = a ^ a
        for term in range(8):
            if table >> term & 1:
                result = result | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
        return result

    def shl(self, a: Array, amount: Array) -> Array:
        bits = width(a)
        if amount.size == 1:
            count = int(amount.flat[0])
            return a << a.dtype.type(count) if count < bits else a ^ a
        return np.where(amount < bits, a << (amount & np.uint32(bits - 1)).astype(a.dtype), a.dtype.type(0))

    def shr(self, a: Array, amount: Array, signed: bool) -> Array:
        bits = width(a)
        types = SIGNED if signed else UNSIGNED
        value = a.view(types[bits])
        if amount.size == 1:
            count = int(amount.flat[0])
            if count >= bits and not signed:
                return a ^ a
            return (value >> types[bits](min(count, bits - 1))).view(a.dtype)
        limited = np.minimum(amount, np.uint32(bits - 1)).astype(types[bits])
        shifted = (value >> limited).view(a.dtype)
        return shifted if signed else np.where(amount < bits, shifted, a.dtype.type(0))

    def popcount(self, a: Array) -> Array:
        return np.bitwise_count(a).astype(np.uint32)

    def leading_zeros(self, a: Array) -> Array:
        bits = width(a)
        filled = a
        shift = 1
        while shift < bits:
            filled = filled | filled >> a.dtype.type(shift)
            shift *= 2
        return (bits - np.bitwise_count(filled).astype(np.uint32)).astype(np.uint32)

    def reverse_bits(self, a: Array) -> Array:
        bits = width(a)
        value = a.byteswap()
        for shift, pattern in ((4, 0x0F), (2, 0x33), (1, 0x55)):
            mask = a.dtype.type(int.from_bytes(bytes([pattern]) * (bits // 8), "little"))
            count = a.dtype.type(shift)
            value = ((value >> count) & mask) | ((value & mask) << count)
        return value

    def permute_bytes(self, a: Array, b: Array, selector: Array) -> Array:
        if selector.size == 1 and not int(selector.flat[0]) & 0x8888:
            return _moved_bytes(a, b, int(selector.flat[0]))
        pair = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        result = constant(0, 32)
        for place in range(4):
            nibble = selector >> np.uint32(4 * place)
            byte = ((pair >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)) & np.uint64(0xFF)).astype(np.uint32)
            if (nibble & np.uint32(8)).any():
                sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
                byte = np.where(nibble & np.uint32(8), sign, byte)
            result = result | (byte << np.uint32(8 * place))
        return result

    def compare(self, a: Array, b: Array, op: str, signed: bool) -> Array:
        if signed:
            bits = width(a)
            return _COMPARE[op](a.view(SIGNED[bits]), b.view(SIGNED[bits]))
        return _COMPARE[op](a, b)

    def select(self, p: Array, a: Array, b: Array) -> Array:
        return np.where(p, a, b)


def _moved_bytes(a: Array, b: Array, selector: int) -> Array:
    """`permute_bytes` by one selector without signs: bytes of one source that move equally far go together."""
    masks: dict[tuple[int, int], int] = {}
    for place in range(4):
        byte = selector >> (4 * place) & 7
        move = (byte >> 2, place - (byte & 3))
        masks[move] = masks.get(move, 0) | 0xFF << (8 * place)
    result: Array | None = None
    for (source, distance), mask in masks.items():
        value = b if source else a
        if distance:
            amount = np.uint32(8 * abs(distance))
            value = value << amount if distance > 0 else value >> amount
        part = value & np.uint32(mask)
        result = part if result is None else result | part
    assert result is not None
    return result
