"""Products in tile registers (AMX): two by two tiles of sums, fed with tiles of both factors.

Intel SDM, volume 1, chapter 18, and volume 2: LDTILECFG, TILELOADD, TDPBF16PS. A function loads its configuration once, where all
of its products have one shape of tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from tilefw_cpu.function_text import LlvmText
from tilefw_cpu.product_packing import ROW, TILE, ProductPacking
from tilefw_cpu.spelling import LlvmValue

_LOAD, _RELEASE = "llvm.x86.ldtilecfg", "llvm.x86.tilerelease"
_LEFT, _RIGHT = 4, 6  # the first tile registers of the factors; those of the sums come before


@dataclass(frozen=True, slots=True)
class TileShapes:
    """The shapes of the tiles of one product: rows of the left factor and the sums, bytes of depth."""

    rows: int
    depth: int

    @property
    def configuration(self) -> bytes:
        """What LDTILECFG reads: palette 1; for each register its bytes in a row, and its rows."""
        shapes = [(self.rows, ROW)] * 4 + [(self.rows, self.depth)] * 2 + [(self.depth // 4, ROW)] * 2
        widths = b"".join(width.to_bytes(2, "little") for _, width in shapes)
        return bytes([1]) + bytes(15) + widths.ljust(32, b"\0") + bytes(rows for rows, _ in shapes).ljust(16, b"\0")


def tile_shapes(packing: ProductPacking) -> TileShapes:
    """The largest tiles that divide a product."""
    return TileShapes(packing.tile_rows, packing.tile_depth)


class TileConfigurations:
    """The configurations of a function's products, and where each is loaded."""

    def __init__(self, writer: LlvmText) -> None:
        self._writer = writer
        self._loads: list[tuple[int, TileShapes]] = []

    def load(self, shapes: TileShapes) -> None:
        """Configure the tiles here."""
        self._loads.append((len(self._writer.lines), shapes))
        self._writer.lines.append("  " + self._call(shapes))

    def _call(self, shapes: TileShapes) -> str:
        return self._writer.call(_LOAD, "void", [f"ptr {_name(shapes)}"])

    def around(self) -> tuple[str, str]:
        """What a thread does before all programs and behind them. A configuration that is the only one is loaded there alone."""
        shapes = {each for _, each in self._loads}
        if not shapes:
            return "", ""
        first = ""
        if len(shapes) == 1:
            first = f"  {self._call(*shapes)}\n"
            for line, _ in self._loads:
                self._writer.lines[line] = ""
        return first, f"  {self._writer.call(_RELEASE, 'void', [])}\n"

    def constants(self) -> dict[str, str]:
        """The configurations as constants of the module, by name."""
        found: dict[str, str] = {}
        for _, shapes in self._loads:
            text = "".join(f"\\{byte:02X}" for byte in shapes.configuration)
            found[_name(shapes)] = f'{_name(shapes)} = private constant [64 x i8] c"{text}"'
        return found


def _name(shapes: TileShapes) -> str:
    return f'@"tilefw.tiles.{shapes.rows}.{shapes.depth}"'


