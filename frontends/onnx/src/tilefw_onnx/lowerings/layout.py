"""Operators that only move elements: each output is a view of an input, or of several parts, and the kernel copies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod

from tilefw.api.integers import ceil_div
from tilefw_onnx.lowerings.gathers import require_within
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous
from tilefw_onnx.lowerings.text import KernelText, cover

_BLOCK = 1024


def viewed(view: Callable[[Node], View]) -> Callable[[Node], KernelText]:
    """The lowering of an operator whose output is `view` of its first input."""

    def lower(node: Node) -> KernelText:
        text = KernelText(node)
        copy(text, node.input(0), view(node), node.output(0), contiguous(node.output(0).shape))
        return text

    return lower


def copy(text: KernelText, source: NodeTensor, read: View, result: NodeTensor, written: View) -> None:
    """Copy all elements of `read` to those of `written`, in order; both have as many. A part without elements takes no line."""
    if not written.size:
        return
    cover(text, written.size, _BLOCK)
    text.add(f"moved = {text.loaded(source, read.offset('index'), 'inside')}")
    text.store(result, written.offset("index"), "moved", "inside")


def _same(node: Node) -> View:
    """The elements in the order in which they lie: only the shape is another."""
    return contiguous(node.output(0).shape)


def _transposed(node: Node) -> View:
    view = contiguous(node.input(0).shape)
    return view.take(node.attributes.get("perm", range(len(view.dims))[::-1]))


def _expanded(node: Node) -> View:
    return contiguous(node.input(0).shape).broadcast(node.output(0).shape)


def _tiled(node: Node) -> View:
    """Each dim repeated: a dim of stride 0 before it."""
    view, counts = contiguous(node.input(0).shape), node.input(1).integers()
    return View(tuple(dim for count, own in zip(counts, view.dims, strict=True) for dim in ((count, 0), own)))


def _sliced(node: Node) -> View:
    """`starts`, `ends`, `axes` and `steps` by the rules of Python's slices, which ONNX's are."""
    view, rank = contiguous(node.input(0).shape), len(node.input(0).shape)
    starts, ends = node.input(1).integers(), node.input(2).integers()
    axes, steps = node.optional(3), node.optional(4)
    named = axes.integers() if axes else tuple(range(len(starts)))
    strides = steps.integers() if steps else (1,) * len(starts)
    dims, first = list(view.dims), 0
    for axis, start, end, step in zip(named, starts, ends, strides, strict=True):
        extent, stride = view.dims[axis_of(axis, rank)]
        taken = range(*slice(start, end if end >= -extent or step > 0 else None, step).indices(extent))
        dims[axis_of(axis, rank)] = (len(taken), stride * step)
        first += taken.start * stride
    return View(tuple(dims), first)


def concat(node: Node) -> KernelText:
    """Each input copied to its part of the output."""
    text, out = KernelText(node), node.output(0)
    axis = axis_of(node.attributes["axis"], len(out.shape))
    for tensor, part in zip(node.given(), _parts(out.shape, axis, [t.shape[axis] for t in node.given()]), strict=True):
        copy(text, tensor, contiguous(tensor.shape), out, part)
    text.grid = _grid(node.given())
    return text


def split(node: Node) -> KernelText:
    """Each output copied from its part of the input."""
    text, source = KernelText(node), node.input(0)
    axis = axis_of(node.attributes["axis"], len(source.shape))
    for result, part in zip(node.outputs, _parts(source.shape, axis, _extents(node, source.shape[axis])), strict=True):
        if result is not None:
            copy(text, source, part, result, contiguous(result.shape))
    text.grid = _grid([tensor for tensor in node.outputs if tensor is not None])
    return text


def _extents(node: Node, extent: int) -> Sequence[int]:
    """Of each output along the axis, also of one that is left out; without sizes all are alike, but the last may be smaller."""
    sizes, count = node.optional(1), len(node.outputs)
    if sizes is not None:
        return sizes.integers()
    part = ceil_div(extent, node.attributes.get("num_outputs", count))
    return [max(0, min(part, extent - number * part)) for number in range(count)]


def gather(node: Node) -> KernelText:
    """Slices of the input along an axis, as the indices say, which the kernel reads; negative ones count from the end."""
    data, indices, out = node.input(0), node.input(1), node.output(0)
    axis = axis_of(node.attributes["axis"], len(data.shape))
    extent, inner = data.shape[axis], prod(data.shape[axis + 1 :])
    require_within(indices, extent)
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    outer = View(((prod(data.shape[:axis]), extent * inner), (indices.size, 0), (inner, 1))).offset("index")
    position = View(((prod(data.shape[:axis]), 0), (indices.size, 1), (inner, 0))).offset("index")
    text.add(f"position = {text.loaded(indices, position, 'inside', '0')}")
    text.add(f"position = tl.where(position < 0, position + {extent}, position)")
    text.require(f"(position >= 0) & (position < {extent})", "inside")
    text.add(f"moved = {text.loaded(data, f'{outer} + position * {inner}', 'inside')}")
    text.store(out, "index", "moved", "inside")
    return text


def _parts(shape: Sequence[int], axis: int, extents: Sequence[int]) -> list[View]:
    """Views of an array's consecutive parts along `axis`."""
    whole = contiguous(shape)
    stride = whole.dims[axis][1]
    starts = [0, *accumulate(extents)][:-1]
    return [
        View((*whole.dims[:axis], (extent, stride), *whole.dims[axis + 1 :]), start * stride)
        for start, extent in zip(starts, extents, strict=True)
    ]


def _grid(tensors: Sequence[NodeTensor]) -> tuple[int, int, int]:
    """As many programs as the largest part needs."""
    return (max([1, *(ceil_div(tensor.size, _BLOCK) for tensor in tensors)]), 1, 1)


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "Reshape": viewed(_same), "Squeeze": viewed(_same), "Unsqueeze": viewed(_same),
    "Transpose": viewed(_transposed), "Expand": viewed(_expanded), "Tile": viewed(_tiled), "Slice": viewed(_sliced),
    "Concat": concat, "Split": split, "Gather": gather,
}
