"""Sets of physical registers as bits of one int, for passes that ask of each instruction whether it accesses any of many.

Bit `first[class] + n` is register n of the class; classes that share a file share its bits. Behind the registers a plugin may
number effects that no register shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilefw.api.errors import InternalError
from tilefw.machine.inst import Inst, Operand, Slice


class RegisterSets:
    """The sets of one function's operands. `names` are operands that are written as text and name registers ("vcc")."""

    __slots__ = ("_first", "_known")

    def __init__(self, first: Mapping[str, int], names: Mapping[str, int]) -> None:
        self._first = first
        self._known: dict[Operand, int] = {**names}

    def of(self, operand: Operand) -> int:
        """The registers of an operand; none of an immediate. Raises InternalError for a virtual register."""
        found = self._known.get(operand)
        if found is None:
            found = self._known[operand] = self._found(operand)
        return found

    def _found(self, operand: Operand) -> int:
        if not isinstance(operand, Slice):
            return 0
        if not operand.reg.physical:
            raise InternalError(f"{operand} is not on a physical register")
        return ((1 << operand.count) - 1) << self._first[operand.reg.cls] + operand.first

    def union(self, operands: Iterable[Operand]) -> int:
        """The registers of all of them together."""
        found = 0
        for operand in operands:
            found |= self.of(operand)
        return found

    def accessed(self, inst: Inst) -> int:
        """All registers that an instruction names, to read or to write them."""
        found = self.union(inst.implicit_defs) | self.union(inst.implicit_uses) if inst.implicit_defs or inst.implicit_uses else 0
        known = self._known
        for operands in (inst.defs, inst.uses):
            for operand in operands:
                registers = known.get(operand)
                found |= self.of(operand) if registers is None else registers
        return found if inst.predicate is None else found | self.of(inst.predicate)


def members(registers: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, ascending."""
    found: list[int] = []
    while registers:
        lowest = registers & -registers
        found.append(lowest.bit_length() - 1)
        registers ^= lowest
    return tuple(found)
