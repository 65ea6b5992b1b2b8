"""How many registers are live as a block's instructions go, in whatever order they go.

A value is what one write put into a cell, or what the block began with. It takes its registers from that write to its last reader,
or for as long as the block lasts where something behind reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.machine.cells import Cells, Touched


class Pressure:
    """Live registers by file (a number of `files`) as instructions are placed, `now` and the `peak` so far.

    `grows[i]`: by how many registers of which file instruction i makes more values live than it surely ends, as (file, count).
    """

    __slots__ = ("_born", "_entry", "_files", "_left", "_readers", "_used", "_weights", "files", "grows", "now", "peak")

    def __init__(self, cells: Cells, touched: Touched, count: int, after: set[int], files: Sequence[str]) -> None:
        """Of the first `count` instructions of a block; the cells of `after` are read behind them."""
        self.files = {file: number for number, file in enumerate(files)}
        self._weights: list[int] = []
        self._files: list[int] = []
        self._left: list[int] = []  # readers that are not placed yet, by value
        self._used: list[tuple[int, ...]] = []  # values, by instruction
        self._born: list[tuple[int, ...]] = []
        current: dict[int, int] = {}
        self._number(cells, touched, count, current)
        for cell in after:
            self._left[self._value(cells, cell, current)] += 1
        self.grows = [self._growth(i) for i in range(count)]
        self._readers = self._left
        self._entry = [0] * len(files)
        for value in self._first_values():
            self._entry[self._files[value]] += self._weights[value]
        self.restart()

    def restart(self) -> None:
        """Nothing is placed."""
        self._left = list(self._readers)
        self.now = list(self._entry)
        self.peak = list(self._entry)

    def place(self, i: int) -> None:
        """Instruction i comes next."""
        left, now, peak = self._left, self.now, self.peak
        for value in self._used[i]:
            left[value] -= 1
            if not left[value]:
                now[self._files[value]] -= self._weights[value]
        for value in self._born[i]:
            if left[value]:
                file = self._files[value]
                now[file] += self._weights[value]
                if now[file] > peak[file]:
                    peak[file] = now[file]

    def _value(self, cells: Cells, cell: int, current: dict[int, int]) -> int:
        """The value that a cell holds, one that the block began with if none was written yet."""
        if cell not in current:
            current[cell] = self._new(cells, cell)
        return current[cell]

    def _new(self, cells: Cells, cell: int) -> int:
        self._weights.append(cells.weights[cell])
        self._files.append(self.files[cells.files[cell]])
        self._left.append(0)
        return len(self._left) - 1

    def _number(self, cells: Cells, touched: Touched, count: int, current: dict[int, int]) -> None:
        left = self._left
        for reads, writes in zip(touched.reads[:count], touched.writes, strict=False):
            used = [self._value(cells, cell, current) for cell in dict.fromkeys(reads)]
            for value in used:
                left[value] += 1
            born = []
            for cell in writes:
                current[cell] = self._new(cells, cell)
                born.append(current[cell])
            self._used.append(tuple(used))
            self._born.append(tuple(born))

    def _first_values(self) -> list[int]:
        born = {value for values in self._born for value in values}
        return [value for value in range(len(self._left)) if value not in born and self._left[value]]

    def _growth(self, i: int) -> tuple[tuple[int, int], ...]:
        grows: dict[int, int] = {}
        for value in self._born[i]:
            if self._left[value]:
                grows[self._files[value]] = grows.get(self._files[value], 0) + self._weights[value]
        if not grows:
            return ()
        for value in self._used[i]:
            if self._left[value] == 1 and self._files[value] in grows:
                grows[self._files[value]] -= self._weights[value]
        return tuple((file, count) for file, count in grows.items() if count > 0)
