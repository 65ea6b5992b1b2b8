"""The factors of a product as its instructions take them: groups of rows of the right one side by side, wide numbers as parts.

Both factors are looked through on the way. TDPBF16PS takes subnormal numbers for zero, on either side (Intel SDM, volume 2), which
tile IR does not allow. It has none to meet where each factor is normal and every product is a multiple of 2^-126: then all sums
are, rounded or not. An fp16 is the sum of two bf16 that are far from subnormal; but an infinity is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import gcd
from typing import ClassVar

from tilefw.api.tile import TileProduct
from tilefw_cpu.arithmetic import LlvmArithmetic
from tilefw_cpu.factor_planes import planes_of
from tilefw_cpu.matrix_engines import MatrixEngine
from tilefw_cpu.spelling import BITS, LlvmValue, bytes_of_type, llvm_type, vector

ROW = 64  # bytes of a row of a tile
TILE = 16 * ROW
_BLOCK = 2  # tiles of rows that are multiplied at once
_SIGNLESS = 0x7FFF
_UPPER, _WIDE_SIGNLESS, _INFINITE = 0xFFFF0000, 0x7FFFFFFF, 0x7F800000  # of fp32
# Exponent fields as stored, of bf16: their sum is of the least product, whose last place is 2^(sum - 268).
_LEAST_SUM = 268 - 126


def bytes_of_operand(operand_type: str) -> int:
    return 1 if operand_type in ("i8", "u8") else 2


def workspace_bytes(sizes: tuple[int, int, int], operand_type: str) -> int:
    """The right factor, packed; two tiles' rows of the left one where it is split; four tiles of sums; a number for each row."""
    rows, columns, depth = sizes
    parts, width = planes_of(operand_type).parts, bytes_of_operand(operand_type)
    left = parts * min(rows, 16 * _BLOCK) * depth * width if parts > 1 else 0
    return _whole_rows(parts * columns * depth * width + left) + 4 * TILE + 4 * rows


