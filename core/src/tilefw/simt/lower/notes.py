"""What a user should learn of a compilation though nothing is wrong: noted on the function, at the end in the artifact's metadata.

A note is a dict of plain text: `code`, `message`, `place` (file:line) and `help`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp

from tilefw.simt.description import ChipDescription
from tilefw.simt.layout import atoms
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.lower import dot
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.text.source_location import place_of

Note = dict[str, str]
_ATTRIBUTE = "lane.notes"


def of_dots(dots: Iterable[tuple[DotOp, DotLayouts]], chip: ChipDescription) -> dict[str, ArrayAttr[Any]]:
    """The attribute for a function with these dots; none where all is as a user expects."""
    found = [note for op, layouts in dots if (note := _of_dot(op, layouts, chip)) is not None]
    once = {tuple(note.items()): note for note in found}  # an unrolled loop has the same dot many times
    if not once:
        return {}
    return {_ATTRIBUTE: ArrayAttr([DictionaryAttr({k: StringAttr(v) for k, v in note.items()}) for note in once.values()])}


def notes_of(function: FuncOp) -> list[Note]:
    """The notes on a lane function."""
    attribute: Any = function.attributes.get(_ATTRIBUTE, ArrayAttr([]))
    return [{name: text.data for name, text in note.data.items()} for note in attribute.data]


def _of_dot(op: DotOp, layouts: DotLayouts, chip: ChipDescription) -> Note | None:
    """TFW0623: multiply-adds of lanes do a dot whose types a matrix instruction of the chip has, and whose sizes none has."""
    serving = atoms.of_types(layouts.types, chip) if layouts.atom.name.startswith(atoms.LANE_ATOM) else ()
    if not serving:
        return None
    sizes = dot.shape_of(op)[-3:]
    names = ", ".join(f"{atom.name} (m {atom.m}, n {atom.n}, k {atom.k})" for atom in serving)
    place = place_of(op)
    product = f"{sizes[0]}x{sizes[1]}x{sizes[2]} (m x n x k) of {layouts.types.a} and {layouts.types.b}"
    return {
        "code": "TFW0623",
        "message": f"this dot of {product} is left to the multiply-adds of lanes, far slower than matrix instructions",
        "place": "" if place is None else f"{place.file}:{place.line}",
        "help": f"sizes that are multiples of those of one of these are served: {names}; pad the tile and mask the loads",
    }
