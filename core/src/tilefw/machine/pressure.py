"""How many registers are live as a block's instructions go, in whatever order they go.

A value is what one write put into a subregister, or what the block began with. It takes its registers from that write to its last
reader, or for as long as the block lasts where something behind reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.machine.subregisters import BlockAccesses, Subregisters


class Pressure:
    """Live registers by file (a number of `files`) as instructions are placed, `now` and the `peak` so far.

    `grows[i]`: by how many registers of which file instruction i makes more values live than it surely ends, as (file, count).
    `used[i]` and `born[i]` are the values that it reads and writes; value v takes `weights[v]` registers of file `file_of[v]`.
    """

    __slots__ = ("_after", "_entry", "_left", "_readers", "born", "file_of", "files", "grows", "now", "peak", "used", "weights")

    def __init__(
        self, subregisters: Subregisters, accesses: BlockAccesses, count: int, after: set[int], files: Sequence[str]
    ) -> None:
        """Of the first `count` instructions of a block; the subregisters of `after` are read behind them."""
        self.files = {file: number for number, file in enumerate(files)}
        self.weights: list[int] = []
        self.file_of: list[int] = []
        self.used: list[list[int]] = []
        self.born: list[range] = []
        self._left: list[int] = []  # readers that are not placed yet, by value
        self._after: set[int] = set()  # values that are read behind the block
        first = self._number(subregisters, accesses, count, after)
        self.grows = [self._growth(i) for i in range(count)]
        self._readers = self._left
        self._entry = [0] * len(files)
        for value in first:
            self._entry[self.file_of[value]] += self.weights[value]
        self.restart()

    def restart(self) -> None:
        """Nothing is placed."""
        self._left = list(self._readers)
        self.now = list(self._entry)
        self.peak = list(self._entry)

    def readers(self) -> list[list[int]]:
        """By value the instructions that read it, in order; `len(born)` stands for those behind the block."""
        found: list[list[int]] = [[] for _ in self.weights]
        for i, used in enumerate(self.used):
            for value in used:
                found[value].append(i)
        for value in self._after:
            found[value].append(len(self.used))
        return found

    def schedule(self, i: int) -> None:
        """Instruction i comes next."""
        left, now, peak = self._left, self.now, self.peak
        for value in self.used[i]:
            left[value] -= 1
            if not left[value]:
                now[self.file_of[value]] -= self.weights[value]
        for value in self.born[i]:
            if left[value]:
                file = self.file_of[value]
                now[file] += self.weights[value]
                if now[file] > peak[file]:
                    peak[file] = now[file]

    def _number(self, subregisters: Subregisters, accesses: BlockAccesses, count: int, after: set[int]) -> list[int]:
        """Give every value a number, in order, and count its readers; those that the block begins with."""
        first: list[int] = []
        current: dict[int, int] = {}
        left, found, files = self._left, [], [self.files[file] for file in subregisters.files]
        for reads, writes in zip(accesses.reads[:count], accesses.writes, strict=False):
            used = []
            for subregister in reads:
                value = current.get(subregister)
                if value is None:
                    value = current[subregister] = len(left)
                    left.append(0)
                    found.append(subregister)
                    first.append(value)
                if value not in used:
                    used.append(value)
                    left[value] += 1
            born = len(left)
            for subregister in writes:
                current[subregister] = len(left)
                left.append(0)
                found.append(subregister)
            self.used.append(used)
            self.born.append(range(born, len(left)))
        for subregister in after:
            if subregister not in current:
                current[subregister] = len(left)
                first.append(len(left))
                left.append(0)
                found.append(subregister)
            left[current[subregister]] += 1
            self._after.add(current[subregister])
        self.weights = [subregisters.weights[subregister] for subregister in found]
        self.file_of = [files[subregister] for subregister in found]
        return first

    def _growth(self, i: int) -> tuple[tuple[int, int], ...]:
        left, files, weights = self._left, self.file_of, self.weights
        grows: dict[int, int] = {}
        for value in self.born[i]:
            if left[value]:
                grows[files[value]] = grows.get(files[value], 0) + weights[value]
        if not grows:
            return ()
        for value in self.used[i]:
            if left[value] == 1 and files[value] in grows:
                grows[files[value]] -= weights[value]
        return tuple([(file, count) for file, count in grows.items() if count > 0])
