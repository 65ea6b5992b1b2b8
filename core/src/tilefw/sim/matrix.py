"""Matrix products over the registers of a wave: fragments to dense tiles by bit maps, and the two ways of summing.

Decoded operands are remembered for a few steps, because a matrix instruction's operands are used again with many partners,
and its result is mostly the next one's accumulator.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tilefw.api.errors import UnsupportedError
from tilefw.sim.floats import UNSIGNED, Array, decode, encode
from tilefw.sim.fragments import Accumulation, Fragment
from tilefw.sim.matrix_layout import flat_registers, inverse, kinds, memory_order, permute
from tilefw.sim.matrix_sums import hardware_sum

_INTEGER = {
    "s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False), "u2": (2, False), "s32": (32, True), "b1": (1, False)
}
_FLOAT_BITS = {"f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16}
# More operands than a step of a large tile has (16 x 16 accumulators of 16 x 16 would be more than all registers hold).
_REMEMBERED = 96

Shape = tuple[int, int, int]
Operands = Sequence[Sequence[Array]]
Maps = tuple[Fragment, ...]


def element_bits(fmt: str) -> int:
    return _INTEGER[fmt][0] if fmt in _INTEGER else _FLOAT_BITS.get(fmt, 8)


@cache
def _ordered(maps: Maps) -> Maps:
    """The maps of A, B, C, D with rows, columns and blocks numbered as the registers of D hold them.

    That is the same product under other names. Where D's columns are its lowest index bits, as on machines whose lanes run along a
    row, the dense result then *is* the registers, without a copy. The order of k, in which sums are rounded, stays.
    """
    a, b, c, d = maps
    rows, columns, blocks = (
        sorted(range(len(names)), key=lambda i, names=names: memory_order(names[i])) for names in (d.rows, d.columns, d.blocks)
    )

    def picked(names: tuple[str, ...], order: list[int]) -> tuple[str, ...]:
        return tuple(names[i] for i in order)

    def renamed(fragment: Fragment, **sides: tuple[str, ...]) -> Fragment:
        return replace(fragment, blocks=picked(fragment.blocks, blocks), **sides)

    return (
        renamed(a, rows=picked(a.rows, rows)),
        renamed(b, columns=picked(b.columns, columns)),
        *(renamed(f, rows=picked(f.rows, rows), columns=picked(f.columns, columns)) for f in (c, d)),
    )


class MatrixUnit:
    """Matrix products of one launch; `hardware` sums as `Accumulation` says, else in f32 (f64, integers exactly).

    `shape` is (groups, waves, lanes); operands are the registers of A, B and C, maps the fragments of A, B, C and D.
    """

    def __init__(self, hardware: bool) -> None:
        self.hardware = hardware
        self._decoded: OrderedDict[tuple[Any, ...], tuple[Sequence[Array], Array]] = OrderedDict()

    def multiply(self, shape: Shape, operands: Operands, maps: Maps, accumulation: Accumulation) -> tuple[Array, ...]:
        maps = _ordered(maps)
        a, b, c = (self._dense(shape, values, fragment) for values, fragment in zip(operands, maps, strict=False))
        if maps[2].fmt in _INTEGER:
            total = _integer(a, b, c, accumulation.saturate)
        elif self.hardware:
            _require_model(accumulation)
            total = hardware_sum(a, b, c, maps, accumulation)
        elif maps[3].fmt == "f64" or a.dtype == np.float64:
            total = np.matmul(a.astype(np.float64), b.astype(np.float64)) + c
        else:
            total = np.matmul(a, b)
            total += c
        return self._registers(total, shape, maps[3])

    def multiply_sparse(
        self, shape: Shape, operands: Operands, maps: Maps, index: Sequence[Array], index_map: Fragment, accumulation: Accumulation
    ) -> tuple[Array, ...]:
        """`Algebra.sparse_matrix_multiply`: A has half of the columns, `index` says of each which of four rows of B it meets."""
        if self.hardware and maps[2].fmt not in _INTEGER:
            _require_model(accumulation)
        a, b, c = (self._dense(shape, values, fragment) for values, fragment in zip(operands, maps, strict=False))
        chosen = self._dense(shape, index, index_map).astype(np.intp)
        rows = chosen + 4 * (np.arange(chosen.shape[2]) // 2)
        met = b[np.arange(len(b))[:, None, None], rows]  # [waves, row of A, stored column, column of B]
        total = np.matmul(a[:, :, None, :], met)[:, :, 0, :] + c
        return self._registers(total, shape, maps[3])

    def poison(self, shape: Shape, operands: Operands, maps: Maps) -> tuple[Array, ...]:
        """Undefined bits of D, given those of A, B and C: an element is undefined where one of its row, of its column or its
        addend is."""
        maps = _ordered(maps)
        a, b, c = (
            _elements(shape, values, fragment).reshape(-1, *fragment.shape) != 0
            for values, fragment in zip(operands, maps, strict=False)
        )
        lost = a.any(axis=2)[:, :, None] | b.any(axis=1)[:, None, :] | c
        unsigned = UNSIGNED[element_bits(maps[3].fmt)]
        return _spread(np.where(lost, ~unsigned(0), unsigned(0)), shape, maps[3])

    def _dense(self, shape: Shape, values: Sequence[Array], fragment: Fragment) -> Array:
        """[waves * blocks, rows, columns] in f32 or f64; waves that agree are kept once for each."""
        key = (fragment, shape, *map(id, values))
        known = self._decoded.get(key)
        if known is not None:
            self._decoded.move_to_end(key)
            return known[1]
        dense = _values(_elements(shape, values, fragment), fragment.fmt).reshape(-1, *fragment.shape)
        self._remember(key, values, dense)
        return dense

    def _remember(self, key: tuple[Any, ...], values: Sequence[Array], dense: Array) -> None:
        # Registers are never written in place; holding them keeps their ids from being given to others.
        self._decoded[key] = values, dense
        if len(self._decoded) > _REMEMBERED:
            self._decoded.popitem(last=False)

    def _registers(self, total: Array, shape: Shape, fragment: Fragment) -> tuple[Array, ...]:
        registers = _spread(_codes(total, fragment.fmt), shape, fragment)
        if fragment.fmt == "f32" and total.dtype == np.float32:
            self._remember((fragment, shape, *map(id, registers)), registers, total)
        return registers


def _elements(shape: Shape, values: Sequence[Array], fragment: Fragment) -> Array:
    """The bit patterns of all elements, [waves, blocks * rows * columns]."""
    bits = element_bits(fragment.fmt)
    counts = kinds(bits, fragment.register_bits, len(values), shape[2])
    return permute(_unpack(flat_registers(values, shape), bits), fragment.bits, counts)


def _spread(codes: Array, shape: Shape, fragment: Fragment) -> tuple[Array, ...]:
    """Dense bit patterns to registers of [groups, waves, lanes]: the inverse of `_elements`."""
    bits = element_bits(fragment.fmt)
    count = len(fragment.bits)
    registers = (1 << count) // (fragment.register_bits // bits * shape[2])
    back = inverse(fragment.bits, kinds(bits, fragment.register_bits, registers, shape[2]))
    flat = np.ascontiguousarray(permute(codes.reshape(-1, 1 << count), back, (("x", count),)))
    out = flat.view(UNSIGNED[fragment.register_bits]).reshape(shape[0], shape[1], registers, shape[2])
    return tuple(out[:, :, i, :] for i in range(registers))


def _require_model(accumulation: Accumulation) -> None:
    if accumulation.unknown:
        raise UnsupportedError(
            f"how {accumulation.unknown} rounds its sums is not known", code="TFW0823",
            note="no bit-exact model of it is public", help="run this kernel with numerics='ieee'",
        )


def _unpack(flat: Array, bits: int) -> Array:
    if bits >= 8:
        return flat.view(UNSIGNED[bits])
    bytes_ = flat.view(np.uint8)
    parts = [(bytes_ >> np.uint8(i)) & np.uint8((1 << bits) - 1) for i in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(len(flat), -1)


def _values(codes: Array, fmt: str) -> Array:
    if fmt not in _INTEGER:
        return decode(codes, fmt)
    bits, signed = _INTEGER[fmt]
    # f64 holds all products and sums of these exactly, and has a fast matrix product.
    if bits == 32:
        return codes.view(np.int32).astype(np.float64)
    value = codes.astype(np.float32)
    return np.where(value >= 2.0 ** (bits - 1), value - np.float32(2.0**bits), value) if signed else value


def _codes(total: Array, fmt: str) -> Array:
    if fmt in _INTEGER:
        return total.astype(np.int64).astype(np.uint32)
    if fmt == "f32":
        return np.ascontiguousarray(total, dtype=np.float32).view(np.uint32)
    return encode(total.astype(np.float64), fmt)


def _integer(a: Array, b: Array, c: Array, saturate: bool) -> Array:
    # |sum| <= 2**8 * 2**8 * k is exact in f32 for k up to 256.
    product = np.matmul(a, b) if a.shape[2] <= 256 else np.matmul(a.astype(np.float64), b.astype(np.float64))
    total = product.astype(np.float64) + c
    return np.clip(total, -(2.0**31), 2.0**31 - 1) if saturate else total

