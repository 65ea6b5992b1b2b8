"""Reductions, scans and dots of tiles: by one row a `Reduce`, by any other function levels of elementwise operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.api import DTYPES
from tilefw.api.ir import Block, CombineOp, ConstantOp, DotOp, ElementwiseOp, ReduceOp, ScanOp, SSAValue, types
from tilefw_spatial.graph import Axis, Dot, Reduce, ReductionKind, Value
from tilefw_spatial.lower.arithmetic import apply
from tilefw_spatial.lower.constant_tile import ConstantTile, iota, splat
from tilefw_spatial.lower.shapes import taken_along
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.tiles import Data, Entry

KINDS = {kind.value: kind for kind in ReductionKind}
_INT32 = DTYPES["int32"]


def reduced(state: State, op: ReduceOp) -> list[Entry]:
    """A reduction: along the axis of the data where one row combines, else by halves, neighbours first, so that order is kept."""
    entries = [state.values[operand] for operand in op.operands]
    if op.row in KINDS and isinstance(entry := entries[0], Data) and (axis := state.dim_axis(entry, op.axis)) is not None:
        dims = (*entry.dims[: op.axis], *entry.dims[op.axis + 1 :])
        shape = (*entry.shape[: op.axis], *entry.shape[op.axis + 1 :])
        rest = [other for other in state.axes.all(entry.value.axes) if other is not axis]
        value = state.made(Reduce(KINDS[op.row], entry.value, (axis,)), rest, entry.dtype)
        return [Data(value, dims, shape)]
    while (extent := entries[0].shape[op.axis]) > 1:
        pair = (np.arange(0, extent, 2), np.arange(1, extent, 2))  # dims of tiles are powers of two
        left, right = ([taken_along(state, entry, op.axis, index) for entry in entries] for index in pair)
        entries = called(state, op, left, right)
    return [taken_along(state, entry, op.axis, np.asarray([0]), drop=True) for entry in entries]


def scanned(state: State, op: ScanOp) -> list[Entry]:
    """A scan: in each of log2(n) levels an element takes up the results 1, 2, 4, … before it (Kogge and Stone 1973)."""
    entries = [state.values[operand] for operand in op.operands]
    extent, distance = op.extent, 1
    index = np.arange(extent)
    position = iota(_INT32, entries[0].shape, op.axis, extent)
    while distance < extent:
        if op.reverse:
            moved, limit = np.minimum(index + distance, extent - 1), ("lts", extent - distance)
        else:
            moved, limit = np.maximum(index - distance, 0), ("ges", distance)
        mask = apply(limit[0], [position, splat(limit[1], _INT32, position.shape)], DTYPES["int1"])
        before = [taken_along(state, entry, op.axis, moved) for entry in entries]
        combined = called(state, op, before, entries)
        entries = [
            state.elementwise("select", [mask, new, old], types.dtype_of(result.type))
            for new, old, result in zip(combined, entries, op.results, strict=True)
        ]
        distance *= 2
    return entries


def called(state: State, op: CombineOp, left: Sequence[Entry], right: Sequence[Entry]) -> list[Entry]:
    """The combine function on tiles."""
    block: Block = op.combine
    shape = left[0].shape
    values: dict[SSAValue, Entry] = dict(zip(block.args, (*left, *right), strict=True))
    for inner in block.ops:
        if isinstance(inner, ConstantOp):
            values[inner.results[0]] = splat(inner.value, types.dtype_of(inner.results[0].type), shape)
        elif isinstance(inner, ElementwiseOp):
            dtype = types.dtype_of(inner.result.type)
            values[inner.result] = state.elementwise(inner.row.name, [values[v] for v in inner.operands], dtype, inner.rounding)
    last = block.last_op
    assert last is not None
    return [values[value] for value in last.operands]


def product(state: State, op: DotOp) -> Entry:
    """A product of matrices."""
    value, target = multiplied(state, op, state.values[op.a], state.values[op.b], state.values[op.acc])
    return state.data(value, target, types.shape_of(op.results[0].type))


def multiplied(
    state: State, op: DotOp, a: Entry, b: Entry, acc: Entry | None, loop: tuple[Axis, ...] = ()
) -> tuple[Value, tuple[Axis | None, ...]]:
    """a · b + acc as one array and its dims' axes; sums run along the loop's axes too. No `acc`: nothing is added."""
    rank = len(a.shape)
    batch, (m, k, n) = (a.shape[0],) * (rank - 2), (a.shape[-2], a.shape[-1], b.shape[-1])
    # All three are put in one space of dims: batch, m, k, n; each lacks one of the last three.
    whole = (*batch, m, k, n)
    base = rank - 2
    parts = [_in_space(a, (*range(base), base, base + 1), whole), _in_space(b, (*range(base), base + 1, base + 2), whole)]
    if acc is not None and isinstance(acc, ConstantTile) and acc.number == 0:
        acc = None
    if acc is not None:
        parts.append(_in_space(acc, (*range(base), base, base + 2), whole))
    target = state.aligned(parts)
    values = [state.value(part, target) for part in parts]
    inner = target[base + 1] or (None if k == 1 else state.fresh(k))  # neither changes along k: the sum is k times a product
    contracted = (*loop, *(() if inner is None else (inner,)))
    free = dict.fromkeys(axis for value in values for axis in state.axes.all(value.axes) if axis not in contracted)
    accumulator = values[2] if acc is not None else None
    dot = Dot(values[0], values[1], contracted, accumulator, op.input_precision, op.unsigned)
    dtype = types.dtype_of(op.results[0].type)
    return state.made(dot, tuple(free), dtype), (*target[:base], target[base], target[base + 2])


def _in_space(entry: Entry, dims: Sequence[int], shape: tuple[int, ...]) -> Entry:
    """The entry in a space of more dims, where its own are number `dims`."""
    if isinstance(entry, Data):
        axes_of_dims: list[Axis | None] = [None] * len(shape)
        for old, new in enumerate(dims):
            axes_of_dims[new] = entry.dims[old]
        return Data(entry.value, tuple(axes_of_dims), shape)
    assert isinstance(entry, ConstantTile)
    return entry.renamed(dict(enumerate(dims)), shape)
