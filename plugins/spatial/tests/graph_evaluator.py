"""What a graph means, in NumPy: every value an array over its axes, stores into the bytes of storages. For tests alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilefw.api import DTYPES, BufferPlacement, DType
from tilefw.api.ir import ROWS, evaluate_known, numbers
from tilefw_spatial.graph import (
    AccessMap,
    Along,
    Axis,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Load,
    Reduce,
    ReductionKind,
    Rename,
    Store,
    Value,
)

Array = np.ndarray[Any, Any]
_FOLDS = {ReductionKind.ADDF: np.add, ReductionKind.MULF: np.multiply,
          ReductionKind.MAXF: np.maximum, ReductionKind.MINF: np.minimum,
          ReductionKind.MAXNUM: np.fmax, ReductionKind.MINNUM: np.fmin}


class GraphEvaluator:
    """One graph over storages of bytes; `run` carries out its stores."""

    def __init__(self, storages: Sequence[Array], buffers: Mapping[int, BufferPlacement]) -> None:
        self.storages, self.buffers = storages, buffers
        self.before = [storage.copy() for storage in storages]
        self.found: dict[Value, Array] = {}

    def run(self, graph: Graph) -> None:

        for value in graph.values():
            self.found[value] = self._value(value)

        for store in graph.stores:
            self._store(store)

    # Values ----------------------------------------------------------------------------------------------------------

    def over(self, value: Value, axes: Sequence[Axis]) -> Array:
        """A value's elements with a dim for each of `axes`, of extent 1 where it lacks the axis."""
        assert set(value.axes) <= set(axes), (value.op, value.axes, axes)
        data = self.found[value]
        order = [value.axes.index(axis) for axis in axes if axis in value.axes]
        shape = [axis.extent if axis in value.axes else 1 for axis in axes]
        return data.transpose(order).reshape(shape)

    def _value(self, value: Value) -> Array:
        assert len(set(value.axes)) == len(value.axes)
        found = _METHODS[type(value.op)](self, value, value.op)
        shape = tuple(axis.extent for axis in value.axes)
        return np.broadcast_to(found, shape)

    def _constant(self, value: Value, op: Constant) -> Array:
        dtype = DTYPES[value.dtype]
        assert op.data.shape == tuple(axis.extent for axis in value.axes)
        return _decoded(op.data, dtype)

    def _load(self, value: Value, op: Load) -> Array:
        dtype, buffer = DTYPES[value.dtype], self.buffers[op.access_map.parameter]
        offsets, valid = elements(op.access_map, value.axes)
        size = dtype.storage_bits // 8
        codes, first = _codes(self.before[buffer.storage], buffer, size)
        found = np.full(offsets.shape, op.fill, f"u{size}")
        found[valid] = codes[first + offsets[valid]]
        return _decoded(found, dtype)

    def _elementwise(self, value: Value, op: Elementwise) -> Array:
        row, result = ROWS[op.row], DTYPES[value.dtype]
        operands = [self.over(operand, value.axes) for operand in op.operands]
        source = DTYPES[op.operands[row.typed_by].dtype]
        return evaluate_known(row, operands, source, result, "rtz" if op.rounding == "rtz" else "rtne")

    def _reduce(self, value: Value, op: Reduce) -> Array:
        dtype = DTYPES[value.dtype]
        assert all(axis in op.operand.axes for axis in op.axes) and not set(op.axes) & set(value.axes)
        data = self.over(op.operand, (*op.axes, *value.axes))
        ordered = [] if op.ordered is None else [op.axes.index(op.ordered)]
        rest = tuple(i for i in range(len(op.axes)) if i not in ordered)
        shape = data.shape[len(op.axes) :]
        if op.ordered is None:
            data = data.reshape(-1, *shape)
            if op.initial is not None:
                first = np.broadcast_to(self.over(op.initial, value.axes), shape)[None]
                data = np.concatenate([first, data])
            return _fold(op.kind, data, dtype)
        data = np.moveaxis(data, ordered[0], 0)
        assert not rest or op.kind is not None
        steps = [_fold(op.kind, step.reshape(-1, *shape), dtype) for step in data]
        current = steps[0] if op.initial is None else _fold(op.kind, _pair(self.over(op.initial, value.axes), steps[0]), dtype)
        for step in steps[1:]:
            current = _fold(op.kind, _pair(current, step), dtype)
        return current

    def _dot(self, value: Value, op: Dot) -> Array:
        dtype = DTYPES[value.dtype]
        axes = (*value.axes, *op.contracted)
        assert set(op.a.axes) <= set(axes) and set(op.b.axes) <= set(axes)
        names = {axis: i for i, axis in enumerate(axes)}
        a, b = (_operand(self.found[v], DTYPES[v.dtype], op.unsigned) for v in (op.a, op.b))
        lacking = prod(axis.extent for axis in op.contracted if axis not in op.a.axes and axis not in op.b.axes)
        with np.errstate(all="ignore"):
            found = np.einsum(
                a, [names[x] for x in op.a.axes], b, [names[x] for x in op.b.axes],
                [names[x] for x in value.axes if x in op.a.axes or x in op.b.axes], optimize=True,
            ) * lacking
        kept = [x for x in value.axes if x in op.a.axes or x in op.b.axes]
        found = found.reshape([x.extent if x in kept else 1 for x in value.axes])
        if op.accumulator is not None:
            found = found + self.over(op.accumulator, value.axes)
        return numbers.round_to(found, dtype) if dtype.is_float else numbers.wrap(found.astype(np.int64), dtype.bits)

    def _rename(self, value: Value, op: Rename) -> Array:
        rest = [axis for axis in value.axes if axis not in op.new]
        old = self.over(op.operand, (*op.old, *rest)).reshape(-1, *(axis.extent for axis in rest))
        index = np.arange(old.shape[0]) if op.index is None else op.index
        assert index.size == prod(axis.extent for axis in op.new)
        new = old[index.reshape(-1)].reshape([*(axis.extent for axis in op.new), *(axis.extent for axis in rest)])
        order = [(*op.new, *rest).index(axis) for axis in value.axes]
        return new.transpose(order)

    def _gather(self, value: Value, op: Gather) -> Array:
        table = self.over(op.table, (op.axis, *value.axes))
        index = self.over(op.index, value.axes)
        assert index.min(initial=0) >= 0 and index.max(initial=0) < op.axis.extent
        shape = np.broadcast_shapes(table.shape[1:], index.shape)
        table = np.broadcast_to(table, (table.shape[0], *shape))
        return np.take_along_axis(table, np.broadcast_to(index, shape)[None].astype(np.int64), axis=0)[0]

    def _join(self, value: Value, op: Join) -> Array:
        rest = [axis for axis in value.axes if axis is not op.axis]
        parts = []
        for operand, part in zip(op.operands, op.parts, strict=True):
            data = self.over(operand, (part, *rest))
            parts.append(np.broadcast_to(data, [part.extent, *(axis.extent for axis in rest)]))
        data = np.concatenate(parts)
        return data.transpose([(op.axis, *rest).index(axis) for axis in value.axes])

    def _check(self, store: Store) -> None:
        """No flag of a check is set."""
        axes = tuple(part.axis for part in store.access_map.along)
        offsets, valid = elements(store.access_map, axes)
        assert not np.broadcast_to(self.over(store.value, axes), offsets.shape)[valid].any()

    # Stores ----------------------------------------------------------------------------------------------------------

    def _store(self, store: Store) -> None:
        if store.access_map.parameter not in self.buffers:
            self._check(store)
            return
        dtype, buffer = DTYPES[store.value.dtype], self.buffers[store.access_map.parameter]
        axes = tuple(part.axis for part in store.access_map.along)
        offsets, valid = elements(store.access_map, axes)
        if store.mask is not None:
            valid = valid & self.over(store.mask, axes)
        value = np.broadcast_to(self.over(store.value, axes), offsets.shape)[valid]
        offsets = offsets[valid]
        size = dtype.storage_bits // 8
        codes, first = _codes(self.storages[buffer.storage], buffer, size)
        offsets = offsets + first
        if store.accumulate is None:
            assert np.unique(offsets).size == offsets.size, "one store writes an element twice"
            codes[offsets] = _encoded(value, dtype)
            return
        for offset, new in zip(offsets, value, strict=True):
            pair = np.stack([_decoded(codes[offset : offset + 1], dtype)[0], new])
            codes[offset] = _encoded(np.reshape(_fold(ReductionKind(store.accumulate), pair, dtype), 1), dtype)[0]


