"""Register headroom: whether an instruction may be scheduled early without exceeding the register limit later.

List scheduling reorders instructions, and a result that is produced early stays live until its reader is scheduled. This class
therefore counts two things: the registers that are live now, and those that would be live after each remaining instruction if the
remaining ones kept their source order. While no count exceeds the limit, the rest of the block can always be finished in source
order: that order is the witness that the registers suffice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.machine.pressure import Pressure


class RegisterHeadroom:
    """The headroom of a block before any instruction is placed. `limits` are by file; a limit below what source order needs is
    raised to that."""

    __slots__ = ("_left", "_limits", "_pressure", "_rest")

    def __init__(self, pressure: Pressure, limits: Sequence[int]) -> None:
        self._pressure = pressure
        self._left = pressure.readers()
        self._rest = self._as_written(len(limits))
        highest = [int(rest.max(initial=0)) for rest in self._rest]
        self._limits = [max(limit, high) for limit, high in zip(limits, highest, strict=True)]

    def _as_written(self, files: int) -> list[np.ndarray]:
        """By file, how many registers are live behind each instruction."""
        pressure, count = self._pressure, len(self._pressure.born)
        changes = np.zeros((files, count + 1), np.int64)
        born = {value: i for i, values in enumerate(pressure.born) for value in values}
        for value, readers in enumerate(self._left):
            if readers:
                changes[pressure.file_of[value], born.get(value, 0)] += pressure.weights[value]
                changes[pressure.file_of[value], readers[-1]] -= pressure.weights[value]
        return list(np.cumsum(changes, axis=1))

    def fits(self, i: int, first: int) -> bool:
        """Whether instruction i may come next, where `first` is the first as written that is not placed."""
        if not self._pressure.grows[i]:
            return True  # what it makes live takes the place of what it alone still reads
        for file, more in self._growth(i).items():
            limit = self._limits[file]
            if more > 0 and (self._pressure.now[file] + more > limit or self._highest(file, first, i) + more > limit):
                return False
        return True

    def _highest(self, file: int, first: int, i: int) -> int:
        return int(self._rest[file][first:i].max()) if first < i else 0

    def _growth(self, i: int) -> dict[int, int]:
        """Registers by file that instruction i makes live until its source position, less those whose last use it is."""
        pressure, found = self._pressure, {}
        for value in pressure.born[i]:
            if self._left[value]:
                file = pressure.file_of[value]
                found[file] = found.get(file, 0) + pressure.weights[value]
        for value in pressure.used[i]:
            if pressure.file_of[value] in found and self._left[value] == [i]:
                found[pressure.file_of[value]] -= pressure.weights[value]
        return found

    def schedule(self, i: int) -> None:
        """Instruction i comes next."""
        pressure = self._pressure
        for value in pressure.used[i]:
            readers = self._left[value]
            if readers[-1] == i:
                readers.pop()
                self._rest[pressure.file_of[value]][readers[-1] if readers else 0 : i] -= pressure.weights[value]
            else:
                readers.remove(i)
        for value in pressure.born[i]:
            if self._left[value]:
                self._rest[pressure.file_of[value]][:i] += pressure.weights[value]