def _whole_rows(nbytes: int) -> int:
    """So many bytes and what is left of a row: where the sums begin, which are loaded from where rows may stand."""
    return -(-nbytes // ROW) * ROW


class ProductPacking:
    """Writes what comes before a product, for one of these steps; `undone` is then true where the instructions may not do it."""

    def __init__(self, writer: LlvmArithmetic, engine: MatrixEngine, product: TileProduct[LlvmValue]) -> None:
        assert product.workspace is not None
        self.writer, self.engine, self.product = writer, engine, product
        self.rows, self.columns, self.depth = product.sizes
        self.width = bytes_of_operand(product.operand_type)
        self.group = 4 // self.width
        self.planes = planes_of(product.operand_type)
        self.parts = self.planes.parts
        self.source = "f16" if product.operand_type == "f16" else "f32"
        """What a factor is that has parts."""
        self.panel = self.depth // self.group * engine.lanes * 4
        """Bytes of the right factor's columns that make one vector."""
        self.right_plane = self.columns * self.depth * self.width
        tile = gcd(self.rows, 16)
        self.block = tile * gcd(self.rows // tile, _BLOCK)
        """How many rows of the left factor are multiplied at once."""
        self.left_plane = self.block * self.depth * self.width
        self.right = product.workspace
        self.left = product.left if self.parts == 1 else self.at(product.workspace, (self.parts * self.right_plane, 1))
        self.left_row = product.left_row if self.parts == 1 else self.depth * self.width
        spent = _whole_rows(self.parts * (self.right_plane + (self.left_plane if self.parts > 1 else 0)))
        self.sums = self.at(product.workspace, (spent, 1))
        self.row_numbers = self.at(product.workspace, (spent + 4 * TILE, 1))

    # -- text

    def number(self, value: int) -> LlvmValue:
        return self.writer.const(value % (1 << 64), "i64")

    def at(self, base: LlvmValue, *steps: tuple[LlvmValue | int, int]) -> LlvmValue:
        """The address so many steps of so many bytes behind another."""
        writer, fixed = self.writer, 0
        total: LlvmValue | None = None
        for index, scale in steps:
            number = index if isinstance(index, int) else index.number
            if number is not None:
                fixed += number * scale
                continue
            assert isinstance(index, LlvmValue)
            moved = writer.op("muli", (index, self.number(scale)), "i64") if scale != 1 else index
            total = moved if total is None else writer.op("addi", (total, moved), "i64")
        for offset in (total, self.number(fixed) if fixed else None):
            if offset is not None:
                moved = writer.emit(f"getelementptr i8, ptr {base.text}, i64 {offset.text}", "i64", 1)
                base = LlvmValue(moved.text, "i64", pointer=True)
        return base

    @contextmanager
    def count(self, end: int, step: int = 1) -> Iterator[LlvmValue]:
        """0, step, … below `end`; without a loop where that is 0 alone."""
        if end <= step:
            yield self.number(0)
            return
        with self.writer.loop(self.number(0), self.number(end), self.number(step)) as counter:
            yield counter

    def load(self, place: LlvmValue, type_: str, lanes: int = 1, align: int = 1) -> LlvmValue:
        return self.writer.emit(f"load {vector(llvm_type(type_), lanes)}, ptr {place.text}, align {align}", type_, lanes)

    def store(self, value: LlvmValue, place: LlvmValue, align: int = 1) -> None:
        kind = vector(llvm_type(value.type), value.lanes)
        self.writer.lines.append(f"  store {kind} {value.text}, ptr {place.text}, align {align}")

    # -- what is packed

    def write(self) -> LlvmValue | None:
        """Pack both factors. The result: whether the instructions may not multiply them, where that is not known beforehand."""
        if self.product.operand_type in ("i8", "u8"):
            self._pack_bytes()
            return None
        if self.parts > 1:
            return self._split_right()
        return self._pack_pairs()

    def _pack_bytes(self) -> None:
        """Fours of rows. VPDPBUSD takes one factor without a sign: the right one is turned by 128 (`row_sums`)."""
        with self.count(self.depth, 4) as depth, self.count(self.columns, self.engine.lanes) as column:
            rows = [self._right_row(depth, row, column, "i8") for row in range(4)]
            joined = self._interleaved(rows)
            if not self.engine.tiles:
                joined = self.writer.op("xori", (joined, self.writer.const(0x80, "i8")), "i8")
            self._store_packed(joined, depth, column)

    def _pack_pairs(self) -> LlvmValue:
        writer = self.writer
        right = _Extreme(self, "minu", 2 * self.engine.lanes)
        with self.count(self.depth, 2) as depth, self.count(self.columns, self.engine.lanes) as column:
            joined = self._interleaved([self._right_row(depth, row, column, "i16") for row in range(2)])
            right.meet(self._magnitude_or_most(joined))
            self._store_packed(joined, depth, column)
        chunk = gcd(self.rows * self.depth, 2 * self.engine.lanes)
        left = _Extreme(self, "minu", chunk)
        with self.count(self.rows * self.depth, chunk) as first:
            left.meet(self._magnitude_or_most(self.load(self.at(self.product.left, (first, 2)), "i16", chunk)))
        seven = writer.const(7, "i32")
        exponents = [writer.op("shru", (writer.cast("extu", each.result(), "i32"), seven), "i32") for each in (left, right)]
        small = [writer.op("eqi", (each, writer.const(0, "i32")), "i1") for each in exponents]
        total = writer.op("addi", (exponents[0], exponents[1]), "i32")
        low = writer.op("ltu", (total, writer.const(_LEAST_SUM, "i32")), "i1")
        return writer.op("ori", (low, writer.op("ori", (small[0], small[1]), "i1")), "i1")

    def _magnitude_or_most(self, codes: LlvmValue) -> LlvmValue:
        """The codes of bf16 without their signs, less one: a zero's is the largest then. A subnormal's exponent stays 0, and the
        least normal number's becomes 0, which costs nothing but that number."""
        writer = self.writer
        signless = writer.op("andi", (codes, writer.const(_SIGNLESS, "i16")), "i16")
        return writer.op("subi", (signless, writer.const(1, "i16")), "i16")

    def _split_right(self) -> LlvmValue:
        """The right factor in parts: of two vectors of numbers one of each part, their upper halves. The left one is looked
        through, and split when its rows are multiplied (`split_rows`)."""
        source, lanes = self.source, self.engine.lanes
        width = bytes_of_type(llvm_type(source))
        right, left = (_Magnitudes(self, lanes) for _ in range(2))
        with self.count(self.depth, 2) as depth, self.count(self.columns, lanes) as column:
            found = [self._wide(self._right_row(depth, row, column, source)) for row in range(2)]
            for values in found:
                right.meet(values)
            pairs = [self._parts(values) for values in found]
            for plane, (first, second) in enumerate(zip(*pairs, strict=True)):
                joined = self.writer.shuffled(first, second, [2 * (k // 2) + 1 + k % 2 * 2 * lanes for k in range(2 * lanes)])
                self._store_packed(joined, depth, column, plane)
        with self.count(self.rows * self.depth, lanes) as first:
            left.meet(self._wide(self.load(self.at(self.product.left, (first, width)), source, lanes)))
        return self._outside(left, right)

    def split_rows(self, row: LlvmValue, rows: int) -> None:
        """So many rows of the left factor in parts, from `row` on: as many as are near while all columns pass."""
        source, lanes = self.source, self.engine.lanes
        width = bytes_of_type(llvm_type(source))
        vectors = gcd(rows * self.depth // lanes, 2)  # of numbers: two fill one of parts
        with self.count(rows * self.depth, vectors * lanes) as first:
            places = [
                self.at(self.product.left, (row, self.product.left_row), (first, width), (number * lanes, width))
                for number in range(vectors)
            ]
            halves = [self._parts(self._wide(self.load(place, source, lanes))) for place in places]
            for plane, parts in enumerate(zip(*halves, strict=True)):
                joined = self.writer.shuffled(parts[0], parts[-1], [2 * k + 1 for k in range(vectors * lanes)])
                self.store(joined, self.at(self.left, (first, 2), (plane, self.left_plane)))

    def _wide(self, values: LlvmValue) -> LlvmValue:
        return values if values.type == "f32" else self.writer.cast("castf", values, "f32")

    def _parts(self, values: LlvmValue) -> list[LlvmValue]:
        """The parts of floats, as codes of fp32 whose lower halves do not count: each a vector of twice as many i16."""
        writer, found = self.writer, list[LlvmValue]()
        rest = values
        for number in range(self.parts):
            code, halves = writer.as_type(rest, "i32"), 2 * rest.lanes
            found.append(writer.emit(f"bitcast <{rest.lanes} x i32> {code.text} to <{halves} x i16>", "i16", halves))
            if number < self.parts - 1:
                upper = writer.op("andi", (code, writer.const(_UPPER, "i32")), "i32")
                rest = writer.op("subf", (rest, writer.as_type(upper, "f32")), "f32")
        return found

    def _outside(self, left: _Magnitudes, right: _Magnitudes) -> LlvmValue:
        """Whether a factor is no sum of normal parts, or the least product of parts may be no multiple of 2^-126."""
        writer = self.writer
        least = [self._exponent(each.least.result()) for each in (left, right)]
        small = [writer.op("ltu", (each, writer.const(self.planes.least_exponent, "i32")), "i1") for each in least]
        low = writer.op("ltu", (writer.op("addi", tuple(least), "i32"), writer.const(self.planes.least_sum, "i32")), "i1")
        most = [writer.op("ges", (each.most.result(), writer.const(_INFINITE - 1, "i32")), "i1") for each in (left, right)]
        found = low
        for each in (*small, *most):
            found = writer.op("ori", (found, each), "i1")
        return found

    def _exponent(self, magnitude: LlvmValue) -> LlvmValue:
        return self.writer.op("shru", (magnitude, self.writer.const(23, "i32")), "i32")

    def _right_row(self, depth: LlvmValue, row: int, column: LlvmValue, type_: str) -> LlvmValue:
        product, lanes = self.product, self.engine.lanes
        place = self.at(
            product.right, (depth, product.right_row), (row, product.right_row), (column, bytes_of_type(llvm_type(type_)))
        )
        return self.load(place, type_, lanes)

    def _interleaved(self, rows: list[LlvmValue]) -> LlvmValue:
        writer, lanes, count = self.writer, self.engine.lanes, len(rows)
        while len(rows) > 1:
            rows = [writer.shuffled(a, b, range(2 * a.lanes)) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        order = [k % count * lanes + k // count for k in range(count * lanes)]
        return writer.shuffled(rows[0], rows[0], order)

    def _store_packed(self, value: LlvmValue, depth: LlvmValue, column: LlvmValue, plane: int = 0) -> None:
        lanes = self.engine.lanes
        step = self.panel // lanes  # bytes of a panel for each column
        place = self.at(self.right, (column, step), (depth, 4 * lanes // self.group), (plane, self.right_plane))
        self.store(value, place, 4 * lanes)


class _Extreme:
    """The least or the largest of numbers that pass by."""

    _NAMES: ClassVar[Mapping[str, str]] = {"minu": "umin", "maxs": "smax"}

    def __init__(self, packing: ProductPacking, row: str, lanes: int, type_: str = "i16") -> None:
        self._writer, self._row, self._type = packing.writer, row, type_
        self._variable = self._writer.variable(type_, lanes)
        ones = (1 << BITS[type_]) - 1  # the largest without a sign, and -1
        self._writer.assign(self._variable, self._writer.repeated(self._writer.const(ones, type_), lanes))

    def meet(self, values: LlvmValue) -> None:
        known = self._writer.read(self._variable)
        self._writer.assign(self._variable, self._writer.op(self._row, (known, values), self._type))

    def result(self) -> LlvmValue:
        writer, found = self._writer, self._writer.read(self._variable)
        if found.lanes == 1:
            return found
        kind = vector(self._type, found.lanes)
        name = f"llvm.vector.reduce.{self._NAMES[self._row]}.v{found.lanes}{self._type}"
        return writer.emit(writer.call(name, self._type, [f"{kind} {found.text}"]), self._type, 1)


class _Magnitudes:
    """The least and the largest of fp32's magnitudes that pass by, as codes less one: a zero is the largest without a sign, and -1
    with one, so that it counts for neither."""

    def __init__(self, packing: ProductPacking, lanes: int) -> None:
        self._writer = packing.writer
        self.least, self.most = (_Extreme(packing, row, lanes, "i32") for row in ("minu", "maxs"))

    def meet(self, values: LlvmValue) -> None:
        writer = self._writer
        code = writer.op("andi", (writer.as_type(values, "i32"), writer.const(_WIDE_SIGNLESS, "i32")), "i32")
        less = writer.op("subi", (code, writer.const(1, "i32")), "i32")
        self.least.meet(less)
        self.most.meet(less)
