"""What a graph module computes, in NumPy: floats in float64, rounded where the tile reference rounds; each op by its definition.

The oracle of readers, of normalisation and of fusion: a module means the same before and after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.api.dtypes import DType
from tilefw.api.errors import UnsupportedError
from tilefw.graph.dialect import combining_ops, grouping_ops, moving_ops, pointwise_ops
from tilefw.graph.dialect.combining_ops import numbers_of
from tilefw.graph.index_maps import places
from tilefw.tile import numbers, types
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue

Array = np.ndarray[Any, Any]
Known = dict[SSAValue, Array]


def model_function(module: ModuleOp) -> FuncOp:
    """The one function of a graph module."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return function


def run(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    """The outputs for inputs as values (float64, integers of the width, bool)."""
    block = model_function(module).body.block
    assert len(inputs) == len(block.args), f"the model has {len(block.args)} inputs, got {len(inputs)}"
    return run_block(block, inputs)


def run_block(block: Block, inputs: Sequence[Array]) -> list[Array]:
    """What a block of graph ops gives to its terminator."""
    known: Known = dict(zip(block.args, map(np.asarray, inputs), strict=True))
    for op in block.ops:
        given = [known[operand] for operand in op.operands]
        if isinstance(op, ReturnOp | pointwise_ops.YieldOp):
            return given
        known.update(zip(op.results, results_of(op, given), strict=True))
    raise AssertionError("a block of graph ops has a terminator")


def results_of(op: Operation, given: Sequence[Array]) -> list[Array]:
    """The results of one graph op. Raises UnsupportedError TFW0992 for a kernel that is not looked into."""
    if op.__class__ not in _MEANINGS:
        raise UnsupportedError(f"{op.name} has no meaning in NumPy", code="TFW0992")
    with np.errstate(all="ignore"):
        return _MEANINGS[op.__class__](op, given)


def values_of(array: Array, dtype: DType) -> Array:
    """Elements in storage form as the values that graph ops compute with; unsigned integers as the signed ones of their bits."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return numbers.from_bytes(data, _element(types.ir_type(dtype))).reshape(array.shape)


def _element(type: Attribute) -> DType:
    return types.dtype_of(type)


def value_type(kind: DType) -> type[Any]:
    """NumPy's type of the values of an element type."""
    return np.float64 if kind.is_float else bool if kind.bits == 1 else numbers.int_type(kind.bits)


def _scalars(block: Block, arguments: Sequence[Array], shape: tuple[int, ...]) -> list[Array]:
    """A body of scalar ops on arrays that broadcast to `shape`."""
    known: Known = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, pointwise_ops.YieldOp):
            return [np.broadcast_to(known[value], shape) for value in op.operands]
        if isinstance(op, pointwise_ops.IndexOp):
            dim = op.dim.value.data
            known[op.result] = np.arange(shape[dim], dtype=np.int32).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        elif isinstance(op, ConstantOp):
            kind = _element(op.result.type)
            known[op.result] = np.asarray(op.value, value_type(kind))
        else:
            assert isinstance(op, ElementwiseOp)
            operands = [EvaluatedValue(np.atleast_1d(known[value])) for value in op.operands]
            source, result = _element(op.operands[op.row.typed_by].type), _element(op.result.type)
            found = evaluate(op.row, operands, source, result, rounding=op.rounding, fusion=False).x
            known[op.result] = found.reshape(np.broadcast_shapes(*[known[value].shape for value in op.operands]))
    raise AssertionError("a body ends in graph.yield")


def _constant(op: Any, _given: Sequence[Array]) -> list[Array]:
    type = op.result.type
    data = np.frombuffer(op.value.data, np.uint8)
    return [numbers.from_bytes(data, _element(type)).reshape(types.shape_of(type))]


def _map(op: Any, given: Sequence[Array]) -> list[Array]:
    return _scalars(op.body.block, given, op.shape)


def _split(op: Any, given: Sequence[Array], axes: Sequence[int]) -> list[Array]:
    """The operands with the axes in front, as one."""
    rest = [dim for dim in range(given[0].ndim) if dim not in axes]
    shape, count = [given[0].shape[dim] for dim in rest], prod(given[0].shape[dim] for dim in axes)
    return [one.transpose([*axes, *rest]).reshape([count, *shape]) for one in given]


def _reduce(op: Any, given: Sequence[Array]) -> list[Array]:
    axes, type = numbers_of(op.axes), op.operand_types[0]
    if only_row(op.body.block) == "addf":  # exact in float64 as nearly as it can be, rounded once
        return [numbers.round_to(given[0].sum(axis=axes), _element(type))]
    parts = _split(op, given, axes)
    shape, held = parts[0].shape[1:], [part[0] for part in parts]
    for place in range(1, len(parts[0])):
        held = _scalars(op.body.block, [*held, *(part[place] for part in parts)], shape)
    return [np.asarray(one) for one in held]


