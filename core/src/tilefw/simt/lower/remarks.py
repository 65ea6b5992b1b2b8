"""What a user should learn of the lowering though nothing is wrong: a dot that no matrix instruction serves.

Remarks are an attribute of the lane function, from which selection takes them to the machine function's attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from tilefw.api.errors import Place
from tilefw.api.remark import Remark
from tilefw.simt.description import ChipDescription
from tilefw.simt.layout import atoms
from tilefw.simt.layout.atoms import DotLayouts
from tilefw.simt.lower import dot
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.text.source_location import place_of

_ATTRIBUTE = "lane.remarks"


def add(function: FuncOp, remark: Remark) -> None:
    """One more remark on a function, of whose place the file, the line and the column stay."""
    function.attributes[_ATTRIBUTE] = ArrayAttr([*map(_attribute_of, remarks_of(function)), _attribute_of(remark)])


def of_dots(
    function: FuncOp, dots: Iterable[tuple[DotOp, DotLayouts]], chip: ChipDescription
) -> dict[str, ArrayAttr[Any]]:
    """The attribute for a function with these dots, behind the remarks that it has; none where all is as a user expects."""
    found = (*remarks_of(function), *(_of_dot(op, layouts, chip) for op, layouts in dots))
    once = dict.fromkeys(remark for remark in found if remark is not None)  # an unrolled loop has the same dot many times
    return {_ATTRIBUTE: ArrayAttr([_attribute_of(remark) for remark in once])} if once else {}


def remarks_of(function: FuncOp) -> tuple[Remark, ...]:
    """The remarks on a lane function."""
    attribute = function.attributes.get(_ATTRIBUTE)
    return tuple(map(_remark_of, attribute.data)) if isinstance(attribute, ArrayAttr) else ()


def _attribute_of(remark: Remark) -> DictionaryAttr:
    """Texts by name; of a place its file, line and column."""
    found: dict[str, Attribute] = {name: string_attr(getattr(remark, name)) for name in ("code", "message", "help")}
    if (place := remark.place) is not None:
        found |= {"file": string_attr(place.file), "line": integer_attr(place.line), "column": integer_attr(place.column)}
    return DictionaryAttr(found)


def _remark_of(attribute: Any) -> Remark:
    members = attribute.data
    texts = {name: each.data for name, each in members.items() if isinstance(each, StringAttr)}
    numbers = {name: each.value.data for name, each in members.items() if isinstance(each, IntegerAttr)}
    place = Place(texts["file"], numbers["line"], numbers["column"]) if "file" in texts else None
    return Remark(texts["code"], texts["message"], texts["help"], place)


def _of_dot(op: DotOp, layouts: DotLayouts, chip: ChipDescription) -> Remark | None:
    """TFW0623: multiply-adds of lanes do a dot whose types a matrix instruction of the chip has, and whose sizes none has."""
    serving = atoms.of_types(layouts.types, chip) if layouts.atom.name.startswith(atoms.LANE_ATOM) else ()
    if not serving:
        return None
    sizes = dot.shape_of(op)[-3:]
    names = ", ".join(f"{atom.name} (m {atom.m}, n {atom.n}, k {atom.k})" for atom in serving)
    place = place_of(op)
    product = f"{sizes[0]}x{sizes[1]}x{sizes[2]} (m x n x k) of {layouts.types.a} and {layouts.types.b}"
    return Remark(
        "TFW0623", f"this dot of {product} is left to the multiply-adds of lanes, far slower than matrix instructions",
        f"sizes that are multiples of those of one of these are served: {names}; pad the tile and mask the loads",
        None if place is None else Place(place.file, place.line, place.column),
    )
