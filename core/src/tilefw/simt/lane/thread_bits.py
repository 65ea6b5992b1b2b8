"""Linear functions of the thread index as lane IR: shifted and masked copies of it, XORed.

A matrix over bits is the sum of its diagonals: all bits that move by one distance are one shift and one mask. Swizzled layouts have
few diagonals; where there are more than columns, each column is taken by itself, as a mask of its bit's sign.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.simt import lane
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.tile import types


def linear(b: LaneBuilder, thread: SSAValue, bases: Sequence[int]) -> SSAValue | None:
    """The XOR of the bases of the thread index's set bits, `vector<1xi32>`; None when all are zero.

    There is a basis for every bit that a thread index can have.
    """
    diagonals = _diagonals(bases)
    if len(diagonals) <= sum(1 for basis in bases if basis):
        terms = [_diagonal(b, thread, distance, mask, len(bases)) for distance, mask in diagonals.items()]
    else:
        terms = [_column(b, thread, bit, basis, len(bases)) for bit, basis in enumerate(bases) if basis]
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = b.op("xori", total, term)
    return total


def _diagonals(bases: Sequence[int]) -> dict[int, int]:
    """For each distance that bits move to the left the thread bits that do, as a mask."""
    found: dict[int, int] = {}
    for bit, basis in enumerate(bases):
        while basis:
            low = basis & -basis
            distance = low.bit_length() - 1 - bit
            found[distance] = found.get(distance, 0) | 1 << bit
            basis ^= low
    return found


def _diagonal(b: LaneBuilder, thread: SSAValue, distance: int, mask: int, bits: int) -> SSAValue:
    survive = (1 << bits) - 1 & -1 << max(0, -distance)
    if mask != survive:
        thread = b.op("andi", thread, b.constant(mask, thread.type))
    if not distance:
        return thread
    return b.op("shl" if distance > 0 else "shru", thread, b.constant(abs(distance), thread.type))


def _column(b: LaneBuilder, thread: SSAValue, bit: int, basis: int, bits: int) -> SSAValue:
    if bit:
        thread = b.op("shru", thread, b.constant(bit, thread.type))
    if bit + 1 < bits:
        thread = b.op("andi", thread, b.constant(1, lane.vector(1, types.i32)))
    return b.op("andi", b.op("subi", b.constant(0, thread.type), thread), b.constant(basis, thread.type))
