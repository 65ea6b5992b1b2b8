"""Arrays in memory as views: made of pointers, divided into tiles, loaded and stored by the tile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import tilefw.language as tl
from tilefw.frontend.arithmetic import BINARY, compare
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.casts import cast, constant
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.array_groups import view_group
from tilefw.importers.cutile.bytecode_types import DYNAMIC, ScalarType, TensorViewType, TiledViewType
from tilefw.importers.cutile.memory_order import READ, WRITE, AccessToken
from tilefw.importers.cutile.operations.pointers import KINDS, SCOPES, ordered
from tilefw.importers.cutile.operations.shape import along

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()

_PADDINGS: Mapping[str, float] = MappingProxyType({
    "zero": 0.0, "neg_zero": -0.0, "nan": math.nan, "pos_inf": math.inf, "neg_inf": -math.inf,
})


@dataclass(frozen=True, slots=True)
class MemoryArray:
    """An array in memory: a pointer to its first element, extents and strides in elements."""

    base: RuntimeValue
    extents: tuple[RuntimeValue, ...]
    strides: tuple[RuntimeValue, ...]


@dataclass(frozen=True, slots=True)
class TiledMemory:
    """An array in tiles, as its type says."""

    array: MemoryArray
    type: TiledViewType


@meaning("make_tensor_view")
def make_array(t: BytecodeTranslation, op: BytecodeOperation) -> MemoryArray:
    (type,), base = op.types, t.tile(op, "base")
    if not isinstance(type, TensorViewType) or base.is_tile or not base.dtype.is_ptr():
        raise ValueError("a view is made of a pointer to an array")
    shape, strides = t.listed(op, "shape"), t.listed(op, "strides")
    numbers = _numbers(t, type.shape, shape), _numbers(t, type.strides, strides)
    group = view_group(type, t.entry, base.ssa, [value.ssa for value in shape], [value.ssa for value in strides])
    if group is not None:
        t.groups.append(group)
    return MemoryArray(base, *numbers)


def _numbers(t: BytecodeTranslation, stated: Sequence[int], values: Sequence[RuntimeValue]) -> tuple[RuntimeValue, ...]:
    """Extents or strides of all axes: stated ones as constants, the others in order."""
    if len(values) != stated.count(DYNAMIC):
        raise ValueError(f"{len(values)} extents or strides are given for {stated.count(DYNAMIC)} that are left open")
    dynamic = iter(values)
    return tuple(next(dynamic) if number == DYNAMIC else _constant(t, number) for number in stated)


def _constant(t: BytecodeTranslation, number: int) -> RuntimeValue:
    return constant(t.b, number, tl.int32 if -(1 << 31) <= number < 1 << 31 else tl.int64)


@meaning("make_partition_view")
@meaning("make_strided_view")
@meaning("make_gather_scatter_view")
def make_tiles(t: BytecodeTranslation, op: BytecodeOperation) -> TiledMemory:
    (type,), array = op.types, t.value(op, "tensor_view")
    given = t.types[op.operands["tensor_view"]]
    if not isinstance(type, TiledViewType) or not isinstance(array, MemoryArray) or given != type.array:
        raise ValueError("tiles are those of a view of an array")
    return TiledMemory(array, type)


@meaning("get_tensor_shape")
def extents(t: BytecodeTranslation, op: BytecodeOperation) -> list[RuntimeValue]:
    array = t.value(op, "view")
    return [cast(t.b, extent, t.type_of(type)) for extent, type in zip(array.extents, op.types, strict=True)]


@meaning("get_index_space_shape")
def tile_counts(t: BytecodeTranslation, op: BytecodeOperation) -> list[RuntimeValue]:
    """How many tiles lie along each axis, the last one in part outside."""
    view, found = t.value(op, "view"), list[RuntimeValue]()
    for axis, step, type in zip(view.type.axes, view.type.steps, op.types, strict=True):
        extent = view.array.extents[axis]
        one, step_value = constant(t.b, 1, extent.dtype), constant(t.b, step, extent.dtype)
        # (extent - 1) / step + 1, which does not wrap; none of nothing.
        last = t.b.row("divs", t.b.row("subi", extent, one), step_value)
        some = t.b.compare("gts", extent, constant(t.b, 0, extent.dtype))
        count = t.b.row("select", some, t.b.row("addi", last, one), constant(t.b, 0, extent.dtype))
        found.append(cast(t.b, count, t.type_of(type)))
    return found


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a tile lies: its first element along each of its axes, with strides, and bounds where they are checked."""

    begin: list[RuntimeValue]
    strides: list[RuntimeValue]
    bounds: list[RuntimeValue | None]


