"""Which parameters of a kernel belong together: cuTile passes an array as its pointer, its extents and its strides.

The name of a kernel that cuTile mangled says what its parameters are; where a kernel has another name, the views that it makes of
its parameters say it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, SSAValue

from tilefw.importers.cutile.bytecode_types import DYNAMIC, BytecodeType, PointerType, TensorViewType, TileType

_MANGLED = re.compile(r"(.+)_Kt?\d+((?:_[A-Z].*)?)")
_LIST = re.compile(r".+_Kt?\d+(?:_.*)?_L[0-9a-gi]*A\d.*")
_PARAMETER = re.compile(r"_(?=[A-Z])")
_INTEGERS = ("i32", "i64")


@dataclass(frozen=True, slots=True)
class ArrayGroup:
    """The parameters `first` (the pointer), then `rank` extents and as many strides. `fixed` are those that the code was made for,
    by their place behind the pointer."""

    first: int
    rank: int
    fixed: Mapping[int, int] = field(default_factory=dict)

    @property
    def behind(self) -> int:
        """The number of the parameter behind the group."""
        return self.first + 1 + 2 * self.rank


def grouped(name: str, types: Sequence[BytecodeType], views: Sequence[ArrayGroup]) -> tuple[str, tuple[ArrayGroup, ...]]:
    """The kernel's name in the source, and its arrays in order."""
    plain, spelled = _spelled(name, types)
    arrays = spelled if spelled is not None else _disjoint([view for view in views if fitting(types, view)])
    known = {view.first: view.fixed for view in views}
    return plain, tuple(ArrayGroup(array.first, array.rank, known.get(array.first, {})) for array in arrays)


def takes_list(name: str) -> bool:
    """Whether a mangled name says that a parameter is a list of arrays."""
    return _LIST.fullmatch(name) is not None


def _disjoint(views: Sequence[ArrayGroup]) -> list[ArrayGroup]:
    found: list[ArrayGroup] = []
    for view in sorted(views, key=lambda view: view.first):
        if not found or found[-1].behind <= view.first:
            found.append(view)
    return found


def _spelled(name: str, types: Sequence[BytecodeType]) -> tuple[str, list[ArrayGroup] | None]:
    """What a mangled name says; no arrays where it is none, or does not fit the parameters."""
    mangled = _MANGLED.fullmatch(name)
    if mangled is None:
        return name, None
    found, at = list[ArrayGroup](), 0
    for text in _PARAMETER.split(mangled[2])[1:]:
        kind, rank = text[0], re.match(r"A(\d{1,4})[a-z]", text)
        if rank is not None:
            found.append(ArrayGroup(at, int(rank[1])))
            at = found[-1].behind
        elif kind == "S":
            at += 1
        elif kind not in "IBF":
            return mangled[1], None
    fits = at == len(types) and all(fitting(types, group) for group in found)
    return mangled[1], found if fits else None


def fitting(types: Sequence[BytecodeType], group: ArrayGroup) -> bool:
    """Whether a pointer stands first and integers behind it."""
    if group.behind > len(types):
        return False
    first, *others = types[group.first : group.behind]
    pointer = isinstance(first, TileType) and isinstance(first.element, PointerType) and not first.shape
    return pointer and all(isinstance(t, TileType) and not t.shape and str(t.element) in _INTEGERS for t in others)


def view_group(
    view: TensorViewType, block: Block, base: SSAValue, shape: Sequence[SSAValue], strides: Sequence[SSAValue]
) -> ArrayGroup | None:
    """The parameters that a view is made of; None where they are others than those behind the pointer."""
    if base.owner is not block:
        return None
    first, rank, fixed = block.args.index(base), len(view.shape), dict[int, int]()  # type: ignore[arg-type]
    for offset, (stated, values) in enumerate(((view.shape, iter(shape)), (view.strides, iter(strides)))):
        for axis, number in enumerate(stated):
            place = 1 + offset * rank + axis
            if number != DYNAMIC:
                fixed[place] = number
            elif first + place >= len(block.args) or next(values) is not block.args[first + place]:
                return None
    return ArrayGroup(first, rank, fixed)
