"""Casts between element types by ONNX's rules: rounding to nearest even, overflow that saturates or not, bits taken as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw.api.dtypes import DType, dtype
from tilefw.kernels import formats
from tilefw_onnx.lowerings.node import UNSIGNED_EXPONENT, Node, NodeTensor
from tilefw_onnx.lowerings.text import KernelText, cover, spelled


def cast(node: Node) -> KernelText:
    """Cast and CastLike: the output's element type is that of the test's output."""
    source, out = node.input(0), node.output(0)
    text = KernelText(node)
    cover(text, out.size)
    x = text.load(source, "index", "inside")
    if any(_is_small_float(one) and dtype(other.dtype).is_int for one, other in ((source, out), (out, source))):
        x = f"{x}.to(tl.float32)"
    if source.onnx_type == UNSIGNED_EXPONENT:
        text.add(f"result = {_from_exponent(x)}.to({spelled(out.dtype)})")
    elif out.onnx_type == UNSIGNED_EXPONENT:
        text.add(f"result = functions.exponent_above({x}.to(tl.float32))")
    elif dtype(out.dtype).bits <= 8 and dtype(out.dtype).is_float and not node.attributes.get("saturate", 1):
        text.add(f"result = {_overflowing(x, dtype(out.dtype))}")
    elif 1 < dtype(out.dtype).bits < 8 and dtype(out.dtype).is_int and dtype(source.dtype).is_float:
        # Through a wider integer: ONNX keeps the low bits of the truncated number.
        text.add(f"result = {x}.to(tl.int32).to({spelled(out.dtype)})")
    elif dtype(out.dtype).specials == "finite" and dtype(out.dtype).bits < 8:
        # No code is NaN; ONNX's data has minus zero there, and its text says nothing.
        text.add(f"result = tl.where({x} == {x}, {x}.to(tl.float32), -0.0).to({spelled(out.dtype)})")
    else:
        text.add(f"result = {x}.to({spelled(out.dtype)})")
    text.store(out, "index", "result", "inside")
    return text


def bitcast(node: Node) -> KernelText:
    source, out = node.input(0), node.output(0)
    text = KernelText(node)
    cover(text, out.size)
    x = text.load(source, "index", "inside")
    same = dtype(source.dtype).bits == dtype(out.dtype).bits
    # A bool is one bit in a kernel and a byte in memory.
    text.add(f"result = {x}.to({spelled(out.dtype)}{', bitcast=True' if same else ''})")
    text.store(out, "index", "result", "inside")
    return text


def _is_small_float(tensor: NodeTensor) -> bool:
    """Whether the elements are floats that kernels make integers of, and of integers, by way of float32 alone."""
    return dtype(tensor.dtype).is_float and dtype(tensor.dtype).bits <= 8


def _from_exponent(x: str) -> str:
    """E8M0 is a power of two by fp32's exponent field (OCP MX 1.0, section 5.4.1)."""
    return f"functions.power_of_exponent({x})"


def _overflowing(x: str, kind: DType) -> str:
    """A cast to an 8-bit float whose overflow is infinity, or NaN where the format has none, with the number's sign."""
    top = formats.largest(kind.name)
    # What rounds to the next number beyond the largest, if the format went on: half a unit of its last place above.
    limit = top + top / ((1 << kind.mantissa_bits + 1) - 1 - (kind.specials == "fn")) / 2
    signed = 0 if kind.specials == "fnuz" else 128
    return f"functions.narrowed({x}.to(tl.float32), {spelled(kind.name)}, {limit!r}, {_beyond(kind)}, {signed}, {_nan(kind)})"


def _beyond(kind: DType) -> int:
    """The code of an overflow: infinity (IEEE), the NaN of all ones (`fn`), the only NaN (`fnuz`)."""
    return ((1 << kind.exponent_bits) - 1) << kind.mantissa_bits if kind.specials == "ieee" else _nan(kind)


def _nan(kind: DType) -> int:
    return 0x80 if kind.specials == "fnuz" else 0x7F


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {"Cast": cast, "CastLike": cast, "BitCast": bitcast}
