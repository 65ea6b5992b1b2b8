"""Products of bytes in vectors: VPDPBUSD sums up fours of products of bytes without and bytes with a sign.

Of factors with equal signs, one factor is turned by 128, which adds to or takes from each sum 128 times a row of the other.
"""

from __future__ import annotations

from math import gcd

from tilefw_cpu.product_packing import ProductPacking
from tilefw_cpu.spelling import LlvmValue, vector

_ROWS, _VECTORS, _STEPS = 8, 2, 4


class VectorProducts:
    """Writes the products of packed factors."""

    def __init__(self, packing: ProductPacking) -> None:
        self._packing, self._writer = packing, packing.writer
        self._lanes = packing.engine.lanes
        self._rows = gcd(packing.rows, _ROWS)
        self._vectors = gcd(packing.columns // self._lanes, _VECTORS)
        self._steps = gcd(packing.depth // packing.group, _STEPS)
        self._signed = packing.product.operand_type == "i8"

    def write(self) -> None:
        """All blocks of sums."""
        packing = self._packing
        self._row_sums()
        with packing.count(packing.columns, self._vectors * self._lanes) as column, packing.count(packing.rows, self._rows) as row:
            self._block(row, column)

    def _row_sums(self) -> None:
        """128 times the sum of each row of the left factor, as it is to be added."""
        packing, writer = self._packing, self._writer
        chunk = gcd(packing.depth, packing.engine.bits // 8)
        ones = writer.repeated(writer.const(1, "i8"), chunk)
        with packing.count(packing.rows) as row:
            total = writer.variable("i32", chunk // 4)
            writer.assign(total, writer.repeated(writer.const(0, "i32"), chunk // 4))
            with packing.count(packing.depth, chunk) as depth:
                part = packing.load(packing.at(packing.left, (row, packing.left_row), (depth, 1)), "i8", chunk)
                first, second = (ones, part) if self._signed else (part, ones)
                writer.assign(total, self._dot(writer.read(total), first, second))
            kind = vector("i32", chunk // 4)
            name = f"llvm.vector.reduce.add.v{chunk // 4}i32"
            found = writer.emit(writer.call(name, "i32", [f"{kind} {writer.read(total).text}"]), "i32", 1)
            factor = writer.const((-128 if self._signed else 128) % (1 << 32), "i32")
            packing.store(writer.op("muli", (found, factor), "i32"), packing.at(packing.row_numbers, (row, 4)), 4)

    def _block(self, row: LlvmValue, column: LlvmValue) -> None:
        packing, writer, lanes = self._packing, self._writer, self._lanes
        zero = writer.repeated(writer.const(0, "i32"), lanes)
        sums = [[writer.variable("i32", lanes) for _ in range(self._vectors)] for _ in range(self._rows)]
        for variable in (each for line in sums for each in line):
            writer.assign(variable, zero)
        with packing.count(packing.depth, 4 * self._steps) as depth:
            for step in range(self._steps):
                right = [self._right(column, j, depth, step) for j in range(self._vectors)]
                for i, line in enumerate(sums):
                    place = packing.at(packing.left, (row, packing.left_row), (i, packing.left_row), (depth, 1), (4 * step, 1))
                    left = writer.repeated(packing.load(place, "i32"), lanes)
                    for factor, variable in zip(right, line, strict=True):
                        writer.assign(variable, self._fours(writer.read(variable), factor, left))
        for i, line in enumerate(sums):
            for j, variable in enumerate(line):
                self._add(row, column, i, j, writer.read(variable))

    def _right(self, column: LlvmValue, number: int, depth: LlvmValue, step: int) -> LlvmValue:
        packing, lanes, panel = self._packing, self._lanes, self._packing.panel
        place = packing.at(packing.right, (column, panel // lanes), (number, panel), (depth, lanes), (step, 4 * lanes))
        return packing.load(place, "i32", lanes, 4 * lanes)

    def _add(self, row: LlvmValue, column: LlvmValue, i: int, j: int, made: LlvmValue) -> None:
        packing, writer = self._packing, self._writer
        number = packing.load(packing.at(packing.row_numbers, (row, 4), (i, 4)), "i32", align=4)
        made = writer.op("addi", (made, number), "i32")
        sums_row = packing.product.sums_row
        place = packing.at(packing.product.sums, (row, sums_row), (i, sums_row), (column, 4), (j, 4 * self._lanes))
        packing.either(
            lambda: packing.store(made, place), lambda: packing.add(made, place, (row, i), (column, j * self._lanes)),
        )

    def _fours(self, sums: LlvmValue, right: LlvmValue, left: LlvmValue) -> LlvmValue:
        """A step of all lanes; a right factor that had signs has none any more, and one that had none has some now."""
        first, second = (right, left) if self._signed else (left, right)
        return self._dot(sums, first, second)

    def _dot(self, sums: LlvmValue, unsigned: LlvmValue, signed: LlvmValue) -> LlvmValue:
        """VPDPBUSD in vectors of as many bits as the sums take."""
        writer, bits = self._writer, 32 * sums.lanes
        kind, total = f"<{bits // 8} x i8>", f"<{sums.lanes} x i32>"
        arguments = [f"{total} {sums.text}", f"{kind} {self._as(unsigned, kind)}", f"{kind} {self._as(signed, kind)}"]
        return writer.emit(writer.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total, arguments), "i32", sums.lanes)

    def _as(self, value: LlvmValue, kind: str) -> str:
        own = vector("i8" if value.type == "i8" else "i32", value.lanes)
        return value.text if own == kind else self._writer.emit(f"bitcast {own} {value.text} to {kind}", "i32", 1).text
