"""The user's source line of an op, as a Place."""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc
from xdsl.ir import Attribute, Operation

from tilefw.api.errors import Place


def place_of(op: Operation) -> Place | None:
    """Where the op comes from, with the call sites it was inlined through; None when its location is unknown."""
    return _place(op.location)


def _place(location: Attribute) -> Place | None:
    if isinstance(location, FileLineColLoc):
        return Place(location.filename.data, location.line.data, location.column.data)
    if isinstance(location, CallSiteLoc):
        inner, caller = _place(location.callee), _place(location.caller)
        return caller if inner is None else Place(inner.file, inner.line, inner.column, caller=caller)
    return None