class TileProducts:
    """Writes the products of packed factors."""

    def __init__(self, packing: ProductPacking, configurations: TileConfigurations) -> None:
        self._packing, self._writer = packing, packing.writer
        self._shapes = tile_shapes(packing)
        self._configurations = configurations
        self._down = gcd(packing.rows // self._shapes.rows, 2)
        self._across = gcd(packing.columns // 16, 2)
        product = packing.product
        self._onto_tiles = product.onto is None and product.operand_type in ("i8", "u8")
        """Whether sums are loaded into tiles first, and added to there."""

    def write(self) -> None:
        """All blocks of sums. Bytes are summed up onto what was there; floats from zero, and added to it in vectors, which keep
        subnormal numbers."""
        packing = self._packing
        self._configurations.load(self._shapes)
        across, down = 16 * self._across, self._shapes.rows * self._down
        with packing.count(packing.rows, down) as row, packing.count(packing.columns, across) as column:
            self._block(row, column)

    def _block(self, row: LlvmValue, column: LlvmValue) -> None:
        packing, product = self._packing, self._packing.product
        places = [
            packing.at(product.sums, (row, product.sums_row), (column, 4), self._offset(i, j))
            for i in range(self._down) for j in range(self._across)
        ]
        if self._onto_tiles:
            packing.either(
                lambda: self._each(places, lambda number, place: self._call("tilezero", number)),
                lambda: self._each(places, lambda number, place: self._move("tileloadd64", number, place, product.sums_row)),
            )
        else:
            self._each(places, lambda number, place: self._call("tilezero", number))
        self._sum_up(row, column)
        if self._onto_tiles:
            self._store(places)
        else:
            packing.either(lambda: self._store(places), lambda: self._add(row, column, places))

    def _each(self, places: list[LlvmValue], write: Callable[[int, LlvmValue], None]) -> None:
        for number, place in enumerate(places):
            write(number, place)

    def _store(self, places: list[LlvmValue]) -> None:
        row = self._packing.product.sums_row
        self._each(places, lambda number, place: self._move("tilestored64", number, place, row))

    def _offset(self, down: int, across: int) -> tuple[int, int]:
        return down * self._shapes.rows * self._packing.product.sums_row + across * ROW, 1

    def _sum_up(self, row: LlvmValue, column: LlvmValue) -> None:
        packing, shapes = self._packing, self._shapes
        instruction = packing.engine.instructions[packing.product.operand_type]
        with packing.count(packing.depth * packing.width, shapes.depth) as depth:
            held: tuple[int | None, int | None] = (None, None)
            for left, right in packing.planes.products:
                if left != held[0]:
                    self._load_left(left, row, depth)
                if right != held[1]:
                    self._load_right(right, column, depth)
                held = left, right
                for i in range(self._down):
                    for j in range(self._across):
                        self._call(instruction, i * self._across + j, _LEFT + i, _RIGHT + j)

    def _load_left(self, part: int, row: LlvmValue, depth: LlvmValue) -> None:
        packing, rows = self._packing, self._shapes.rows
        for i in range(self._down):
            above = i * rows
            place = packing.at(
                packing.left, (part, packing.left_plane), (row, packing.left_row), (above, packing.left_row), (depth, rows)
            )
            self._move("tileloadd64", _LEFT + i, place, self._shapes.depth)

    def _load_right(self, part: int, column: LlvmValue, depth: LlvmValue) -> None:
        packing, panel = self._packing, self._packing.panel
        for j in range(self._across):
            place = packing.at(packing.right, (part, packing.right_plane), (column, panel // 16), (j, panel), (depth, 16))
            self._move("tileloadd64", _RIGHT + j, place, ROW)

    def _add(self, row: LlvmValue, column: LlvmValue, places: list[LlvmValue]) -> None:
        packing, rows = self._packing, self._shapes.rows
        self._each(places, lambda number, _: self._move("tilestored64", number, packing.at(packing.sums, (number, TILE)), ROW))
        with packing.count(rows) as line:
            for number, place in enumerate(places):
                made = packing.load(packing.at(packing.sums, (number, TILE), (line, ROW)), packing.sums_type, 16, ROW)
                i, j = divmod(number, self._across)
                sums = packing.at(place, (line, packing.product.sums_row))
                packing.add(made, sums, (row, line, i * rows), (column, 16 * j))

    def _call(self, name: str, *registers: int) -> None:
        writer = self._writer
        writer.lines.append("  " + writer.call(f"llvm.x86.{name}", "void", [f"i8 {number}" for number in registers]))

    def _move(self, name: str, register: int, place: LlvmValue, row: int) -> None:
        writer = self._writer
        arguments = [f"i8 {register}", f"ptr {place.text}", f"i64 {row}"]
        writer.lines.append("  " + writer.call(f"llvm.x86.{name}", "void", arguments))
