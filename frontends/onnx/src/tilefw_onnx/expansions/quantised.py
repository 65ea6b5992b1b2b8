"""Convolutions of whole numbers: sums in fp64, which holds each of them exactly, then scaled and rounded as onnx defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from tilefw_onnx.expansions.node_writer import NodeWriter

_EXACT = onnx.TensorProto.DOUBLE


def _sum(w: NodeWriter, x: int, weight: int, zeros: tuple[int, int]) -> str:
    """The convolution of what is beyond the zero points."""
    given = [w("Cast", w.input(place), to=_EXACT) for place in (x, weight)]
    for number, place in enumerate(zeros):
        if w.input(place):
            zero = w("Cast", w.input(place), to=_EXACT)
            if number and w.node.input(place).size > 1:  # one for each filter
                zero = w("Reshape", zero, w.integers(-1, *[1] * (len(w.node.input(weight).shape) - 1)))
            elif w.node.input(place).shape:
                zero = w("Reshape", zero, w.constant(np.array([], np.int64)))
            given[number] = w("Sub", given[number], zero)
    asked: dict[str, Any] = {name: value for name, value in w.node.attributes.items() if value != []}
    return w("Conv", *given, **asked)


def integer_convolution(w: NodeWriter) -> None:
    """ConvInteger."""
    w("Cast", _sum(w, 0, 1, (2, 3)), to=onnx.TensorProto.INT32, gives=w.output(0))


def quantised_convolution(w: NodeWriter) -> None:
    """QLinearConv: x, its scale and zero, the same of the filters and of the result, the bias."""
    held, shape = _sum(w, 0, 3, (2, 5)), [-1, *[1] * (len(w.node.input(3).shape) - 2)]
    if w.input(8):
        held = w("Add", held, w("Cast", w("Reshape", w.input(8), w.integers(*shape)), to=_EXACT))
    scale = w("Mul", w.input(1), w.input(4))
    if w.node.input(4).size > 1:
        scale = w("Reshape", scale, w.integers(*shape))
    scaled = w("Mul", w("Cast", held, to=onnx.TensorProto.FLOAT), w("Div", scale, w.input(6)))
    zero = w("Cast", w.input(7), to=onnx.TensorProto.FLOAT)
    kind = w.node.output(0).onnx_type
    bounds = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(kind)))
    limits = (np.array(bound, np.float32) for bound in (bounds.min, bounds.max))
    whole = w("Clip", w("Add", w("Round", scaled), zero), *limits)
    w("Cast", whole, to=onnx.TensorProto.DataType.Value(kind), gives=w.output(0))


EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = {
    "ConvInteger": integer_convolution, "QLinearConv": quantised_convolution,
}
