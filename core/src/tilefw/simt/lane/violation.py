"""What a check of lane programs raises: the rule that a pass broke, and the op with its place in the user's text."""

from __future__ import annotations

from xdsl.ir import Operation

from tilefw.api.errors import InternalError
from tilefw.tile.text.source_location import place_of


def violation(what: str, op: Operation) -> InternalError:
    """The error that says what is wrong at an op."""
    place = place_of(op)
    return InternalError(f"{what}: {op.name}{'' if place is None else f' at {place.file}:{place.line}'}")
