"""Where the buffers of a plan lie in one arena: those that are never in use together may share bytes.

Greedy by size: the largest buffer first, each at the lowest address that is free for as long as it lives (Pisarchyk and Lee,
"Efficient Memory Management for Deep Neural Net Inference", 2020). The same in three orders, of which the best is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilefw.api.integers import round_up
from tilefw.graph.plan import ModelPlan

ALIGNMENT = 64  # bytes: the widest vector of a processor; a card's own accesses need less


@dataclass(frozen=True, slots=True)
class BufferLife:
    """The launches from the `first` to the `last` in which a buffer is used: -1 before all, the number of launches after all."""

    buffer: int
    nbytes: int
    first: int
    last: int

    def meets(self, other: BufferLife) -> bool:
        """Whether both are in use in some launch."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """Offsets of the buffers in an arena of `nbytes`. No layout has less than `least` bytes: the largest sum of what is in use in
    one step."""

    offsets: Mapping[int, int]
    nbytes: int
    least: int


def lives(plan: ModelPlan, of_steps: bool = False) -> list[BufferLife]:
    """When each buffer is in use that is no constant, and is used at all; with `of_steps` also as a step's argument that its link
    does not take."""
    launches = plan.launches()
    end = len(launches)
    spans: dict[int, list[int]] = {}
    at = [(tensor.buffer, -1) for tensor in plan.inputs.values()]
    at += [(number, -1) for number, buffer in enumerate(plan.buffers) if buffer.zeroed]
    for number, launch in enumerate(launches):
        users = (launch, *launch.steps) if of_steps else (launch,)
        at += [(tensor.buffer, number) for user in users for tensor in user.tensors()]
    at += [(tensor.buffer, end) for tensor in plan.outputs.values()]
    for buffer, number in at:
        spans.setdefault(buffer, []).append(number)
    return [
        BufferLife(buffer, plan.buffers[buffer].nbytes, min(numbers), max(numbers))
        for buffer, numbers in sorted(spans.items()) if plan.buffers[buffer].constant is None and not plan.buffers[buffer].parts
    ]


def arranged(buffers: list[BufferLife]) -> ArenaLayout:
    """The smallest layout that was found."""
    layouts = [_placed(sorted(buffers, key=order)) for order in _ORDERS]
    offsets, nbytes = min(layouts, key=lambda layout: layout[1])
    return ArenaLayout(offsets, nbytes, least_bytes(buffers))


def least_bytes(buffers: list[BufferLife]) -> int:
    """The largest sum of bytes in use in one step."""
    return max((sum(b.nbytes for b in buffers if b.first <= life.first <= b.last) for life in buffers), default=0)


_ORDERS: tuple[Callable[[BufferLife], tuple[int, int]], ...] = (
    lambda life: (-life.nbytes, life.first),
    lambda life: (-life.nbytes * (life.last - life.first + 1), life.first),
    lambda life: (life.first, -life.nbytes),
)


def _placed(buffers: list[BufferLife]) -> tuple[dict[int, int], int]:
    """The offset of each buffer, in the order given, and the bytes of all."""
    placed: list[tuple[int, BufferLife]] = []  # by offset
    end = 0
    for life in buffers:
        at = 0
        for offset, other in placed:
            if at + life.nbytes <= offset:
                break
            if life.meets(other):
                at = max(at, round_up(offset + other.nbytes, ALIGNMENT))
        placed.append((at, life))
        placed.sort(key=lambda pair: pair[0])
        end = max(end, at + life.nbytes)
    return {life.buffer: offset for offset, life in placed}, end
