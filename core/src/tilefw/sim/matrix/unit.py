"""Matrix products over the registers of a wave: fragments to dense tiles by bit maps, and the two ways of summing.

Decoded operands are remembered for a few steps, because a matrix instruction's operands are used again with many partners,
and its result is mostly the next one's accumulator.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tilefw.api.errors import UnsupportedError
from tilefw.sim.floats import FORMATS, UNSIGNED, Array, decode, encode
from tilefw.sim.matrix.fragments import Accumulation, Fragment
from tilefw.sim.matrix.layout import Layout, memory_order
from tilefw.sim.matrix.sums import hardware_sum

_INTEGER = {
    "s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False), "u2": (2, False), "s32": (32, True), "b1": (1, False)
}
# More operands than a step of a large tile has (16 x 16 accumulators of 16 x 16 would be more than all registers hold).
_REMEMBERED = 96
# How sums of a format are held when they are exactly what the registers hold.
_ACCUMULATED = {"f32": np.float32, "f64": np.float64, "s32": np.int32}

Shape = tuple[int, int, int]
Operands = Sequence[Sequence[Array]]
Maps = tuple[Fragment, ...]


def element_bits(fmt: str) -> int:
    return _INTEGER[fmt][0] if fmt in _INTEGER else FORMATS[fmt].bits


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One operand of a product: its fragment and how it lies in the registers."""

    fragment: Fragment
    layout: Layout


