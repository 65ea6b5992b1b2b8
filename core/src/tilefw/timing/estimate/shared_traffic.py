"""What a tile takes on its way through shared memory: by the layout that the compiler chooses for its writer and its reader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilefw.api.integers import log2
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout, swizzle
from tilefw.simt.layout.linear import blocked
from tilefw.simt.layout.pattern import LayoutSide, banks_of, side

_BITS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """One round of a buffer, of each wave: `writes` and `reads`, instructions of a lane; `passes` through shared memory of both,
    conflicts counted; `packing`, instructions that bring elements to the registers' order."""

    writes: float
    reads: float
    passes: float
    packing: float


def memory_layout(shape: tuple[int, ...], along: int, vector: int, machine: LaneMachine) -> LinearLayout:
    """How a tile is accessed in memory whose neighbours lie along a dim, `vector` of them a lane."""
    order = (along, *(dim for dim in reversed(range(len(shape))) if dim != along))
    return blocked(shape, order, vector, machine.lanes, machine.waves)


@lru_cache(maxsize=4096)
def shared_traffic(
    writer: LinearLayout, reader: LinearLayout, bits: int, machine: LaneMachine, copied: int = 0
) -> SharedTraffic | None:
    """A tile that stands as `writer` says, read as `reader` wants it. `copied`: it comes by asynchronous copies of so many
    elements. None for elements that no buffer has by themselves."""
    if bits not in _BITS or writer.shape != reader.shape:
        return None
    banks = banks_of(machine.chip)
    writers, copies = ((), ((writer, copied),)) if copied else ((writer,), ())
    shared = swizzle.choose_for(writer.shape, bits, writers, (reader,), banks, copies)
    _, put, put_conflicts = (LayoutSide(writer, bits, log2(copied)) if copied else side(writer, bits, banks)).best(shared, banks)
    _, got, got_conflicts = side(reader, bits, banks, reads=True).best(shared, banks)
    passes = sum(
        pattern.times * max(pattern.least, pattern.cycles << conflicts)
        for pattern, conflicts in ((put, put_conflicts), (got, got_conflicts))
    )
    return SharedTraffic(put.times, got.times, passes, put.packing + got.packing)
