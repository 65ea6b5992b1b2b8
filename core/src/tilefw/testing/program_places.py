"""Where the elements of a random program's tiles lie in memory: offsets and a mask for each shape, of whole launches.

No two programs (tile instances) of a launch touch the same element. A shape's place is written at the head of the function, so that
loads and stores anywhere in it agree on which elements there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tilefw.testing.program_text import ProgramText, Shape, tile

Argument = Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class Grid:
    """A place of rows and columns: begins, strides and bounds of a block access, as SSA names."""

    begins: tuple[str, str]
    strides: tuple[str, str]
    bounds: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ProgramPlace:
    """SSA names of a shape's offset tile and mask, and how many elements all programs reach together."""

    shape: Shape
    offsets: str
    mask: str
    extent: int
    grid: Grid | None = None


class PlaceWriter:
    """Writes places into a head of lines; `argument` adds a scalar argument to the function and gives its name."""

    def __init__(self, rng: random.Random, programs: int, argument: Argument) -> None:
        self.rng = rng
        self.programs = programs
        self.argument = argument
        self.head = ProgramText(rng)
        self.head.line("%pid = tile.program_id 0")
        self._places: dict[Shape, ProgramPlace] = {}

    def place(self, shape: Shape) -> ProgramPlace:
        """The place of a shape, written when it is first asked for."""
        found = self._places.get(shape)
        if found is None:
            gridded = len(shape) == 2 and self.rng.random() < 0.6
            found = self._places[shape] = self._gridded(shape) if gridded else self._linear(shape)
        return found

    def _op(self, operation: str) -> str:
        name = f"%h{len(self.head.lines)}"
        self.head.line(f"{name} = {operation}")
        return name

    def _splat(self, scalar: str, shape: Shape) -> str:
        return self._op(f"tile.splat {scalar} : i32 to {tile('i32', shape)}")

    def _linear(self, shape: Shape) -> ProgramPlace:
        """Elements in row-major order, one program after the other, up to a total."""
        size = prod(shape)
        total = max(1, size * self.programs - self.rng.choice((0, 0, 1, 7, size // 2)))
        limit = self.argument(f"total{len(self._places)}", total)
        kind = tile("i32", shape)
        start = self._op(f"tile.muli %pid, {self._op(f'tile.constant {size} : i32')} : i32")
        offsets = self._op(f"tile.addi {self._splat(start, shape)}, {self._local(shape)} : {kind}")
        mask = self._op(f"tile.lts {offsets}, {self._splat(limit, shape)} : {kind}")
        return ProgramPlace(shape, offsets, mask, total)

    def _local(self, shape: Shape) -> str:
        """The row-major index of each element."""
        size = prod(shape)
        if len(shape) == 1 or self.rng.random() < 0.3:
            flat = self._op(f"tile.iota 0 to {size}")
            if len(shape) == 1:
                return flat
            return self._op(f"tile.reshape {flat} : {tile('i32', (size,))} to {tile('i32', shape)}")
        total, kind = None, tile("i32", shape)
        for dim in range(len(shape)):
            index, step = self.along(shape, dim), prod(shape[dim + 1 :])
            if step > 1:
                index = self._op(f"tile.muli {index}, {self._op(f'tile.constant {step} : {kind}')} : {kind}")
            total = index if total is None else self._op(f"tile.addi {total}, {index} : {kind}")
        assert total is not None
        return total

    def along(self, shape: Shape, dim: int) -> str:
        """Each element's index in one dim."""
        thin: list[int] = [shape[dim]]
        found = self._op(f"tile.iota 0 to {shape[dim]}")
        for other in range(len(shape)):
            if other != dim:
                found = self._op(f"tile.expand_dims {found} axis {other} : {tile('i32', thin)}")
                thin.insert(other, 1)
        return found if tuple(thin) == shape else self._op(f"tile.broadcast {found} : {tile('i32', thin)} to {tile('i32', shape)}")

    def _gridded(self, shape: Shape) -> ProgramPlace:
        """Rows of a stride that is an argument; one program's rows follow the other's; rows and columns have bounds."""
        rows, columns = shape
        pick = self.rng.choice
        stride, count = columns + pick((0, 0, 1, 8)), max(1, columns - pick((0, 0, 1, columns // 2)))
        lines = max(1, rows * self.programs - pick((0, 0, 1, rows // 2)))
        number = len(self._places)
        names = [self.argument(f"{word}{number}", n) for word, n in (("stride", stride), ("lines", lines), ("columns", count))]
        kind, thin = tile("i32", shape), (rows, columns)
        start = self._op(f"tile.muli %pid, {self._op(f'tile.constant {rows} : i32')} : i32")
        row = self._op(f"tile.addi {self._splat(start, thin)}, {self.along(shape, 0)} : {kind}")
        column = self.along(shape, 1)
        scaled = self._op(f"tile.muli {row}, {self._splat(names[0], shape)} : {kind}")
        offsets = self._op(f"tile.addi {scaled}, {column} : {kind}")
        above = self._op(f"tile.lts {row}, {self._splat(names[1], shape)} : {kind}")
        left = self._op(f"tile.lts {column}, {self._splat(names[2], shape)} : {kind}")
        mask = self._op(f"tile.andi {above}, {left} : {tile('i1', shape)}")
        zero, one = self._op("tile.constant 0 : i32"), self._op("tile.constant 1 : i32")
        grid = Grid((start, zero), (names[0], one), (names[1], names[2]))
        return ProgramPlace(shape, offsets, mask, rows * self.programs * stride, grid)
