"""A graph in the few forms that are arranged: accesses as terms, renames axis by axis, nothing that other forms express.

`Fetch` and `Reindex` replace `Load` and `Rename`; values lose axes along which they cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES, InternalError, Place
from tilefw_spatial.arrange.access import NOWHERE, AffineAccess, access_of, elements
from tilefw_spatial.arrange.reindexing import AxisIndex, composed, reindexed_axes, reindexed_elements, reindexing_of
from tilefw_spatial.arrange.stores import unconditional
from tilefw_spatial.graph import (
    Axis,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Load,
    Op,
    Reduce,
    ReductionKind,
    Rename,
    Store,
    Value,
    operands_of,
)
from tilefw_spatial.isa import SUMS
from tilefw_spatial.postorder import postorder


@dataclass(frozen=True, slots=True, eq=False)
class Fetch(Op):
    """Elements of a buffer as they were before the launch; `fill` (an element's bits) where nothing is accessed."""

    access: AffineAccess
    fill: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reindex(Op):
    """The operand's element whose index along each axis of `reindexing` is a table over axes of the value."""

    operand: Value
    reindexing: Mapping[Axis, AxisIndex]


@dataclass(frozen=True, slots=True, eq=False)
class Relayout(Op):
    """The operand's elements, which all fit one vector and are made as one, along whatever lanes somebody wants them."""

    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class NormalTarget:
    """A store of a normal value: all axes of the access are the value's."""

    value: Value
    access: AffineAccess
    store: Store


def operands(op: Op) -> tuple[Value, ...]:
    """The values that an op reads, in either form."""
    return (op.operand,) if isinstance(op, Reindex | Relayout) else operands_of(op)


def with_operands(op: Op, parts: Sequence[Value]) -> Op:
    """The op of other operands, in the order of `operands`."""
    match op:
        case Elementwise():
            return replace(op, operands=tuple(parts))
        case Dot():
            return replace(op, a=parts[0], b=parts[1])
        case Reduce():
            return replace(op, operand=parts[0], initial=parts[1] if len(parts) > 1 else None)
        case Reindex() | Relayout():
            return replace(op, operand=parts[0])
    return op


def reached(value: Value) -> list[Value]:
    """A value and all that it is made of, but for inputs."""
    seen: dict[Value, None] = {}
    stack = [value]
    while stack:
        current = stack.pop()
        if current not in seen and not isinstance(current.op, Fetch | Constant):
            seen[current] = None
            stack += operands(current.op)
    return list(seen)


def normal(graph: Graph) -> list[NormalTarget]:
    """The graph's stores in normal form, in their order."""
    normaliser, order = Normaliser(), _Order()
    for store in unconditional(graph.stores):
        order.add(normaliser.target(store))
    return order.targets


class _Order:
    """Targets in the order of their stores. What is stored twice is one array, which goes to the host in the place of the later
    store: if another store has replaced some of the earlier one's elements by then, the later one gets a copy."""

    def __init__(self) -> None:
        self.targets: list[NormalTarget] = []
        self._copies: dict[Value, Value] = {}  # of a value the last
        self._numbers: dict[Value, list[int]] = {}
        self._elements: dict[int, NDArray[np.int64]] = {}

    def add(self, target: NormalTarget) -> None:
        """The next store's."""
        value = self._copies.get(target.value, target.value)
        if any(self._replaced(number) for number in self._numbers.get(value, ())):
            original, value = value, _copy(value)
            self._copies[target.value] = self._copies[original] = value
        self._numbers.setdefault(value, []).append(len(self.targets))
        self.targets.append(replace(target, value=value))

    def _replaced(self, number: int) -> bool:
        """Whether a store after that has some element of it."""
        first = self.targets[number]
        return any(
            other.value is not first.value and other.store.access_map.parameter == first.store.access_map.parameter
            and np.intersect1d(self._stored(number), self._stored(number)).size > 0
            for number, other in enumerate(self.targets[number + 1 :], number + 1)
        )

    def _stored(self, number: int) -> NDArray[np.int64]:
        if number not in self._elements:
            found = elements(self.targets[number].store.access_map)
            self._elements[number] = np.unique(found[found != NOWHERE])
        return self._elements[number]


def _copy(value: Value) -> Value:
    """The same once more, in memory of its own."""
    op = value.op if isinstance(value.op, Fetch | Constant) else Reindex(value, {})
    return Value(op, value.axes, value.dtype, value.place)


class Normaliser:
    """Rewrites values once each, operands first."""

    def __init__(self) -> None:
        self._done: dict[Value, Value] = {}

    def target(self, store: Store) -> NormalTarget:
        """A store of a normal value, which has all axes of the access."""
        for value in postorder([store.value], lambda user: operands_of(user.op), self._done):
            self._done[value] = self._value(value)
        access = access_of(store.access_map)
        value = self._done[store.value]
        axes = tuple(dict.fromkeys(axis for term in access.terms for axis in term.axes))
        if not set(axes) <= set(value.axes):
            value = Value(Reindex(value, {}), tuple(dict.fromkeys((*value.axes, *axes))), value.dtype, store.place)
        return NormalTarget(value, access, store)

    def _value(self, value: Value) -> Value:
        match value.op:
            case Load(access_map=access_map, fill=fill):
                access = access_of(access_map)
                return _fetched(access, fill, value)
            case Constant(data=data):
                return constant(data, value.axes, value.dtype)
            case Elementwise() as op:
                op = replace(op, operands=tuple(self._done[part] for part in op.operands))
                return Value(op, _joint(op), value.dtype, value.place)
            case Reduce(kind=kind, operand=operand, axes=axes, ordered=ordered, initial=initial):
                begin = None if initial is None else self._done[initial]
                return _reduced(Reduce(kind, self._done[operand], axes, ordered, begin), value)
            case Dot() as dot:
                return self._dot(dot, value)
            case Rename(operand=operand, old=old, new=new, index=index):
                return reindexed(self._done[operand], reindexing_of(old, new, index), value)
            case Gather(table=table, axis=axis, index=index):
                return chosen_row(self._done[table], axis, self._done[index], value)
            case Join() as join:
                return self._joined(join, value)
        raise InternalError(f"a graph with a value that is made by {type(value.op).__name__}")

    def _joined(self, join: Join, value: Value) -> Value:
        """Each operand broadcast over the whole axis, and one of them selected for each index."""
        axis, begin = join.axis, 0
        index = np.arange(axis.extent)
        result: Value | None = None
        for operand, part in zip(join.operands, join.parts, strict=True):
            table = np.clip(index - begin, 0, part.extent - 1)
            found = reindexed(self._done[operand], {part: AxisIndex((axis,), table)}, value)
            mask = constant(index >= begin, (axis,), "int1")
            result = found if result is None else elementwise("select", value.dtype, mask, found, result, place=value.place)
            begin += part.extent
        assert result is not None, "a join has operands"
        return result

    def _dot(self, dot: Dot, value: Value) -> Value:
        """A product of the matrix unit, or where it has none of the type, products and their sum; then the accumulator."""
        a, b = (_stretched(self._done[part], dot.contracted) for part in (dot.a, dot.b))
        op = replace(dot, a=a, b=b, accumulator=None)
        product = _product(op, value)
        if dot.accumulator is None:
            return product
        row = "addf" if DTYPES[product.dtype].is_float else "addi"
        return elementwise(row, product.dtype, product, self._done[dot.accumulator], place=value.place)


def chosen_row(table: Value, axis: Axis, index: Value, like: Value) -> Value:
    """The table's element at `index`: of all along the axis, in time, the one whose number it is; the others count as no bits."""
    info = DTYPES[like.dtype]
    codes = elementwise("bitcast", f"int{info.storage_bits}", table, place=like.place) if info.is_float else table
    if DTYPES[index.dtype].bits < 32:
        index = elementwise("exts" if DTYPES[index.dtype].kind == "int" else "extu", "int32", index, place=like.place)
    numbers = constant(np.arange(axis.extent, dtype=DTYPES[index.dtype].numpy), (axis,), index.dtype)
    nothing = constant(np.zeros((), dtype=DTYPES[codes.dtype].numpy), (), codes.dtype)
    hit = elementwise("eqi", "int1", index, numbers, place=like.place)
    found = Reduce(ReductionKind.OR, elementwise("select", codes.dtype, hit, codes, nothing, place=like.place), (axis,))
    result = Value(found, _joint(found, (axis,)), codes.dtype, like.place)
    return elementwise("bitcast", like.dtype, result, place=like.place) if info.is_float else result


def _reduced(op: Reduce, like: Value) -> Value:
    """A reduction; over no axis at all, as axes of one index are gone, it combines nothing but what it begins with."""
    if op.axes:
        return Value(op, _joint(op, op.axes), like.dtype, like.place)
    return op.operand if op.initial is None else elementwise(op.kind.value, like.dtype, op.initial, op.operand, place=like.place)


def _stretched(value: Value, axes: tuple[Axis, ...]) -> Value:
    """A value that stream operations make, over all of `axes`: the rows of a matrix must be in memory one by one, even if they are
    identical."""
    if set(axes) <= set(value.axes) or isinstance(value.op, Fetch | Constant):
        return value
    return Value(Reindex(value, {}), tuple(dict.fromkeys((*value.axes, *axes))), value.dtype, value.place)


def _product(op: Dot, value: Value) -> Value:
    place = value.place
    dtype = op.a.dtype
    if dtype == op.b.dtype and SUMS.get(dtype) == value.dtype and not op.unsigned:
        return Value(op, _joint(op, op.contracted), value.dtype, place)
    if SUMS.get(dtype) == "fp32" == SUMS.get(op.b.dtype):
        return _float_product(op, value)
    row, kind = ("mulf", ReductionKind.ADDF) if DTYPES[value.dtype].is_float else ("muli", ReductionKind.ADDI)
    parts = (_widened(part, value.dtype, op.unsigned) for part in (op.a, op.b))
    return _reduced(Reduce(kind, elementwise(row, value.dtype, *parts, place=place), op.contracted), value)


def _float_product(op: Dot, value: Value) -> Value:
    """Operands of two types of 8-bit floats are both numbers of fp16; sums of another type than fp32 are rounded at the end."""
    if op.a.dtype != op.b.dtype:
        op = replace(op, a=_widened(op.a, "fp16"), b=_widened(op.b, "fp16"))
    product = Value(op, _joint(op, op.contracted), "fp32", value.place)
    return product if value.dtype == "fp32" else elementwise("castf", value.dtype, product, place=value.place)


def _widened(value: Value, dtype: str, unsigned: bool = False) -> Value:
    if value.dtype == dtype:
        return value
    row = "castf" if DTYPES[dtype].is_float else "extu" if unsigned else "exts"
    return elementwise(row, dtype, value, place=value.place)


def _joint(op: Op, without: tuple[Axis, ...] = ()) -> tuple[Axis, ...]:
    found = dict.fromkeys(axis for part in operands(op) for axis in part.axes)
    return tuple(axis for axis in found if axis not in without)


def elementwise(row: str, dtype: str, *parts: Value, place: Place | None = None) -> Value:
    """A row of the elementwise table, over the axes of its operands."""
    op = Elementwise(row, parts)
    return Value(op, _joint(op), dtype, place)


def _fetched(access: AffineAccess, fill: int, like: Value) -> Value:
    axes = tuple(dict.fromkeys(axis for term in access.terms for axis in term.axes))
    return Value(Fetch(access, fill), axes, like.dtype, like.place)


def constant(data: NDArray[np.generic], axes: tuple[Axis, ...], dtype: str) -> Value:
    """A constant over those axes along which it differs."""
    data = data.reshape([axis.extent for axis in axes])
    codes = bits_of(data)
    kept: list[Axis] = []
    index: list[slice | int] = []
    for number, axis in enumerate(axes):
        first = np.take(codes, [0], axis=number) if axis.extent else codes
        differs = bool((codes != first).any())
        kept += [axis] if differs else []
        index.append(slice(None) if differs or not axis.extent else 0)
    return Value(Constant(np.asarray(data[tuple(index)])), tuple(kept), dtype)


def bits_of(data: NDArray[np.generic]) -> NDArray[np.unsignedinteger]:
    """The elements' codes as unsigned integers."""
    return np.ascontiguousarray(data).reshape(data.shape).view(np.dtype(f"u{data.dtype.itemsize}"))


def reindexed(operand: Value, reindexing: Mapping[Axis, AxisIndex], like: Value) -> Value:
    """The operand under other axes: applied to a load's access or a constant at once, else a `Reindex`."""
    reindexing = {axis: axis_index for axis, axis_index in reindexing.items() if axis in operand.axes}
    if not reindexing:
        return operand
    match operand.op:
        case Fetch(access=access, fill=fill):
            return _fetched(access.renamed(reindexing), fill, operand)
        case Constant(data=data):
            axes, chosen = reindexed_elements(operand.axes, data, reindexing)
            return constant(chosen, axes, operand.dtype)
        case Reindex(operand=inner, reindexing=below):
            return reindexed(inner, composed(below, reindexing), like)
    return Value(Reindex(operand, reindexing), reindexed_axes(operand.axes, reindexing), operand.dtype, like.place)
