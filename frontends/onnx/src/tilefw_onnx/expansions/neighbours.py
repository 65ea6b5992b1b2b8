"""Operators on elements beside each other: sums over neighbouring channels, sequences turned around."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from tilefw_onnx.expansions.node_writer import NodeWriter


def local_response(w: NodeWriter) -> None:
    """LRN: x / (bias + alpha / size · sum of squares of the `size` channels around)^beta."""
    (batch, channels, *space), asked = w.node.input(0).shape, w.node.attributes
    size = asked["size"]
    square = w("Reshape", w("Mul", w.input(0), w.input(0)), w.integers(batch, 1, channels, prod(space)))
    before = (size - 1) // 2
    pads = [before, 0, size - 1 - before, 0]
    mean = w("AveragePool", square, kernel_shape=[size, 1], pads=pads, count_include_pad=1)  # of `size` squares, some of them zero
    mean = w("Reshape", mean, w.integers(batch, channels, *space))
    below = w("Pow", w("Add", w("Mul", mean, w.number(asked["alpha"])), w.number(asked["bias"])), w.number(asked["beta"]))
    w("Div", w.input(0), below, gives=w.output(0))


def reversed_sequences(w: NodeWriter) -> None:
    """ReverseSequence: of each sequence of the batch the first elements, as many as are asked for, in the other order."""
    shape, time, batch = w.node.input(0).shape, w.node.attributes["time_axis"], w.node.attributes["batch_axis"]
    rank = len(shape)
    place = w.constant(np.arange(shape[time]).reshape([-1 if dim == time else 1 for dim in range(rank)]))
    length = w("Reshape", w.input(1), w.integers(*[-1 if dim == batch else 1 for dim in range(rank)]))
    turned = w("Sub", w("Sub", length, np.array(1)), place)
    index = w("Where", w("Less", place, length), turned, place)
    w("GatherElements", w.input(0), w("Expand", index, w.integers(*shape)), axis=time, gives=w.output(0))


EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = {"LRN": local_response, "ReverseSequence": reversed_sequences}
