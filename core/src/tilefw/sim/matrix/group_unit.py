"""Products of groups of waves: one dense product for each group, whose accumulators are views into its result.

The dense accumulators of a group are [rows, columns] in an order of columns that gives the lanes of a wave one stride: the columns
that lane bits choose are the highest. So registers are views, and the next product takes the dense sums as they stand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tilefw.api.integers import log2
from tilefw.sim.floats import UNSIGNED, Array
from tilefw.sim.matrix.fragments import Fragment
from tilefw.sim.matrix.group_product import DescribedTile, GroupProduct
from tilefw.sim.matrix.layout import Layout
from tilefw.sim.matrix.unit import codes_of, element_bits, summed, values_of

# GroupAccumulators of so many products are remembered: a loop has a few chains at once.
_REMEMBERED = 8
Shape = tuple[int, int, int]


class AccumulatorRegister(NamedTuple):
    """Where a register stands in the dense accumulators of a wave: which rows, and which word of each lane's columns."""

    rows: int
    word: int


class GroupAccumulators:
    """C and D of one product over the registers of a group.

    Of a wave's rows and columns, lanes hold the lower row bits and, above everything else, the column bits; registers hold the
    other rows and, for each lane, the columns of one block after the other.
    """

    def __init__(self, fragment: Fragment, n: int, lanes: int) -> None:
        self.fmt, self.bits = fragment.fmt, element_bits(fragment.fmt)
        lane_columns = [i for i, bit in enumerate(fragment.columns) if bit[0] == "l"]
        own_columns = [i for i, bit in enumerate(fragment.columns) if bit[0] != "l"]
        lane_rows = [bit for bit in fragment.rows if bit[0] == "l"]
        held = [fragment.columns[i] for i in lane_columns] + lane_rows
        if held != [f"l{i}" for i in range(log2(lanes))] or list(fragment.rows[: len(lane_rows)]) != lane_rows:
            raise ValueError(f"lanes of {fragment} are no stride of a row of accumulators")
        self.width = width = 1 << len(fragment.columns)
        self.blocks, self.height = n // width, 1 << len(fragment.rows)
        self.row_groups = self.height // (1 << len(lane_rows))
        self.words = n * self.bits // 32 // (1 << len(lane_columns))
        self.columns = _column_order(n, width, lane_columns, own_columns)
        self.registers = self._registers(fragment, lane_rows, own_columns)

    def _registers(self, fragment: Fragment, lane_rows: list[str], own_columns: list[int]) -> tuple[AccumulatorRegister, ...]:
        """In the order of their numbers: those of a block, then of the next."""
        row_bits = fragment.rows[len(lane_rows) :]
        word_bits = [fragment.columns[i] for i in own_columns if fragment.columns[i][0] == "r"]
        each = 1 << (len(row_bits) + len(word_bits))

        def number(bits: Sequence[str], register: int) -> int:
            return sum((register >> int(bit[1:]) & 1) << i for i, bit in enumerate(bits))

        return tuple(
            AccumulatorRegister(number(row_bits, register), (block << len(word_bits)) + number(word_bits, register))
            for block in range(self.blocks) for register in range(each)
        )

    def spread(self, codes: Array, shape: Shape) -> tuple[Array, ...]:
        """Registers [groups, waves, lanes] as views of the dense codes of all waves' rows."""
        parts = codes.view(np.uint32).reshape(shape[0], shape[1], self.row_groups, shape[2], self.words)
        return tuple(parts[:, :, register.rows, :, register.word] for register in self.registers)

    def gather(self, registers: Sequence[Array], shape: Shape) -> Array:
        """Dense codes [all waves' rows, columns] of registers."""
        parts = np.empty((shape[0], shape[1], self.row_groups, shape[2], self.words), np.uint32)
        for place, register in zip(self.registers, registers, strict=True):
            parts[:, :, place.rows, :, place.word] = register.view(np.uint32)
        return parts.view(UNSIGNED[self.bits]).reshape(shape[0] * shape[1] * self.height, -1)


