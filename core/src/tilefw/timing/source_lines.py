"""The source line of a machine instruction, as people read it."""

from __future__ import annotations

import linecache
from typing import Any


def line_of(instruction: Any) -> tuple[str, str]:
    """`FILE:LINE` of an instruction of the machine layer and the text that stands there; words and nothing where it has none."""
    place = instruction.source
    if place is None:
        return "code without a source line", ""
    return f"{place.file}:{place.line}", (place.text or linecache.getline(place.file, place.line)).strip()
