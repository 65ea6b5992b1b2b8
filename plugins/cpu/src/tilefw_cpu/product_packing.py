"""The factors of a product as its instructions take them: groups of rows of the right one side by side, wide numbers as parts.

Both factors are looked through on the way. TDPBF16PS takes subnormal numbers for zero, on either side (Intel SDM, volume 2), which
tile IR does not allow. It has none to meet where each factor is normal and every product is a multiple of 2^-126: then all sums
are, rounded or not. An fp16 is the sum of two bf16 that are far from subnormal; but an infinity is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from math import gcd

from tilefw.api.tile import WholeProduct
from tilefw_cpu.arithmetic import LlvmArithmetic
from tilefw_cpu.factor_planes import planes_of
from tilefw_cpu.matrix_engines import MatrixEngine
from tilefw_cpu.spelling import LlvmValue, llvm_type, vector

ROW = 64  # bytes of a row of a tile
TILE = 16 * ROW
_SIGNLESS = 0x7FFF
_UPPER, _LARGEST = 0xFFFF0000, 0x7F7FFFFF  # of fp32
# What VFIXUPIMM makes of numbers, from the lowest four bits on of a quiet NaN, a signalling one, 0, 1, -infinity, infinity, other
# negative and positive numbers: 1 keeps them, 8 is zero, 14 the largest number.
_COUNTS_AS = 0x11881EEE
# Exponent fields as stored, of bf16: their sum is of the least product, whose last place is 2^(sum - 268).
_LEAST_SUM = 268 - 126


def bytes_of_operand(operand_type: str) -> int:
    return 1 if operand_type in ("i8", "u8") else 2


def workspace_bytes(sizes: tuple[int, int, int], operand_type: str) -> int:
    """Both factors, packed; four tiles of sums; a number for each row."""
    rows, columns, depth = sizes
    parts, width = planes_of(operand_type).parts, bytes_of_operand(operand_type)
    return _whole_rows(parts * (rows + columns) * depth * width) + 4 * TILE + 4 * rows


def _whole_rows(nbytes: int) -> int:
    """So many bytes and what is left of a row: where the sums begin, which are loaded from where rows may stand."""
    return -(-nbytes // ROW) * ROW


class ProductPacking:
    """Writes what comes before a product, for one of these steps; `undone` is then true where the instructions may not do it."""

    def __init__(self, writer: LlvmArithmetic, engine: MatrixEngine, product: WholeProduct[LlvmValue]) -> None:
        assert product.workspace is not None
        self.writer, self.engine, self.product = writer, engine, product
        self.rows, self.columns, self.depth = product.sizes
        self.width = bytes_of_operand(product.operand_type)
        self.group = 4 // self.width
        self.planes = planes_of(product.operand_type)
        self.parts = self.planes.parts
        self.sums_type = product.sums_type
        self.panel = self.depth // self.group * engine.lanes * 4
        """Bytes of the right factor's columns that make one vector."""
        self.tile_rows = gcd(self.rows, 16) if engine.tiles else 1
        """Rows of the left factor that stand beside each other, tile by tile of their depth."""
        self.tile_depth = gcd(self.depth * self.width, ROW)
        self.left_row = self.depth * self.width
        self.left_plane, self.right_plane = self.rows * self.left_row, self.columns * self.left_row
        self.right = product.workspace
        self.left = self.at(product.workspace, (self.parts * self.right_plane, 1))
        spent = _whole_rows(self.parts * (self.right_plane + self.left_plane))
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

    def add(
        self, made: LlvmValue, place: LlvmValue, row: tuple[LlvmValue | int, ...], column: tuple[LlvmValue | int, ...]
    ) -> None:
        """A vector of the product, onto what it is to be added to, for a place of the sums; row and column are sums of numbers."""
        product = self.product
        if product.onto is None:
            known = self.load(place, self.sums_type, made.lanes)
        else:
            known = product.onto.at(self._sum(row), self._sum(column), made.lanes)
        self.store(self.writer.op("addi" if self.sums_type == "i32" else "addf", (known, made), self.sums_type), place)

    def either(self, alone: Callable[[], None], onto: Callable[[], None]) -> None:
        """One of two things: for a product that stands alone, or for one that is added to something."""
        writer, holds = self.writer, self.product.alone
        if isinstance(holds, bool):
            (alone if holds else onto)()
            return
        for condition, write in ((holds, alone), (writer.op("xori", (holds, writer.const(1, "i1")), "i1"), onto)):
            with writer.branch(condition):
                write()

    def _sum(self, numbers: tuple[LlvmValue | int, ...]) -> LlvmValue:
        known = sum(each if isinstance(each, int) else each.number or 0 for each in numbers)
        parts = [each for each in numbers if not isinstance(each, int) and each.number is None]
        return reduce(lambda a, b: self.writer.op("addi", (a, b), "i64"), [*parts, self.number(known)])

    # -- what is packed

    def write(self) -> LlvmValue | None:
        """Pack both factors. The result: whether the instructions may not multiply them, where that is not known beforehand."""
        if self.product.operand_type in ("i8", "u8"):
            self._pack_bytes()
            return None
        return self._split() if self.parts > 1 else self._pack_pairs()

    def _pack_bytes(self) -> None:
        """Fours of rows. VPDPBUSD takes one factor without a sign: the right one is turned by 128 (`row_sums`)."""

        def take(depth: LlvmValue, column: LlvmValue, rows: Sequence[Sequence[LlvmValue]]) -> None:
            joined = self._interleaved([row for (row,) in rows])
            if not self.engine.tiles:
                joined = self.writer.op("xori", (joined, self.writer.const(0x80, "i8")), "i8")
            self._store_packed(joined, depth, column)

        self.product.right.each(4, self.engine.lanes, 1, take)
        self._each_of_left(lambda values, place: self.store(self._joined(values), place))

    def _each_of_left(self, take: Callable[[Sequence[LlvmValue], LlvmValue], None]) -> None:
        """For all vectors of the left factor that make a row of a tile, what `take` does with them and with their place."""
        lanes = gcd(self.depth, 16)
        across = self.tile_depth // self.width // lanes
        with self.count(self.rows, self.tile_rows) as first:

            def place(row: LlvmValue, column: LlvmValue, found: Sequence[Sequence[LlvmValue]]) -> None:
                steps = (first, self.left_row), (column, self.tile_rows * self.width), (row, self.tile_depth)
                take(found[0], self.at(self.left, *steps))

            self.product.left.each(1, lanes, across, place, first, self.tile_rows)

    def _joined(self, values: Sequence[LlvmValue]) -> LlvmValue:
        """Vectors one behind another."""
        found = list(values)
        while len(found) > 1:
            found = [self.writer.shuffled(a, b, range(2 * a.lanes)) for a, b in zip(found[::2], found[1::2], strict=True)]
        return found[0]

    def _pack_pairs(self) -> LlvmValue:
        writer = self.writer
        right, left = (_LeastCode(self, lanes) for lanes in (2 * self.engine.lanes, self.tile_depth // 2))

        def take(depth: LlvmValue, column: LlvmValue, rows: Sequence[Sequence[LlvmValue]]) -> None:
            joined = self._interleaved([row for (row,) in rows])
            right.meet(self._magnitude_or_most(joined))
            self._store_packed(joined, depth, column)

        def take_left(values: Sequence[LlvmValue], place: LlvmValue) -> None:
            joined = self._joined(values)
            left.meet(self._magnitude_or_most(joined))
            self.store(joined, place)

        self.product.right.each(2, self.engine.lanes, 1, take)
        self._each_of_left(take_left)
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
        signless = writer.op("andi", (LlvmValue(codes.text, "i16", codes.lanes), writer.const(_SIGNLESS, "i16")), "i16")
        return writer.op("subi", (signless, writer.const(1, "i16")), "i16")

    def _split(self) -> LlvmValue:
        """Both factors in parts: of two vectors of numbers one of each part, their upper halves."""
        lanes = self.engine.lanes
        right, left = _LeastMagnitude(self), _LeastMagnitude(self)

        def take(depth: LlvmValue, column: LlvmValue, rows: Sequence[Sequence[LlvmValue]]) -> None:
            found = [self._wide(row) for (row,) in rows]
            for values in found:
                right.meet(values)
            order = [2 * (k // 2) + 1 + k % 2 * 2 * lanes for k in range(2 * lanes)]
            for plane, (first, second) in enumerate(zip(*(self._parts(values) for values in found), strict=True)):
                self._store_packed(self.writer.shuffled(first, second, order), depth, column, plane)

        def take_left(values: Sequence[LlvmValue], place: LlvmValue) -> None:
            found = [self._wide(each) for each in values]
            for each in found:
                left.meet(each)
            for plane, parts in enumerate(zip(*(self._parts(each) for each in found), strict=True)):
                joined = self.writer.shuffled(parts[0], parts[-1], [2 * k + 1 for k in range(len(parts) * lanes)])
                self.store(joined, self.at(place, (plane, self.left_plane)))

        self.product.right.each(2, lanes, 1, take)
        self._each_of_left(take_left)
        return self._outside(left, right)

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

    def _outside(self, left: _LeastMagnitude, right: _LeastMagnitude) -> LlvmValue:
        """Whether a factor is no sum of normal parts, or the least product of parts may be no multiple of 2^-126. A NaN is one:
        with it a product is a NaN anyway."""
        writer = self.writer
        least = [each.exponent() for each in (left, right)]
        low = writer.op("ltu", (writer.op("addi", tuple(least), "i32"), writer.const(self.planes.least_sum, "i32")), "i1")
        small = [writer.op("ltu", (each, writer.const(self.planes.least_exponent, "i32")), "i1") for each in least]
        return writer.op("ori", (low, writer.op("ori", (small[0], small[1]), "i1")), "i1")

    def _interleaved(self, rows: list[LlvmValue]) -> LlvmValue:
        lanes, count = self.engine.lanes, len(rows)
        joined = self._joined(rows)
        return self.writer.shuffled(joined, joined, [k % count * lanes + k // count for k in range(count * lanes)])

    def _store_packed(self, value: LlvmValue, depth: LlvmValue, column: LlvmValue, plane: int = 0) -> None:
        lanes = self.engine.lanes
        step = self.panel // lanes  # bytes of a panel for each column
        place = self.at(self.right, (column, step), (depth, 4 * lanes // self.group), (plane, self.right_plane))
        self.store(value, place, 4 * lanes)


class _LeastCode:
    """The least of codes, read without a sign, that pass by."""

    def __init__(self, packing: ProductPacking, lanes: int) -> None:
        self._writer = packing.writer
        self._variable = self._writer.variable("i16", lanes)
        self._writer.assign(self._variable, self._writer.repeated(self._writer.const(0xFFFF, "i16"), lanes))

    def meet(self, values: LlvmValue) -> None:
        known = self._writer.read(self._variable)
        self._writer.assign(self._variable, self._writer.op("minu", (known, values), "i16"))

    def result(self) -> LlvmValue:
        writer, found = self._writer, self._writer.read(self._variable)
        if found.lanes == 1:
            return found
        name = f"llvm.vector.reduce.umin.v{found.lanes}i16"
        return writer.emit(writer.call(name, "i16", [f"{vector('i16', found.lanes)} {found.text}"]), "i16", 1)


class _LeastMagnitude:
    """The least magnitude of fp32 numbers that pass by, but for zeros and NaN; an infinity counts as zero. In vectors of 16, by
    VFIXUPIMM and VRANGE (Intel SDM, volume 2C)."""

    def __init__(self, packing: ProductPacking) -> None:
        self._writer = packing.writer
        self._variable = self._writer.variable("f32", 16)
        self._writer.assign(self._variable, self._writer.repeated(self._writer.const(_LARGEST, "f32"), 16))

    def meet(self, values: LlvmValue) -> None:
        writer, kind = self._writer, vector("float", 16)
        table = writer.repeated(writer.const(_COUNTS_AS, "i32"), 16)
        arguments = [f"{kind} {values.text}", f"{kind} {values.text}", f"<16 x i32> {table.text}", "i32 0", "i16 -1", "i32 4"]
        counted = writer.emit(writer.call("llvm.x86.avx512.mask.fixupimm.ps.512", kind, arguments), "f32", 16)
        known = writer.read(self._variable)
        arguments = [f"{kind} {known.text}", f"{kind} {counted.text}", "i32 10", f"{kind} zeroinitializer", "i16 -1", "i32 4"]
        found = writer.emit(writer.call("llvm.x86.avx512.mask.range.ps.512", kind, arguments), "f32", 16)  # 10: of magnitudes
        writer.assign(self._variable, found)

    def exponent(self) -> LlvmValue:
        """Its exponent as it is stored."""
        writer = self._writer
        code, kind = writer.as_type(writer.read(self._variable), "i32"), vector("i32", 16)
        least = writer.emit(writer.call("llvm.vector.reduce.umin.v16i32", "i32", [f"{kind} {code.text}"]), "i32", 1)
        return writer.op("shru", (least, writer.const(23, "i32")), "i32")