def _scan(op: Any, given: Sequence[Array]) -> list[Array]:
    (axis,) = numbers_of(op.axes)
    parts = [np.moveaxis(one, axis, 0) for one in given]
    parts = [part[::-1] for part in parts] if op.reverse is not None else parts
    held = [part[0] for part in parts]
    rows = [held]
    for place in range(1, len(parts[0])):
        held = _scalars(op.body.block, [*held, *(part[place] for part in parts)], parts[0].shape[1:])
        rows.append(held)
    found = [np.stack(column) for column in zip(*rows, strict=True)]
    return [np.moveaxis(one[::-1] if op.reverse is not None else one, 0, axis) for one in found]


def only_row(block: Block) -> str | None:
    """The row of the elementwise table that a body of two arguments applies to them and nothing else."""
    first = block.first_op
    if not isinstance(first, ElementwiseOp) or first.next_op is not block.last_op or len(block.args) != 2:
        return None
    given = block.last_op.operands if block.last_op is not None else ()
    return first.row.name if set(first.operands) == set(block.args) and list(given) == [first.result] else None


def _read(source: Array, indices: Sequence[Array], sizes: Sequence[int], outside: Any) -> Array:
    """Elements at the places; `outside` where one is not of the source."""
    inside: Array = np.ones([1] * len(sizes), bool)
    for index, extent in zip(indices, source.shape, strict=True):
        inside = inside & (index >= 0) & (index < extent)
    if not source.size:
        return np.broadcast_to(outside, sizes)
    held = source[tuple(np.clip(index, 0, extent - 1) for index, extent in zip(indices, source.shape, strict=True))]
    return np.broadcast_to(np.where(inside, held, outside), sizes)


def _contract(op: Any, given: Sequence[Array]) -> list[Array]:
    sizes, type = op.extents, op.result.type
    zero = given[0].dtype.type(0)
    sides = [
        _read(array, places(map.data, sizes), sizes, zero) for array, map in zip(given, (op.left_map, op.right_map), strict=True)
    ]
    axes = tuple(range(types.rank_of(type), len(sizes)))
    if types.is_float(type):
        return [numbers.round_to((sides[0] * sides[1]).sum(axis=axes), _element(type))]
    total = (sides[0].astype(np.int64) * sides[1].astype(np.int64)).sum(axis=axes)
    return [numbers.wrap(total, _element(type).bits)]


def _view(op: Any, given: Sequence[Array]) -> list[Array]:
    shape = types.shape_of(op.result.type)
    outside = given[1] if op.pad is not None else given[0].dtype.type(0)
    return [_read(given[0], places(op.map.data, shape), shape, outside)]


def _reshape(op: Any, given: Sequence[Array]) -> list[Array]:
    return [given[0].reshape(types.shape_of(op.result.type))]


def _concat(op: Any, given: Sequence[Array]) -> list[Array]:
    return [np.concatenate(given, op.axis.value.data)]


def _places_with_indices(op: Any, indices: Sequence[Array], shape: Sequence[int]) -> list[Array]:
    found = places(op.map.data, shape)
    for axis, index in zip(numbers_of(op.axes), indices, strict=True):
        found[axis] = index.astype(np.int64)
    return found


def _gather(op: Any, given: Sequence[Array]) -> list[Array]:
    shape, source = types.shape_of(op.result.type), given[0]
    found = _places_with_indices(op, given[1:], shape)
    clamped = tuple(np.clip(index, 0, extent - 1) for index, extent in zip(found, source.shape, strict=True))
    return [np.broadcast_to(source[clamped], shape)]


def _scatter(op: Any, given: Sequence[Array]) -> list[Array]:
    result, updates = given[0].copy(), given[1]
    found = [np.broadcast_to(index, updates.shape) for index in _places_with_indices(op, given[2:], updates.shape)]
    kind = _element(op.result.type)
    for place in np.ndindex(updates.shape):
        where = tuple(int(index[place]) for index in found)
        if not all(0 <= at < extent for at, extent in zip(where, result.shape, strict=True)):
            continue
        pair = [EvaluatedValue(np.atleast_1d(one)) for one in (result[where], updates[place])]
        result[where] = evaluate(ROWS[op.row.data], pair, kind, kind, fusion=False).x[0]
    return [result]


def _sort(op: Any, given: Sequence[Array]) -> list[Array]:
    return [np.sort(given[0], op.axis.value.data)]


def _fused(op: Any, given: Sequence[Array]) -> list[Array]:
    return run_block(op.body.block, given)


_MEANINGS: Mapping[type[Operation], Callable[[Any, Sequence[Array]], list[Array]]] = {
    pointwise_ops.GraphConstantOp: _constant, pointwise_ops.MapOp: _map,
    combining_ops.GraphReduceOp: _reduce, combining_ops.GraphScanOp: _scan, combining_ops.ContractOp: _contract,
    moving_ops.ViewOp: _view, moving_ops.GraphReshapeOp: _reshape, moving_ops.GraphConcatOp: _concat,
    moving_ops.GraphGatherOp: _gather, moving_ops.ScatterOp: _scatter, moving_ops.GraphSortOp: _sort,
    grouping_ops.FusedOp: _fused,
}