def _box(t: BytecodeTranslation, op: BytecodeOperation, view: TiledMemory) -> _Box:
    type, inside = view.type, op.attributes.get("inbounds", ())
    begin: list[RuntimeValue] = []
    for index, step in zip(t.listed(op, "index"), type.steps, strict=True):
        begin.append(t.b.row("muli", index, constant(t.b, step, index.dtype)) if step != 1 else index)
    known = [*inside, *[False] * (len(begin) - len(inside))]
    bounds = [None if ok else view.array.extents[axis] for axis, ok in zip(type.axes, known, strict=True)]
    return _Box(begin, [view.array.strides[axis] for axis in type.axes], bounds)


def _view(t: BytecodeTranslation, op: BytecodeOperation) -> TiledMemory:
    view = t.value(op, "view")
    if not isinstance(view, TiledMemory):
        raise ValueError("the view is not one of tiles")
    if op.attributes["semantics"] != "weak" and op.name != "atomic_red_view_tko":
        raise t.refusal(op, f"{op.name} with the order {op.attributes['semantics']} is not imported", note="weak accesses are")
    return view


def _padding(t: BytecodeTranslation, op: BytecodeOperation, view: TiledMemory) -> RuntimeValue | None:
    """A tile of what lies outside; None where that may be anything."""
    if view.type.padding is None:
        return None
    element = view.type.array.element
    assert isinstance(element, ScalarType)
    carrier = view.array.base.dtype.element_ty  # type: ignore[attr-defined]
    if view.type.padding != "zero" and (carrier.is_int() or element.bits < 16):
        raise t.refusal(op, f"tiles of {element} padded with {view.type.padding} are not imported")
    number = _PADDINGS[view.type.padding]
    return constant(t.b, number if carrier.is_floating() else int(number), carrier, view.type.tile)


@meaning("load_view_tko")
def load(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    view, token = _view(t, op), t.token(op)
    t.order.before(t.b, token, READ)
    other = _padding(t, op, view)
    if view.type.sparse is not None:
        pointers, inside = _elements(t, op, view)
        found = t.b.load(pointers, inside, other, "", "", False)
    elif not view.type.tile:
        found = t.b.load(view.array.base, None, None, "", "", False)
    else:
        box = _box(t, op, view)
        other = other if any(bound is not None for bound in box.bounds) else None
        found = t.b.load_block(view.array.base, box.begin, box.strides, box.bounds, view.type.tile, other)
    return [found, t.order.after(token, READ)]


@meaning("store_view_tko")
def store(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    view, token, value = _view(t, op), t.token(op), t.tile(op, "value")
    if value.shape != view.type.tile:
        raise ValueError(f"the value is {value}, and the tiles are {list(view.type.tile)}")
    t.order.before(t.b, token, WRITE)
    if view.type.sparse is not None:
        pointers, inside = _elements(t, op, view)
        t.b.store(pointers, value, inside, "", "")
    elif not view.type.tile:
        t.b.store(view.array.base, value, None, "", "")
    else:
        box = _box(t, op, view)
        t.b.store_block(view.array.base, value, box.begin, box.strides, box.bounds)
    return t.order.after(token, WRITE)


@meaning("atomic_red_view_tko")
def combine(t: BytecodeTranslation, op: BytecodeOperation) -> AccessToken:
    view, token, order = _view(t, op), t.token(op), op.attributes["semantics"]
    if order not in ("release", "acq_rel"):
        t.order.before(t.b, token, WRITE)
    pointers, inside = _elements(t, op, view)
    scope = SCOPES[op.attributes["scope"]]
    t.b.atomic_rmw(KINDS[op.attributes["mode"]], pointers, t.tile(op, "value"), inside, order, scope)
    return ordered(t, token, order)


def _elements(t: BytecodeTranslation, op: BytecodeOperation, view: TiledMemory) -> tuple[RuntimeValue, RuntimeValue | None]:
    """Pointers to the elements of a tile, and which of them lie in the array."""
    b, type, tile = t.b, view.type, view.type.tile
    pointers, inside = b.splat(view.array.base, tile) if tile else view.array.base, None
    for axis, index in enumerate(t.listed(op, "index")):
        if axis == type.sparse:
            if index.shape != (tile[axis],):
                raise ValueError(f"the indices of {type} are {index}")
            places = index
        else:
            start = BINARY["*"](b, index, type.steps[axis])
            places = BINARY["+"](b, start, b.iota(0, tile[axis]))
        extent, stride = view.array.extents[type.axes[axis]], view.array.strides[type.axes[axis]]
        checked = BINARY["&"](b, compare(b, ">=", places, 0), compare(b, "<", places, extent))
        inside = _both(t, inside, along(b, checked, axis, tile))
        wide = BINARY["*"](b, cast(b, places, tl.int64), cast(b, stride, tl.int64))
        pointers = b.add_pointer(pointers, along(b, wide, axis, tile))
    return pointers, inside


def _both(t: BytecodeTranslation, left: RuntimeValue | None, right: RuntimeValue) -> RuntimeValue:
    return right if left is None else t.b.row("andi", left, right)
