"""Operators whose elements depend on where they stand: triangles of matrices, one-hot vectors, and channels that become space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from tilefw_onnx.lowerings.layout import viewed
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import View, axis_of, contiguous
from tilefw_onnx.lowerings.rows import typed
from tilefw_onnx.lowerings.text import KernelText, cover

_BLOCK = 1024


def triangle(node: Node) -> KernelText:
    """What lies on one side of a diagonal; the rest is zero."""
    out, diagonal = node.output(0), node.optional(1)
    rows, columns = out.shape[-2:]
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    text.add(f"over = index % {columns} - index // {columns} % {rows}")
    text.add(f"diagonal = {'0' if diagonal is None else text.loaded(diagonal, '0')}")
    text.add(f"kept = over {'>=' if node.attributes['upper'] else '<='} diagonal")
    text.store(out, "index", text.loaded(node.input(0), "index", "inside & kept", "0"), "inside")
    return text


def one_hot(node: Node) -> KernelText:
    """The second of two values where the axis' coordinate is the index, which counts from the end where it is negative."""
    indices, (depth,), values, out = node.input(0), node.input(1).integers(), node.input(2), node.output(0)
    axis = axis_of(node.attributes["axis"], len(out.shape))
    inner = prod(out.shape[axis + 1 :])
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    text.add(f"index_of = {text.loaded(indices, f'index // {depth * inner} * {inner} + index % {inner}', 'inside')}.to(tl.int64)")
    text.add(
        f"index_of = tl.where(index_of < 0, index_of + {depth}, index_of)", f"hot = index_of == index // {inner} % {depth}",
        f"off = {text.loaded(values, '0')}", f"on = {text.loaded(values, '1')}",
    )
    text.store(out, "index", typed(text, out, "tl.where(hot, on, off)"), "inside")
    return text


def _to_space(node: Node) -> View:
    """Blocks of channels become blocks of space, the channels of a block outermost (DCR) or innermost (CRD)."""
    samples, channels, height, width = node.input(0).shape
    block = node.attributes["blocksize"]
    depth = channels // block**2
    if node.attributes["mode"] == "DCR":
        return contiguous((samples, block, block, depth, height, width)).take((0, 3, 4, 1, 5, 2))
    return contiguous((samples, depth, block, block, height, width)).take((0, 1, 4, 2, 5, 3))


def _to_depth(node: Node) -> View:
    samples, channels, height, width = node.input(0).shape
    block = node.attributes["blocksize"]
    order = (0, 3, 5, 1, 2, 4) if node.attributes.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return contiguous((samples, channels, height // block, block, width // block, block)).take(order)


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "Trilu": triangle, "OneHot": one_hot, "DepthToSpace": viewed(_to_space), "SpaceToDepth": viewed(_to_depth),
}
