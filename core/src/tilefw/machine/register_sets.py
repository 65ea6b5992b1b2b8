"""Sets of physical registers as bits of one int, for passes that ask of each instruction whether it touches some of many.

Bit `first[class] + n` is register n of the class; classes that share a file share its bits. Behind the registers a plugin may
number effects that no register shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilefw.api.errors import InternalError
from tilefw.machine.inst import Operand, Slice


class RegisterSets:
    """The sets of one function's operands. `names` are operands that are written as text and stand for registers ("vcc")."""

    __slots__ = ("_first", "_known", "_names")

    def __init__(self, first: Mapping[str, int], names: Mapping[str, int]) -> None:
        self._first = first
        self._names = names
        self._known: dict[Slice, int] = {}

    def of(self, operand: Operand) -> int:
        """The registers of an operand; none of an immediate. Raises InternalError for a virtual register."""
        if not isinstance(operand, Slice):
            return self._names.get(operand, 0) if isinstance(operand, str) else 0
        found = self._known.get(operand)
        if found is None:
            if not operand.reg.physical:
                raise InternalError(f"{operand} stands on no physical register")
            found = self._known[operand] = ((1 << operand.count) - 1) << self._first[operand.reg.cls] + operand.first
        return found

    def union(self, operands: Iterable[Operand]) -> int:
        """The registers of all of them together."""
        found = 0
        for operand in operands:
            found |= self.of(operand)
        return found


def members(registers: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, ascending."""
    found: list[int] = []
    while registers:
        lowest = registers & -registers
        found.append(lowest.bit_length() - 1)
        registers ^= lowest
    return tuple(found)
