"""In which layout asynchronous copies read: their coalesced one or, where a wave's copies land in one piece, one that is made with
the buffer's layout, for those who read the buffer."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.api.errors import UnsupportedError
from tilefw.simt.assign.accesses import Accesses, accessed_type
from tilefw.simt.assign.staging import buffer_of_view, readers_of
from tilefw.simt.layout import LinearLayout
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.layout.consecutive import consecutive, copied_layout
from tilefw.simt.layout.pattern import banks_of
from tilefw.simt.layout.shared import SharedLayout
from tilefw.tile import types
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.text.source_location import place_of


class ConsecutiveCopies:
    """The layouts of copies. `buffers` are the layouts of buffers that copies fill wave by wave, as far as they were asked for."""

    def __init__(self, accesses: Accesses, dots: dict[DotOp, DotLayouts]) -> None:
        self.accesses = accesses
        self.dots = dots
        self.buffers: dict[SSAValue, SharedLayout] = {}

    def layout(self, op: CopyOp | CopyBlockOp) -> LinearLayout:
        """Raises UnsupportedError (TFW0618) where each lane of a wave cannot have a piece of its own."""
        machine = self.accesses.machine
        if not machine.chip.copies_consecutive:
            return self.accesses.coalesced(op)
        pieces, buffer = self.accesses.pieces(op), buffer_of_view(op.view)
        width = self.accesses.access_width(op, pieces)
        if not fills_waves(pieces):
            message = f"a wave of {machine.chip.name} cannot copy so small a block, a piece each lane"
            raise UnsupportedError(message, code="TFW0618", place=place_of(op))
        if buffer not in self.buffers:
            bits = types.dtype_of(accessed_type(op)).storage_bits
            readers = tuple(dict.fromkeys(readers_of(op.view, self.dots, machine.chip)))
            self.buffers[buffer] = consecutive(pieces, width, bits, readers, banks_of(machine.chip))
        return copied_layout(self.buffers[buffer], width, machine.lanes, machine.waves)


def fills_waves(layout: LinearLayout) -> bool:
    """Whether no two lanes of a wave have the same elements."""
    return all(layout.lane)
