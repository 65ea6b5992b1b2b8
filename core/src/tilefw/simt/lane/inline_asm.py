"""Assembly text of the chip on the registers of a lane."""

from __future__ import annotations

from tilefw.tile.dialect.inline_asm_op import InlineAsmBase


class InlineAsmOp(InlineAsmBase):
    """The text on each `pack` elements that a lane has of its operands; the last ones are filled up with anything."""

    name = "lane.inline_asm"