_METHODS: dict[type, Any] = {
    Constant: GraphEvaluator._constant, Load: GraphEvaluator._load, Elementwise: GraphEvaluator._elementwise,
    Reduce: GraphEvaluator._reduce,
    Dot: GraphEvaluator._dot, Rename: GraphEvaluator._rename, Gather: GraphEvaluator._gather, Join: GraphEvaluator._join,
}


def elements(place: AccessMap, axes: Sequence[Axis]) -> tuple[Array, Array]:
    """The element of each index, and whether there is one."""
    offsets = np.full([axis.extent for axis in axes], place.base, np.int64)
    valid = np.ones(offsets.shape, np.bool_)
    assert {part.axis for part in place.along} == set(axes)
    for part in (*place.along, *place.joint):
        mine = (part.axis,) if isinstance(part, Along) else part.axes
        shape = [axis.extent if axis in mine else 1 for axis in axes]
        order = [mine.index(axis) for axis in axes if axis in mine]
        offsets = offsets + np.asarray(part.offsets).transpose(order).reshape(shape)
        if part.valid is not None:
            valid = valid & np.asarray(part.valid).transpose(order).reshape(shape)
    return offsets, valid


def _codes(storage: Array, buffer: BufferPlacement, size: int) -> tuple[Array, int]:
    """A storage as elements, and which of them a buffer's pointer points to."""
    shift = buffer.offset % size
    data = storage[shift:]
    return data[: data.size // size * size].view(f"u{size}"), buffer.offset // size


def _fold(kind: ReductionKind, data: Array, dtype: DType) -> Array:
    """Elements combined along the first dim; sums rounded once."""
    with np.errstate(all="ignore"):
        if kind in _FOLDS:
            return numbers.round_to(_FOLDS[kind].reduce(data), dtype)
        current = data[0]
        for step in data[1:]:
            current = evaluate_known(ROWS[kind.value], [current, step], dtype, dtype)
        return current


def _pair(a: Array, b: Array) -> Array:
    return np.stack(np.broadcast_arrays(a, b))


def _operand(data: Array, dtype: DType, unsigned: bool) -> Array:
    if dtype.is_float:
        return data.astype(np.float64)
    return (numbers.as_unsigned(data, dtype.bits) if unsigned else data).astype(np.float64)


def _decoded(data: Array, dtype: DType) -> Array:
    return numbers.from_bytes(np.ascontiguousarray(data).reshape(-1).view(np.uint8), dtype).reshape(data.shape)


def _encoded(data: Array, dtype: DType) -> Array:
    return numbers.to_bytes(np.ascontiguousarray(data), dtype).view(f"u{dtype.storage_bits // 8}")
