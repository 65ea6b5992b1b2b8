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
        self._weights: list[int] = []  # by value
        self._files: list[int] = []
        self._left: list[int] = []  # readers that are not placed yet, by value
        self._used: list[list[int]] = []  # values, by instruction
        self._born: list[range] = []
        first = self._number(cells, touched, count, after)
        self.grows = [self._growth(i) for i in range(count)]
        self._readers = self._left
        self._entry = [0] * len(files)
        for value in first:
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

    def _number(self, cells: Cells, touched: Touched, count: int, after: set[int]) -> list[int]:
        """Give every value a number, in order, and count its readers; those that the block begins with."""
        first: list[int] = []
        current: dict[int, int] = {}
        left, found, files = self._left, [], [self.files[file] for file in cells.files]
        for reads, writes in zip(touched.reads[:count], touched.writes, strict=False):
            used = []
            for cell in reads:
                value = current.get(cell)
                if value is None:
                    value = current[cell] = len(left)
                    left.append(0)
                    found.append(cell)
                    first.append(value)
                if value not in used:
                    used.append(value)
                    left[value] += 1
            born = len(left)
            for cell in writes:
                current[cell] = len(left)
                left.append(0)
                found.append(cell)
            self._used.append(used)
            self._born.append(range(born, len(left)))
        for cell in after:
            if cell not in current:
                current[cell] = len(left)
                first.append(len(left))
                left.append(0)
                found.append(cell)
            left[current[cell]] += 1
        self._weights = [cells.weights[cell] for cell in found]
        self._files = [files[cell] for cell in found]
        return first

    def _growth(self, i: int) -> tuple[tuple[int, int], ...]:
        left, files, weights = self._left, self._files, self._weights
        grows: dict[int, int] = {}
        for value in self._born[i]:
            if left[value]:
                grows[files[value]] = grows.get(files[value], 0) + weights[value]
        if not grows:
            return ()
        for value in self._used[i]:
            if left[value] == 1 and files[value] in grows:
                grows[files[value]] -= weights[value]
        return tuple([(file, count) for file, count in grows.items() if count > 0])
