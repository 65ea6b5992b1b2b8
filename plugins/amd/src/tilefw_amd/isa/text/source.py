"""The codes of what may be wrong with AMDGPU text."""

from __future__ import annotations

from typing import ClassVar

from tilefw.api.source_text import TextFault

UNKNOWN = "TFW0720"  # no such mnemonic
OPERANDS = "TFW0721"  # kind, width, alignment or number of operands
RANGE = "TFW0722"  # a number beyond its field
SYNTAX = "TFW0725"  # text that cannot be read
SYMBOLS = "TFW0726"  # labels, symbols, directives


class Fault(TextFault):
    """What is wrong in one statement; offsets are into the statement's text."""

    syntax: ClassVar[str] = SYNTAX
