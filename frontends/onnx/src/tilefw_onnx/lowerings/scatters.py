"""Scatters, written as gathers: each element of the output looks for the updates that go to it, in their order.

Programs that scatter would write the same elements in no order; one that looks has no race, and of several updates the last counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.gathers import require_within
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import axis_of, contiguous
from tilefw_onnx.lowerings.rows import typed
from tilefw_onnx.lowerings.text import WIDE, KernelText, cover

_BLOCK = 1024
_MOST_UPDATES = 1 << 14  # that each element looks at
_COMBINED: Mapping[str, str] = {
    "none": "{update}", "add": "result + {update}", "mul": "result * {update}", "max": "tl.maximum(result, {update})",
    "min": "tl.minimum(result, {update})",
}


def elements(node: Node) -> KernelText:
    """Updates along one axis: element `at` of the indices says where along the axis the update of its own place goes."""
    data, indices, out = node.input(0), node.input(1), node.output(0)
    rank = len(data.shape)
    axis = axis_of(node.attributes["axis"], rank)
    text = _begin(node, indices.shape[axis])
    seen, base = ["inside"], []
    dims = [stride for _, stride in contiguous(out.shape).dims]
    strides = [stride for _, stride in contiguous(indices.shape).dims]
    for number, (extent, stride) in enumerate(zip(out.shape, dims, strict=True)):
        text.add(f"at{number} = index // {stride} % {extent}")
        if number != axis:
            base.append(f"at{number} * {strides[number]}")
            seen += [f"(at{number} < {indices.shape[number]})"] if indices.shape[number] < extent else []
    text.add(f"base = {' + '.join(base) or '0 * index'}", f"seen = {' & '.join(seen)}")
    text.add(f"for update in range({indices.shape[axis]}):")
    body = KernelText(node)
    body.add(f"place = base + update * {strides[axis]}", f"position = {body.loaded(indices, 'place', 'seen', '-1')}")
    body.add(f"position = tl.where(position < 0, position + {out.shape[axis]}, position)")
    body.add(f"lost |= seen & {_names_none('position', out.shape[axis])}", f"meant = seen & (position == at{axis})")
    return _end(node, text, body, "place")


def tuples(node: Node) -> KernelText:
    """Each tuple of the indices names a part of the output, which its update replaces."""
    indices, out = node.input(1), node.output(0)
    length = indices.shape[-1]
    part, count = prod(out.shape[length:]), prod(indices.shape[:-1])
    text = _begin(node, count)
    text.add(f"part = index // {part}", f"within = index % {part}", f"for update in range({count}):")
    body = KernelText(node)
    terms: list[str] = []
    for number in range(length):
        loaded = body.loaded(indices, f"update * {length} + {number}")
        body.add(f"position{number} = {loaded}")
        extent = out.shape[number]
        body.add(f"position{number} = tl.where(position{number} < 0, position{number} + {extent}, position{number})")
        body.add(f"lost |= {_names_none(f'position{number}', extent)}")
        terms.append(f"position{number} * {prod(out.shape[number + 1 : length])}")
    body.add(f"meant = inside & (part == {' + '.join(terms) or '0'})")
    return _end(node, text, body, f"(update * {part} + within)")


def require_targets(node: Node) -> None:
    """Raise ValueError where an index that is known before the kernel runs names no element."""
    indices, shape = node.input(1), node.input(0).shape
    if node.operator != "ScatterND":
        require_within(indices, shape[axis_of(node.attributes["axis"], len(shape))])
    elif indices.array is not None:
        for number in range(indices.shape[-1]):
            require_within(replace(indices, array=indices.array[..., number]), shape[number])


def _begin(node: Node, updates: int) -> KernelText:
    require_targets(node)
    if updates > _MOST_UPDATES:
        note = f"each element of the output would look at {updates:,} updates; at most {_MOST_UPDATES:,} are looked at"
        raise UnsupportedError(f"{node.operator} with so many updates", code="TFW0992", note=note)
    text = KernelText(node)
    cover(text, node.output(0).size, _BLOCK)
    text.add("lost = index < 0")  # by updates that go to no element: none so far
    text.add(f"result = {text.loaded(node.input(0), 'index', 'inside')}{_wide(node)}")
    return text


def _end(node: Node, text: KernelText, body: KernelText, place: str) -> KernelText:
    """Each update that is meant, combined with what is there."""
    out = node.output(0)
    combined = _COMBINED[node.attributes.get("reduction", "none")].format(update="value")
    body.add(f"value = {body.loaded(node.input(2), place, 'meant', 'False' if out.dtype == 'int1' else '0')}{_wide(node)}")
    body.add(f"result = tl.where(meant, {combined}, result)")
    text.tensors.update(body.tensors)
    text.add(*(f"    {line}" for line in body.lines))
    text.require("lost == 0")
    text.store(out, "index", typed(text, out, "result"), "inside")
    return text


def _names_none(position: str, extent: int) -> str:
    """Whether no element has an index, which is counted from the front."""
    return f"(({position} < 0) | ({position} >= {extent}))"


def _wide(node: Node) -> str:
    """16-bit floats are combined in fp32, and only moved as they are."""
    combines = node.attributes.get("reduction", "none") != "none"
    return ".to(tl.float32)" if combines and node.output(0).dtype in WIDE else ""


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "ScatterElements": elements, "Scatter": elements, "ScatterND": tuples,
}