@cache
def _sides(maps: Maps, lanes: int) -> tuple[_Side, ...]:
    made = {m: _Side(m, Layout(m.bits, element_bits(m.fmt), m.register_bits, lanes)) for m in maps}
    return tuple(made[m] for m in maps)


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
        self._decoded: OrderedDict[tuple[int, ...], tuple[Any, Array]] = OrderedDict()
        # By the maps' ids, which is quicker than by the maps; each entry holds what has the ids.
        self._products: dict[tuple[int, ...], tuple[Maps, tuple[_Side, ...]]] = {}

    def multiply(self, shape: Shape, operands: Operands, maps: Maps, accumulation: Accumulation) -> tuple[Array, ...]:
        sides = self._sides_of(maps, shape[2])
        a, b = self._dense(shape, operands[0], sides[0]), self._dense(shape, operands[1], sides[1])
        c = self._addend(shape, operands[2], sides[2], sides[3])
        total = summed(a, b, c, maps, accumulation, self.hardware)
        return self._registers(total, shape, sides[3], operands[2])

    def multiply_sparse(
        self, shape: Shape, operands: Operands, maps: Maps, index: Sequence[Array], index_map: Fragment, accumulation: Accumulation
    ) -> tuple[Array, ...]:
        """`Algebra.sparse_matrix_multiply`: A has half of the columns, `index` says of each which of four rows of B it meets."""
        if self.hardware and maps[2].fmt not in _INTEGER:
            _require_model(accumulation)
        *sides, d, named = _sides((*maps, index_map), shape[2])
        a, b, c = [self._dense(shape, values, side) for values, side in zip(operands, sides, strict=True)]
        chosen = self._dense(shape, index, named).astype(np.intp)
        rows = chosen + 4 * (np.arange(chosen.shape[2]) // 2)
        met = b[np.arange(len(b))[:, None, None], rows]  # [waves, row of A, stored column, column of B]
        product = np.matmul(a[:, :, None, :], met)[:, :, 0, :]
        total = product + c if maps[2].fmt not in _INTEGER else _integer_sum(product, c, accumulation.saturate)
        return self._registers(total, shape, d, operands[2])

    def multiply_scaled(self, shape: Shape, operands: Operands, maps: Maps, accumulation: Accumulation) -> tuple[Array, ...]:
        """`Algebra.scaled_matrix_multiply`: operands and maps are those of A, B, C and of the scales of A and of B. The factors may
        leave the range of f32, so sums are f64 until they are rounded."""
        if self.hardware:
            _require_model(accumulation)
        sides = _sides(maps, shape[2])
        dense = (self._dense(shape, values, side) for values, side in zip(operands, sides, strict=True))
        a, b, c, rows, columns = (part.astype(np.float64) for part in dense)
        a = a * np.repeat(rows, a.shape[2] // rows.shape[2], axis=2)
        b = b * np.repeat(columns, b.shape[1] // columns.shape[1], axis=1)
        return self._registers(np.matmul(a, b) + c, shape, sides[2], operands[2])

    def poison_scaled(self, shape: Shape, operands: Operands, maps: Maps) -> tuple[Array, ...]:
        """`poison`, where an undefined scale is as undefined elements of its row or column."""
        sides = _sides(maps, shape[2])
        a, b, c, rows, columns = self._marks(shape, operands, sides)
        lost = c
        for part, across in ((a, 2), (rows, 2), (b, 1), (columns, 1)):
            lost = lost | np.any(part, axis=across, keepdims=True)
        return self._lost(lost, shape, sides[2], operands[2])

    def poison(self, shape: Shape, operands: Operands, maps: Maps) -> tuple[Array, ...]:
        """Undefined bits of D, given those of A, B and C: an element is undefined where one of its row, of its column or its
        addend is."""
        *sides, d = self._sides_of(maps, shape[2])
        a, b, c = self._marks(shape, operands, sides)
        lost = np.any(a, axis=2, keepdims=True) | np.any(b, axis=1, keepdims=True) | c
        return self._lost(lost, shape, d, operands[2])

    @staticmethod
    def _marks(shape: Shape, operands: Operands, sides: Sequence[_Side]) -> list[Array]:
        """Which elements of each operand are undefined."""
        return [
            side.layout.gather(values, shape).reshape(-1, *side.fragment.shape) != 0
            for values, side in zip(operands, sides, strict=True)
        ]

    def _lost(self, lost: Array, shape: Shape, side: _Side, addend: Sequence[Array]) -> tuple[Array, ...]:
        """Undefined elements of D as undefined bits of its registers."""
        unsigned = UNSIGNED[element_bits(side.fragment.fmt)]
        return self._spread(np.where(lost, ~unsigned(0), unsigned(0)), shape, side, addend)

    def _sides_of(self, maps: Maps, lanes: int) -> tuple[_Side, ...]:
        key = (id(maps[0]), id(maps[1]), id(maps[2]), id(maps[3]), lanes)
        known = self._products.get(key)
        if known is None:
            known = self._products[key] = maps, _sides(_ordered(maps), lanes)
        return known[1]

    def _dense(self, shape: Shape, values: Sequence[Array], side: _Side) -> Array:
        """[waves * blocks, rows, columns] in f32, f64 or int32; waves that agree are kept once for each."""
        key = (id(side), *shape, *map(id, values))
        known = self._decoded.get(key)
        if known is not None:
            self._decoded.move_to_end(key)
            return known[1]
        dense = values_of(side.layout.gather(values, shape), side.fragment.fmt).reshape(-1, *side.fragment.shape)
        self._remember(key, (side, values), dense)
        return dense

    def _addend(self, shape: Shape, values: Sequence[Array], side: _Side, result: _Side) -> Array:
        """C; mostly the sums of an earlier product, which are forgotten then: the next sums take their memory while it is near."""
        known = self._decoded.pop((id(side), *shape, *map(id, values)), None) if side is result else None
        return known[1] if known is not None else self._dense(shape, values, side)

    def _remember(self, key: tuple[int, ...], held: Any, dense: Array) -> None:
        # Registers are never written in place; holding them keeps their ids from being given to others.
        self._decoded[key] = held, dense
        if len(self._decoded) > _REMEMBERED:
            self._decoded.popitem(last=False)

    def _registers(self, total: Array, shape: Shape, side: _Side, addend: Sequence[Array]) -> tuple[Array, ...]:
        """The sums as registers like the addend's."""
        registers = self._spread(codes_of(total, side.fragment.fmt), shape, side, addend)
        if total.dtype == _ACCUMULATED.get(side.fragment.fmt):
            self._remember((id(side), *shape, *map(id, registers)), (side, registers), total)
        return registers

    @staticmethod
    def _spread(codes: Array, shape: Shape, side: _Side, addend: Sequence[Array]) -> tuple[Array, ...]:
        given = addend[0].dtype.itemsize * 8 if side.fragment.register_bits == 64 else side.fragment.register_bits
        return side.layout.scatter(codes.reshape(shape[0] * shape[1], -1), shape, given)


def summed(a: Array, b: Array, c: Array, maps: Maps, accumulation: Accumulation, hardware: bool) -> Array:
    """A x B + C of dense operands in the formats of `maps`."""
    if maps[2].fmt in _INTEGER:
        return _integer(a, b, c, accumulation.saturate)
    if hardware:
        _require_model(accumulation)
        return hardware_sum(a, b, c, maps, accumulation)
    if maps[3].fmt == "f64" or a.dtype == np.float64 or accumulation.wide:
        return np.matmul(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)) + c
    total = np.matmul(a, b)
    total += c
    return total


def _require_model(accumulation: Accumulation) -> None:
    if accumulation.unknown:
        raise UnsupportedError(
            f"how {accumulation.unknown} rounds its sums is not known", code="TFW0823",
            note="no bit-exact model of it is public", help="run this kernel with numerics='ieee'",
        )


def values_of(codes: Array, fmt: str) -> Array:
    """Elements of a format in what products are made of: f32, f64 or int32."""
    if fmt not in _INTEGER:
        return decode(codes, fmt)
    bits, signed = _INTEGER[fmt]
    if bits == 32:
        return codes.view(np.int32)
    # f32 holds all products and sums of these exactly, and has a fast matrix product.
    if bits == 8:
        return codes.view(np.int8 if signed else np.uint8).astype(np.float32)
    value = codes.astype(np.float32)
    return np.where(value >= 2.0 ** (bits - 1), value - np.float32(2.0**bits), value) if signed else value


def codes_of(total: Array, fmt: str) -> Array:
    """Sums as the bit patterns of a format."""
    if fmt in _INTEGER:
        return total.view(np.uint32)
    if fmt == "f32":
        return np.ascontiguousarray(total, dtype=np.float32).view(np.uint32)
    return encode(total.astype(np.float64, copy=False), fmt)


def _integer(a: Array, b: Array, c: Array, saturate: bool) -> Array:
    # |sum| <= 2**8 * 2**8 * k is exact in f32 for k up to 256.
    product = np.matmul(a, b) if a.shape[2] <= 256 else np.matmul(a.astype(np.float64), b.astype(np.float64))
    return _integer_sum(product, c, saturate)


def _integer_sum(product: Array, c: Array, saturate: bool) -> Array:
    """int32, modulo 2**32 or clamped; the product alone never overflows."""
    if not saturate:
        return product.astype(np.int32) + c
    return np.clip(product.astype(np.float64) + c, -(2.0**31), 2.0**31 - 1).astype(np.int32)
