"""From an op's location to a place in the user's own text: files and lines, through inlined calls."""

from __future__ import annotations

import linecache

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation

from tilefw.api.errors import Place


def place_of(op: Operation | None, *, with_text: bool = True) -> Place | None:
    """Where the user wrote what became `op`; the nearest enclosing op's place when it has none of its own. `with_text` as in
    `place_of_location`."""
    while op is not None:
        place = place_of_location(op.location, with_text=with_text)
        if place is not None:
            return place
        op = op.parent_op()
    return None


def place_of_location(location: Attribute, *, with_text: bool = True) -> Place | None:
    """A location attribute as a place; None for the unknown location. `with_text` reads the source line, which diagnostics show
    and line tables do not need."""
    match location:
        case FileLineColLoc():
            file, line = location.filename.data, location.line.data
            text = linecache.getline(file, line).rstrip("\n") if with_text else ""
            return Place(file, line, location.column.data, text=text)
        case CallSiteLoc():
            inner = place_of_location(location.callee, with_text=with_text)
            caller = place_of_location(location.caller, with_text=with_text)
            if inner is None:
                return caller
            return Place(inner.file, inner.line, inner.column, inner.end_column, inner.text, inner.function, caller)
        case NameLoc():
            return place_of_location(location.location, with_text=with_text)
        case FusedLoc():
            parts = location.locations.data if isinstance(location.locations, ArrayAttr) else ()
            found = (place_of_location(part, with_text=with_text) for part in parts)
            return next((place for place in found if place is not None), None)
        case _:
            return None
