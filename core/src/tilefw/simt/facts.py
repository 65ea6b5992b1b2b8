"""What the lowering asks of offsets and pointers, answered by the one analysis of facts (`passes.axis_info`)."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.simt.description import LaneMachine
from tilefw.tile import types
from tilefw.tile.dialect.memory_ops import PointerAccess

UNBOUNDED = 1 << 30  # what divides zero, and the cap of every divisor


class LaneFacts:
    """The facts of one function for a machine, taken before it is rebuilt."""

    def __init__(self, function: FuncOp, machine: LaneMachine) -> None:
        self._known = AxisInfoAnalysis(function, machine.grid)
        self.disjoint = machine.disjoint  # buffers of different arguments do not overlap

    def divisor(self, value: SSAValue) -> int:
        """A positive power of two that divides a scalar (for a pointer, its address in bytes); 1 when nothing is known."""
        return max(1, min(UNBOUNDED, self._known[value].divisor))

    def constant(self, value: SSAValue) -> int | None:
        """The value of an integer that is the same in every run; None for all others."""
        facts = self._known[value]
        return facts.low if facts.low == facts.high else None

    def runs(self, op: PointerAccess, dim: int) -> tuple[int, int]:
        """How many neighbours along `dim` have consecutive addresses, and how many the same one."""
        offsets = op.offsets
        where = self._known[op.pointer if offsets is None else offsets]
        return where.contiguity[dim], where.constancy[dim]

    def alike(self, value: SSAValue) -> tuple[int, ...]:
        """For each dim of a tile of integers how many neighbours are equal, from multiples of that number on; powers of two."""
        return tuple(n & -n for n in self._known[value].constancy)

    def reach(self, value: SSAValue) -> int | None:
        """The most that an integer is away from 0; None when that is not known."""
        facts = self._known[value]
        return None if facts.low is None or facts.high is None else max(abs(facts.low), abs(facts.high))

    def bounds(self, value: SSAValue) -> tuple[int | None, int | None]:
        """What an integer, or every element of a tile, is surely at least and at most; None where that is not known."""
        facts = self._known[value]
        return facts.low, facts.high

    def width(self, op: PointerAccess, dim: int, access_bytes: int, alignment: int) -> int:
        """How many elements along `dim` one aligned access of computed addresses can take, all of them masked alike. `access_bytes`
        and `alignment` are the chip's (`ChipDescription`).

        A run of n consecutive elements begins at a multiple of n along the dim, so a power of two that divides n is one too.
        """
        pointer, offsets, mask = op.pointer, op.offsets, op.mask
        where = self._known[pointer if offsets is None else offsets]
        size = types.dtype_of(types.pointee_of(pointer.type)).storage_bits // 8
        if offsets is None:
            aligned = where.divisibility[dim]
        else:
            aligned = min(where.divisibility[dim] * size, self.divisor(pointer))
        enough = max(aligned, size) >= (alignment or access_bytes)
        width = min(where.contiguity[dim], (access_bytes if enough else aligned) // size)
        alike = width if mask is None else self._known[mask].constancy[dim]
        return max(1, _power(where.contiguity[dim], alike, width))


def _power(*numbers: int) -> int:
    """The largest power of two that is no larger than the last number and divides the others."""
    *divided, most = numbers
    power = 1 << max(0, most.bit_length() - 1)
    while any(n % power for n in divided):
        power >>= 1
    return power
