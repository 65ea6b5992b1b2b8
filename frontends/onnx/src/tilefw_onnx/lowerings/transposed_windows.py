"""Convolutions the other way round (ConvTranspose): each output is made of the inputs whose windows, moved over it, have it.

Input i and tap t go to output i * stride + t * dilation - padding, so an output asks of each tap which input goes there by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from tilefw.api.integers import ceil_div
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import contiguous, next_power_of_2
from tilefw_onnx.lowerings.rows import typed
from tilefw_onnx.lowerings.text import KernelText

_BLOCK = 64


def transposed_convolution(node: Node) -> KernelText:
    """For each batch and group the weights' columns times the inputs that meet each output."""
    source, weight, out = node.input(0), node.input(1), node.output(0)
    groups, taps, space = node.attributes["group"], prod(weight.shape[2:]), prod(out.shape[2:])
    channels, inner = weight.shape[1], weight.shape[0] // groups * taps
    height, width, step = (min(_BLOCK, next_power_of_2(n)) for n in (channels, space, inner))
    columns = ceil_div(space, width)
    grid = (max(1, out.shape[0] * groups) * columns, ceil_div(channels, height), 1)
    text = KernelText(node, grid=grid, elements=height * width)
    total = "tl.float64" if source.dtype == "fp64" else "tl.float32"
    text.add(
        f"part = tl.program_id(0) // {columns}", f"group = part % {groups}",
        f"row = (tl.program_id(1) * {height} + tl.arange(0, {height}))[:, None]",
        f"column = (tl.program_id(0) % {columns} * {width} + tl.arange(0, {width}))[None, :]",
        f"inside = (row < {channels}) & (column < {space})", f"channel = group * {channels} + row",
        f"total = tl.zeros(({height}, {width}), {total})",
    )
    if (bias := node.optional(2)) is not None:
        text.add(f"total += {text.loaded(bias, 'channel', f'row < {channels}')}.to({total})")
    text.add(f"for start in range(0, {inner}, {step}):")
    body = KernelText(node)
    body.add(f"tap = start + tl.arange(0, {step})")
    given = f"(group * {inner // taps} + tap[None, :] // {taps})"
    place = f"{given} * {channels * taps} + row * {taps} + tap[None, :] % {taps}"
    body.add(f"a = {body.loaded(weight, place, f'(row < {channels}) & (tap[None, :] < {inner})', '0')}", "tap = tap[:, None]")
    offset, masks = _met(body, node, taps)
    plane = f"(part * {inner // taps} + tap // {taps}) * {prod(source.shape[2:])}"
    seen = " & ".join([f"(tap < {inner})", f"(column < {space})", *masks])
    body.add(f"b = {body.loaded(source, f'{plane} + {offset}', seen, '0')}")
    body.add('total = tl.dot(a, b, total, input_precision="ieee", out_dtype=total.dtype)')
    text.tensors.update(body.tensors)
    text.add(*(f"    {line}" for line in body.lines))
    text.store(out, f"(part * {channels} + row) * {space} + column", typed(text, out, "total"), "inside")
    return text


def _met(text: KernelText, node: Node, taps: int) -> tuple[str, list[str]]:
    """Write the coordinates of the input that goes to output `column` by `tap`; its offset in space, and where there is one."""
    source, weight, out = (tensor.shape[2:] for tensor in (node.input(0), node.input(1), node.output(0)))
    strides, dilations = (tuple(node.attributes.get(name) or (1,) * len(out)) for name in ("strides", "dilations"))
    before, masks, terms = _before(node), [], []
    for axis, (outs, windows) in enumerate(zip(contiguous(out).dims, contiguous(weight).dims, strict=True)):
        first, tap = f"column // {outs[1]} % {outs[0]}", f"tap % {taps} // {windows[1]} % {windows[0]}"
        text.add(f"moved{axis} = {first} + {before[axis]} - ({tap}) * {dilations[axis]}")
        text.add(f"at{axis} = moved{axis} // {strides[axis]}")
        masks.append(f"(moved{axis} >= 0) & (at{axis} < {source[axis]})")
        if strides[axis] > 1:
            masks.append(f"(moved{axis} % {strides[axis]} == 0)")
        terms.append(f"at{axis} * {contiguous(source).dims[axis][1]}")
    return " + ".join(terms), masks


def _before(node: Node) -> list[int]:
    """The padding before each axis, as ONNX derives it from what the node says of the output."""
    source, taps, out = (tensor.shape[2:] for tensor in (node.input(0), node.input(1), node.output(0)))
    rank, mode = len(out), node.attributes.get("auto_pad", "NOTSET")
    if mode == "VALID" or (mode == "NOTSET" and not node.attributes.get("output_shape")):
        return list((node.attributes.get("pads") or [0] * (2 * rank))[:rank])
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations = (node.attributes.get(name) or ones for name in ("strides", "dilations"))
    extra = node.attributes.get("output_padding") or zeros
    made: list[int] = []
    for axis in range(rank):
        whole = strides[axis] * (source[axis] - 1) + extra[axis] + (taps[axis] - 1) * dilations[axis] + 1 - out[axis]
        made.append(max(0, whole // 2 if mode == "SAME_UPPER" else whole - whole // 2))
    return made


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {"ConvTranspose": transposed_convolution}