def _column_order(n: int, width: int, lane_columns: list[int], own_columns: list[int]) -> Array:
    """For each place in a dense row its column: lane bits on top, then the block, then what a lane has in a block."""
    column = np.arange(n)
    own = sum((column >> bit & 1) << i for i, bit in enumerate(own_columns))
    lane = sum((column >> bit & 1) << i for i, bit in enumerate(lane_columns))
    return np.argsort((lane * (n // width) + column // width) * width + own, kind="stable")


@cache
def accumulators(fragment: Fragment, n: int, lanes: int) -> GroupAccumulators:
    """Made once for each shape."""
    return GroupAccumulators(fragment, n, lanes)


class GroupUnit:
    """The products of one launch. Shapes are (workgroups, waves, lanes) of whole groups, the waves of a group side by side."""

    def __init__(self, hardware: bool) -> None:
        self.hardware = hardware
        self._sums: OrderedDict[int, tuple[tuple[Array, ...], Array]] = OrderedDict()

    def multiply(
        self, shape: Shape, a: Array, b: Array, registers: Sequence[Array] | None, product: GroupProduct
    ) -> tuple[Array, ...]:
        """D's registers, given A [groups, rows, k] and B [groups, n, k] as codes, B's columns in the order of the accumulators, and
        C's registers (None: zero)."""
        held = accumulators(product.c, product.n, shape[2])
        groups, rows = shape[0] * shape[1] // product.waves, product.waves * held.height
        left, right = values_of(a, product.a_format), values_of(b, product.b.fmt).swapaxes(1, 2)
        if product.changes_sign:
            left = -left
        c = self._addend(shape, registers, held).reshape(-1, rows, product.n)
        left = np.broadcast_to(left, (groups, *left.shape[1:]))
        maps = (*(Fragment(fmt, (), ()) for fmt in (product.a_format, product.b.fmt)), product.c, product.c)
        total = summed(left, right, c, maps, product.accumulation, self.hardware)
        codes = codes_of(total, held.fmt)
        result = held.spread(codes, shape)
        self._remember(result, values_of(codes, held.fmt))
        return result

    def poison(
        self, shape: Shape, a: Array, b: Array, registers: Sequence[Array] | None, product: GroupProduct
    ) -> tuple[Array, ...]:
        """Undefined bits of D, given those of A, B and C: an element is undefined where one of its row, of its column or its
        addend is."""
        held = accumulators(product.c, product.n, shape[2])
        lost = np.any(a, axis=2)[:, :, None] | np.any(b, axis=2)[:, None, :]
        unsigned = UNSIGNED[held.bits]
        if registers is not None:
            addend = held.gather([np.broadcast_to(value, shape) for value in registers], shape)
            lost = lost | (addend.reshape(-1, product.waves * held.height, product.n) != 0)
        marks = np.where(lost, ~unsigned(0), unsigned(0))
        full = np.broadcast_to(marks, (shape[0] * shape[1] // product.waves, product.waves * held.height, product.n))
        return held.spread(np.ascontiguousarray(full), shape)

    def _addend(self, shape: Shape, registers: Sequence[Array] | None, held: GroupAccumulators) -> Array:
        if registers is None:
            rows = shape[0] * shape[1] * held.height
            return values_of(np.zeros((rows, held.blocks * held.width), UNSIGNED[held.bits]), held.fmt)
        known = self._sums.pop(id(registers[0]), None)
        if known is not None and len(known[0]) == len(registers) and all(map(_same, known[0], registers)):
            return known[1]
        return values_of(held.gather(registers, shape), held.fmt)

    def _remember(self, registers: tuple[Array, ...], sums: Array) -> None:
        # Registers are never written in place; holding them keeps their ids from being given to others.
        self._sums[id(registers[0])] = registers, sums
        if len(self._sums) > _REMEMBERED:
            self._sums.popitem(last=False)

    def close(self) -> None:
        """The launch is over."""
        self._sums.clear()


def _same(a: Array, b: Array) -> bool:
    return a is b


@cache
def held_layout(fragment: Fragment, lanes: int) -> Layout:
    """How one wave's rows of A lie in its registers."""
    return Layout(fragment.bits, element_bits(fragment.fmt), fragment.register_bits, lanes)


@cache
def held_order(product: GroupProduct, lanes: int) -> Array:
    """The columns of B in the order of the accumulators."""
    return accumulators(product.c, product.n, lanes).columns


def tile_codes(tile: DescribedTile, chunks: Array) -> Array:
    """Codes [groups, rows, k] of a tile, given its chunks [groups, chunks] in the order of its places."""
    codes = chunks.view(UNSIGNED[element_bits(tile.fmt)])
    if tile.along_k:
        return codes.reshape(len(codes), tile.rows, -1)
    return codes.reshape(len(codes), -1, tile.rows).swapaxes(1, 2)
