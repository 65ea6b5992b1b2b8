"""Addresses into shared memory: a part of each lane, XOR a constant, plus an immediate; and what depends on a thread's bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.builder import LaneBuilder
from tilefw.tile import types

_MOST = 1 << 31  # divides 0


class SharedAddressing(Protocol):
    """What gives the parts of addresses and masks that a thread's index makes."""

    def thread_id(self) -> SSAValue: ...

    def thread_part(self, bases: Sequence[int]) -> SSAValue | None: ...

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None: ...


class SharedAccessContext(Protocol):
    """What of the lowering is needed."""

    @property
    def builder(self) -> LaneBuilder: ...

    @property
    def address(self) -> SharedAddressing: ...

    @property
    def machine(self) -> LaneMachine: ...


def addresses(
    context: SharedAccessContext, base: SSAValue, thread: Sequence[int], constants: Iterable[int]
) -> tuple[SSAValue, list[int], list[int]]:
    """Addresses (i32) with a slot and an immediate for each of `constants`.

    Access k is at base + (the XOR of the `thread` bases of the thread's bits, XOR constants[k]), all in bytes. Bits of a constant
    that no thread reaches are added by the instruction; each choice of the others takes one register: the first one XOR a constant
    where the buffer's alignment keeps the base out of it, so that loops hold one register for all choices.
    """
    b = context.builder
    reach = 0
    for basis in thread:
        reach |= basis
    part = context.address.thread_part(thread)
    here = b.constant(0, lane.vector(1, types.i32)) if part is None else part
    start, aligned = b.splat(base, 1), _alignment(base)
    classes: dict[int, int] = {}
    found: list[SSAValue] = []
    slots: list[int] = []
    immediates: list[int] = []
    for constant in constants:
        inside = constant & reach
        if inside not in classes:
            classes[inside] = len(found)
            other = b.constant(inside, here.type)
            if inside < aligned:
                found.append(b.op("xori", b.op("addi", start, here), other))
            else:
                found.append(b.op("addi", start, b.op("xori", here, other)))
        slots.append(classes[inside])
        immediates.append(constant & ~reach)
    return b.join(found), slots, immediates


def _alignment(address: SSAValue) -> int:
    """A power of two that divides an address in shared memory: of an allocation, moved by multiples of a slot's size."""
    owner = address.owner
    if isinstance(owner, lane.AllocOp):
        return owner.align
    if isinstance(owner, lane.ConstantOp):
        return owner.value & -owner.value or _MOST  # type: ignore[operator,return-value]
    if isinstance(owner, lane.ELEMENTWISE["addi"]):
        return min(map(_alignment, owner.operands))
    if isinstance(owner, lane.ELEMENTWISE["muli"]):
        return max(map(_alignment, owner.operands))
    return 1


def odd(context: SharedAccessContext, mask: int) -> SSAValue:
    """Whether the thread index has an odd number of the bits of `mask`: `vector<1xi1>`."""
    b = context.builder
    bits = context.address.thread_part([mask >> i & 1 for i in range(log2(context.machine.threads))])
    assert bits is not None, "a mask of some bits"
    return b.op("nei", bits, b.constant(0, bits.type))


def xor_permuted(context: SharedAccessContext, value: SSAValue, moves: Sequence[int]) -> SSAValue:
    """Element i of the result is element i XOR moves(thread): the XOR of `moves` over the thread's bits, by selects."""
    b = context.builder
    n = types.shape_of(value.type)[0]
    for move, mask in stages(moves):
        other = b.pick(value, [i ^ move for i in range(n)])
        value = b.op("select", b.splat(odd(context, mask), n), other, value)
    return value


def stages(moves: Sequence[int]) -> list[tuple[int, int]]:
    """The map from thread bits to `moves` as few (move, mask of thread bits): a move is made where an odd number is set."""
    rows: dict[int, int] = {}
    basis: list[int] = []
    for i, move in enumerate(moves):
        for b in basis:
            if move ^ b < move:
                move ^= b
                rows[b] ^= 1 << i
        if move:
            basis.append(move)
            basis.sort(reverse=True)
            rows[move] = 1 << i
    return list(rows.items())
