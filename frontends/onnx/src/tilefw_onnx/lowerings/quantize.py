"""Quantisation: numbers over a scale and plus a zero point, of the whole array, of an axis or of blocks along it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous, next_power_of_2
from tilefw_onnx.lowerings.text import KernelText, clipped, cover, spelled


def quantize(node: Node) -> KernelText:
    """x / scale, rounded to even for integers, plus the zero point, saturated."""
    source, out = node.input(0), node.output(0)
    text = KernelText(node)
    cover(text, out.size)
    x = text.load(source, "index", "inside", wide=True)
    text.add(f"ratio = tl.div_rn({x}, {_parameter(node, text, node.input(1))})")
    zero = node.optional(2)
    shift = _parameter(node, text, zero) if zero is not None else None
    if dtype(out.dtype).is_float:
        text.add(f"result = {'ratio' if shift is None else f'ratio + {shift}'}")
    else:
        shifted = "libdevice.rint(ratio).to(tl.int32)" + (f" + {shift}.to(tl.int32)" if shift else "")
        text.add(f"result = {clipped(shifted, out.dtype)}")
    text.store(out, "index", f"result.to({spelled(out.dtype)})", "inside")
    return text


def dequantize(node: Node) -> KernelText:
    """(x - zero point) · scale."""
    source, out = node.input(0), node.output(0)
    text = KernelText(node)
    cover(text, out.size)
    x = text.load(source, "index", "inside", wide=True)
    zero = node.optional(2)
    whole = x if dtype(source.dtype).is_float else f"{x}.to(tl.int32)"
    if zero is not None:
        shift = _parameter(node, text, zero)
        whole = f"({whole} - {shift if dtype(zero.dtype).is_float else f'{shift}.to(tl.int32)'})"
    text.add(f"result = {whole}.to(tl.float32) * {_parameter(node, text, node.input(1))}")
    text.store(out, "index", f"result.to({spelled(out.dtype)})", "inside")
    return text


def dynamic(node: Node) -> KernelText:
    """uint8 with scale and zero point from the array's own range, which is made to contain 0 (onnx/defs/quantization)."""
    source, out, scale, zero = node.input(0), node.output(0), node.output(1), node.output(2)
    width = next_power_of_2(source.size)
    text = KernelText(node, elements=width)
    text.add(f"index = tl.arange(0, {width})", f"inside = index < {source.size}")
    x = text.load(source, "index", "inside", "0.0")  # zeros do not widen a range that contains 0
    text.add(
        f"low = tl.minimum(tl.min({x}, axis=0), 0.0)",
        f"high = tl.maximum(tl.max({x}, axis=0), 0.0)",
        "scale = tl.div_rn(tl.where(high == low, 1.0, high - low), 255.0)",
        "zero = libdevice.rint(tl.minimum(tl.maximum(0.0 - tl.div_rn(low, scale), 0.0), 255.0))",
        f"result = tl.minimum(tl.maximum(libdevice.rint(tl.div_rn({x}, scale)) + zero, 0.0), 255.0)",
    )
    text.store(out, "index", "result.to(tl.int32).to(tl.uint8)", "inside")
    text.store(scale, "0", "scale")
    text.store(zero, "0", "zero.to(tl.int32).to(tl.uint8)")
    return text


def _parameter(node: Node, text: KernelText, tensor: NodeTensor) -> str:
    """The scale or zero point of each element, loaded; floats as fp32."""
    offset = _spread(node, tensor).offset("index")
    name = text.variable(tensor)
    text.add(f"{name} = {text.loaded(tensor, offset, 'inside', wide=True)}")
    return name


def _spread(node: Node, tensor: NodeTensor) -> View:
    """A scale over the first input: one for all, one for each place of an axis, or one for each block along it."""
    shape = node.input(0).shape
    if tensor.size == 1:
        return View(tuple((extent, 0) for extent in shape))
    axis, size = axis_of(node.attributes["axis"], len(shape)), node.attributes.get("block_size", 0)
    if not size:
        return View(tuple((extent, int(dim == axis)) for dim, extent in enumerate(shape)))
    if shape[axis] != tensor.shape[axis] * size:
        note = f"axis {axis} has {shape[axis]} elements, in blocks of {size}"
        raise UnsupportedError(f"{node.operator} with a last block that is not whole", code="TFW0992", note=note)
    dims = contiguous(tensor.shape).dims
    return View((*dims[: axis + 1], (size, 0), *dims[axis + 1 :]))


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamic,
}
