"""When a layout is read by loads that transpose: which lane gives the address of which row; pure algebra on bits.

A group of lanes reads rows, one a lane, and each lane receives a column (`description.TransposedLoad`). So the lowest lane bits of
a layout choose the cell of a row; its other lane bits within a group and the lowest register bits choose the row, and are the bits
of the lane that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tilefw.api.integers import log2
from tilefw.simt.layout import f2

if TYPE_CHECKING:
    from tilefw.simt.description import TransposedLoad
    from tilefw.simt.layout import LinearLayout


@dataclass(frozen=True)
class TransposedRead:
    """A reader as a transposing load sees it: `cells` are the elements along a row, in order, `lanes` what the bits of the reading
    lane add to the row."""

    load: TransposedLoad
    cells: tuple[int, ...]
    lanes: tuple[int, ...]

    @property
    def width(self) -> int:
        """The elements of a row, and the registers of an access, as a logarithm."""
        return len(self.cells)


@lru_cache(maxsize=1024)
def transposed_reads(layout: LinearLayout, bits: int, loads: tuple[TransposedLoad, ...]) -> tuple[TransposedRead, ...]:
    """The transposing loads that give the registers of `layout`, where the buffer has their rows each in one piece."""
    found = []
    for load in loads:
        width, lanes = log2(load.bytes * 8 // load.cell_bits), layout.lane
        if bits != load.cell_bits or len(layout.register) < width or len(lanes) < load.group:
            continue
        cells, across = lanes[:width], lanes[width : load.group]
        reading = (*across, *layout.register[:width], *lanes[load.group :])
        if f2.rank((*cells, *reading)) == len(cells) + len(reading):
            found.append(TransposedRead(load, cells, reading))
    return tuple(found)
