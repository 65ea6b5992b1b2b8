"""PyTorch's operators that move elements or make them of nothing, as ops of the graph dialect; rules as in exported_ops.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.kernels.formats import array_dtype
from tilefw_torch.exported_ops import as_tensor, cast, filled
from tilefw_torch.exported_tensor import ExportedTensor, Rule, element_type


def _reshaped(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, *_: Any, **__: Any) -> GraphValue:
    return b.reshape(x, out.shape)


def _same(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, *_: Any, **__: Any) -> GraphValue:
    return x


def _permuted(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, order: Sequence[int]) -> GraphValue:
    return b.transpose(x, [axis % len(out.shape) for axis in order])


def _expanded(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, _sizes: Sequence[int], **_: Any) -> GraphValue:
    return b.broadcast(x, out.shape)


def _repeated(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, times: Sequence[int]) -> GraphValue:
    own = (*[1] * (len(times) - len(shape_of(x))), *shape_of(x))
    paired = [extent for pair in zip([1] * len(own), own, strict=True) for extent in pair]
    wanted = [extent for pair in zip(times, own, strict=True) for extent in pair]
    return b.reshape(b.broadcast(b.reshape(x, paired), wanted), out.shape)


def _sliced(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> GraphValue:
    own, axis = shape_of(x), axis % len(out.shape)
    begin, _, _ = slice(start, end, step).indices(own[axis])
    starts, steps = [0] * len(own), [1] * len(own)
    starts[axis], steps[axis] = begin, step
    return b.slice(x, starts, out.shape, steps)


def _selected(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, place: int) -> GraphValue:
    own = shape_of(x)
    axis %= len(own)
    starts = [place % own[axis] if k == axis else 0 for k in range(len(own))]
    return b.reshape(b.slice(x, starts, [1 if k == axis else extent for k, extent in enumerate(own)]), out.shape)


def _parts(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, sizes: Sequence[int], axis: int = 0) -> list[GraphValue]:
    own, begin, made = shape_of(x), 0, []
    axis %= len(own)
    for size in sizes:
        starts = [begin if k == axis else 0 for k in range(len(own))]
        made.append(b.slice(x, starts, [size if k == axis else extent for k, extent in enumerate(own)]))
        begin += size
    return made


def _turned(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axes: Sequence[int]) -> GraphValue:
    turned = {axis % len(out.shape) for axis in axes} if out.shape else set[int]()
    starts = [extent - 1 if axis in turned else 0 for axis, extent in enumerate(out.shape)]
    return b.slice(x, starts, out.shape, [-1 if axis in turned else 1 for axis in range(len(out.shape))])


def _joined(b: ModuleBuilder, out: ExportedTensor, parts: Sequence[GraphValue], axis: int = 0) -> GraphValue:
    # A part without elements may have any rank.
    held = [cast(b, part, out.dtype) for part in parts if prod(shape_of(part))]
    if not held:
        return filled(b, 0, out)
    return held[0] if len(held) == 1 else b.concat(held, axis % len(out.shape))


def _padded(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, pads: Sequence[int], value: float = 0) -> GraphValue:
    rank = len(out.shape)
    before, behind = [0] * rank, [0] * rank
    for k in range(len(pads) // 2):
        before[rank - 1 - k], behind[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    return b.pad(x, before, behind, value)


def counted_from_the_first(b: ModuleBuilder, indices: GraphValue, extent: int) -> GraphValue:
    """Places counted from the first; negative ones count from the end."""
    return b.map("select", b.map("lts", indices, 0), b.map("addi", indices, extent), indices)


def _embedded(b: ModuleBuilder, out: ExportedTensor, table: GraphValue, indices: GraphValue, *_: Any, **__: Any) -> GraphValue:
    return b.take(table, indices, 0, trusted=True)


def _taken(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, indices: GraphValue) -> GraphValue:
    axis %= len(shape_of(x))
    taken = b.take(x, counted_from_the_first(b, indices, shape_of(x)[axis]), axis, trusted=True)
    return b.reshape(taken, out.shape)  # one index alone keeps the axis


def _indexed(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, indices: Sequence[GraphValue | None]) -> GraphValue:
    """Index tensors along neighbouring axes, whose dims stand in the place of these."""
    own, axes = shape_of(x), [k for k, one in enumerate(indices) if one is not None]
    first, count = axes[0], len(axes)
    if axes != list(range(first, first + count)):
        raise NotImplementedError("indices along axes that are not neighbours")
    given = [one for one in indices if one is not None]
    if any(element_type(one) == "int1" for one in given):
        raise NotImplementedError("indices that are truth values")
    shape = np.broadcast_shapes(*map(shape_of, given))
    dims = len(out.shape)
    spread = linear_map([[int(d == first + k) for d in range(dims)] for k in range(len(shape))], [0] * len(shape), dims)
    counted = [b.broadcast(counted_from_the_first(b, one, own[axis]), shape) for one, axis in zip(given, axes, strict=True)]
    held = [b.view(one, spread, out.shape) for one in counted]
    place = [k if k < first else k - count + len(shape) for k in range(len(own))]
    rows = [[int(k not in axes and d == place[k]) for d in range(dims)] for k in range(len(own))]
    return b.gather(x, held, axes, linear_map(rows, [0] * len(own), dims), trusted=True)


def _full(b: ModuleBuilder, out: ExportedTensor, _sizes: Any, value: float, **_: Any) -> GraphValue:
    return filled(b, value, out)


def _copied(b: ModuleBuilder, out: ExportedTensor, _written: GraphValue, x: GraphValue, *_: Any) -> GraphValue:
    return b.broadcast(cast(b, x, out.dtype), out.shape)


def _empty(b: ModuleBuilder, out: ExportedTensor, *_: Any, **__: Any) -> GraphValue:
    """What nobody may rely on: zeros."""
    return filled(b, 0, out)


def _scalar(b: ModuleBuilder, out: ExportedTensor, value: float, **_: Any) -> GraphValue:
    return as_tensor(b, value, out)


def _range(b: ModuleBuilder, out: ExportedTensor, start: float, _end: float, step: float = 1, **_: Any) -> GraphValue:
    return b.constant((start + step * np.arange(out.shape[0])).astype(array_dtype(out.dtype)), out.dtype)


def strided(
    b: ModuleBuilder, out: ExportedTensor, source: Any, x: GraphValue, _sizes: Any, strides: Sequence[int],
    offset: int | None = None,
) -> GraphValue:
    """`as_strided`: elements by their places in the memory of `source`, the tensor that `x` stands for."""
    own, dims = shape_of(x), len(out.shape)
    order = sorted(range(len(own)), key=lambda dim: (-source.stride(dim), dim))
    whole = b.reshape(b.transpose(x, order), (prod(own),))
    laid_out = source.permute(*order).is_contiguous() if own else True
    if not laid_out or source.storage_offset() or source.untyped_storage().nbytes() != prod(own) * source.element_size():
        raise NotImplementedError("as_strided of a tensor that is a part of its memory")
    return b.view(whole, linear_map([list(strides)], [offset or 0], dims), out.shape)


RULES: Mapping[str, Rule] = {
    "view.default": _reshaped, "_unsafe_view.default": _reshaped, "reshape.default": _reshaped, "unsqueeze.default": _reshaped,
    "squeeze.dims": _reshaped, "squeeze.dim": _reshaped, "squeeze.default": _reshaped, "clone.default": _same,
    "alias.default": _same, "detach.default": _same, "lift_fresh_copy.default": _same, "permute.default": _permuted,
    "expand.default": _expanded, "repeat.default": _repeated, "slice.Tensor": _sliced, "select.int": _selected,
    "split_with_sizes.default": _parts, "cat.default": _joined, "flip.default": _turned, "constant_pad_nd.default": _padded,
    "embedding.default": _embedded, "index_select.default": _taken, "index.Tensor": _indexed,
    "copy.default": _copied, "empty.memory_format": _empty, "empty_permuted.default": _empty,
    "full.default": _full, "full_like.default": _full, "scalar_tensor.default": _scalar, "arange.start_step": _range,
}
