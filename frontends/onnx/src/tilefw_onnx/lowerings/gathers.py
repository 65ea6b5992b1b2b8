"""Gathers by an index of each element, or by tuples of indices; negative ones count from the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous
from tilefw_onnx.lowerings.text import KernelText, cover

_BLOCK = 1024


def elements(node: Node) -> KernelText:
    """Each element of the output has the coordinates of its own place, but along one axis the index that is there."""
    data, indices, out = node.input(0), node.input(1), node.output(0)
    axis = axis_of(node.attributes["axis"], len(data.shape))
    require_within(indices, data.shape[axis])
    strides = [stride for _, stride in contiguous(data.shape).dims]
    around = View(tuple((n, 0 if dim == axis else strides[dim]) for dim, n in enumerate(out.shape)))
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    _position(text, node, "position", "index", data.shape[axis])
    place = f"{around.offset('index')} + position * {strides[axis]}"
    text.store(out, "index", text.loaded(data, place, "inside"), "inside")
    assert indices.shape == out.shape
    return text


def tuples(node: Node) -> KernelText:
    """Each tuple of the last axis of the indices names a part of the data, behind the axes that both have (`batch_dims`)."""
    data, indices, out = node.input(0), node.input(1), node.output(0)
    batches, length = node.attributes["batch_dims"], indices.shape[-1]
    rest = prod(data.shape[batches + length :])
    several = prod(indices.shape[batches:-1])
    strides = [stride for _, stride in contiguous(data.shape).dims]
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    text.add(f"tuple_number = index // {rest}")
    terms = [f"(tuple_number // {several}) * {prod(data.shape[batches:])}", f"index % {rest}"]
    for number in range(length):
        _position(text, node, f"position{number}", f"tuple_number * {length} + {number}", data.shape[batches + number])
        terms.append(f"position{number} * {strides[batches + number]}")
    text.store(out, "index", text.loaded(data, " + ".join(terms), "inside"), "inside")
    return text


def require_within(indices: NodeTensor, extent: int) -> None:
    """Raise ValueError where an index that is known before the kernel runs names none of so many elements."""
    known = indices.array
    if known is not None and known.size and not -extent <= int(known.min()) <= int(known.max()) < extent:
        raise ValueError(f"{indices.name} has an index that none of {extent} elements has")


def _position(text: KernelText, node: Node, name: str, place: str, extent: int) -> None:
    """Load an index, counted from the front."""
    text.add(f"{name} = {text.loaded(node.input(1), place, 'inside', '0')}")
    text.add(f"{name} = tl.where({name} < 0, {name} + {extent}, {name})")
    text.require(f"({name} >= 0) & ({name} < {extent})", "inside")


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {"GatherElements": elements, "GatherND": tuples}
