"""Softmax and its kin, and the normalisations: values of a row by what the row has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous
from tilefw_onnx.lowerings.rows import RowView, rows_of, typed
from tilefw_onnx.lowerings.text import KernelText

_INFINITE = "float('-inf')"

# By operator: the value of an element `{x}` of a row, and what is loaded beyond the row's end.
_ALONG_AXIS: Mapping[str, tuple[str, str]] = {
    "Softmax": ("functions.softmax_rows({x})", _INFINITE),
    "LogSoftmax": ("functions.log_softmax_rows({x})", _INFINITE),
    "Hardmax": ("(column == tl.argmax({x}, axis=1, keep_dims=True))", _INFINITE),
}


def along_axis(node: Node) -> KernelText:
    """The rows are those of one axis."""
    value, other = _ALONG_AXIS[node.operator]
    return _row_wise(node, rows_of(node.input(0), (node.attributes["axis"],)), value, other)


def lp(node: Node) -> KernelText:
    """x over the sum of magnitudes, or over the root of the sum of squares; a row of zeros stays."""
    known = {1: "functions.over_sum_of_magnitudes({x})", 2: "functions.over_root_of_squares({x})"}
    value = known.get(node.attributes["p"])
    if value is None:
        note = "ONNX's operator has 1 and 2"
        raise UnsupportedError(f"a norm with p = {node.attributes['p']}", code="TFW0992", note=note)
    return _row_wise(node, rows_of(node.input(0), (node.attributes["axis"],)), value, "0.0")


def mean_variance(node: Node) -> KernelText:
    """(x - mean) / (standard deviation + 1e-9), as ONNX's function body has it (onnx/defs/nn/defs.cc)."""
    rows = rows_of(node.input(0), node.attributes["axes"])
    text = rows.begin(node)
    x = rows.load(text, node.input(0), "0.0")
    text.add(
        f"mean = tl.sum({x}, axis=1, keep_dims=True) / {rows.length}.0",
        f"square = tl.sum({x} * {x}, axis=1, keep_dims=True) / {rows.length}.0",
        f"result = ({x} - mean) / (tl.sqrt_rn(square - mean * mean) + 1e-9)",
    )
    return _finished(node, text, rows)


def layer(node: Node) -> KernelText:
    """LayerNormalization, with the mean and the reciprocal deviation of each row where they are asked for."""
    rows = _from_axis(node)
    text = rows.begin(node)
    _centered(text, rows, rows.load(text, node.input(0), "0.0"), node.attributes["epsilon"])
    _scaled(node, text, rows, {1: "*", 2: "+"})
    for index, name in ((1, "mean"), (2, "reciprocal")):
        if (out := node.optional_output(index)) is not None:
            text.store(out, "row", typed(text, out, name), "known")
    return text


def root_mean_square(node: Node) -> KernelText:
    rows = _from_axis(node)
    text = rows.begin(node)
    x = rows.load(text, node.input(0), "0.0")
    text.add(
        f"square = tl.sum({x} * {x}, axis=1, keep_dims=True) / {rows.length}.0",
        f"result = {x} * tl.div_rn(1.0, tl.sqrt_rn(square + {node.attributes['epsilon']!r}))",
    )
    _scaled(node, text, rows, {1: "*"})
    return text


def _from_axis(node: Node) -> RowView:
    """Rows over the axes from the attribute's on."""
    shape = node.input(0).shape
    return rows_of(node.input(0), range(axis_of(node.attributes["axis"], len(shape)), len(shape)))


def instance(node: Node) -> KernelText:
    """A row is one channel of one sample."""
    source = node.input(0)
    rows = rows_of(source, range(2, len(source.shape)))
    return _by_channel(node, rows, lambda tensor: _channels(tensor, source.shape))


def group(node: Node) -> KernelText:
    """A row is some consecutive channels of one sample: their axis is split in two."""
    source, groups = node.input(0), node.attributes["num_groups"]
    samples, channels, *rest = source.shape
    shape = (samples, groups, channels // groups, *rest)
    rows = RowView(shape, tuple(range(2, len(shape))))
    return _by_channel(node, rows, lambda tensor: View(
        ((1, 0), (groups, channels // groups), (channels // groups, 1), *((1, 0) for _ in rest))
    ))


def batch(node: Node) -> KernelText:
    """By the given mean and variance of each channel; in training by those of the batch, which also move the running ones."""
    source = node.input(0)
    rows = rows_of(source, (axis for axis in range(len(source.shape)) if axis != 1))
    text = rows.begin(node)
    x = rows.load(text, source, "0.0")
    scale, bias, mean, variance = (_row_vector(text, node.input(i)) for i in range(1, 5))
    if node.attributes["training_mode"]:
        _centered(text, rows, x, node.attributes["epsilon"])
        _running(node, text, mean, variance)
        text.add(f"result = result * {scale} + {bias}")
    else:
        text.add(f"result = {scale} * ({x} - {mean}) / tl.sqrt_rn({variance} + {node.attributes['epsilon']!r}) + {bias}")
    return _finished(node, text, rows)


def _running(node: Node, text: KernelText, mean: str, variance: str) -> None:
    """The running statistics: `momentum` parts of the old, the rest of the batch's."""
    momentum = node.attributes["momentum"]
    for index, old, new in ((1, mean, "mean"), (2, variance, "variance")):
        if (out := node.optional_output(index)) is not None:
            text.store(out, "row", typed(text, out, f"{old} * {momentum!r} + {new} * (1.0 - {momentum!r})"), "known")


def _row_vector(text: KernelText, tensor: NodeTensor) -> str:
    """One value for each row."""
    name = f"given_{text.variable(tensor)}"
    text.add(f"{name} = tl.load({text.pointer(tensor)} + row, mask=known).to(tl.float32)")
    return name


def _row_wise(node: Node, rows: RowView, value: str, other: str) -> KernelText:
    text = rows.begin(node)
    x = rows.load(text, node.input(0), other)
    text.add(f"result = {value.format(x=x)}")
    return _finished(node, text, rows)


def _finished(node: Node, text: KernelText, rows: RowView) -> KernelText:
    """`result` is the first output."""
    out = node.output(0)
    text.store(out, rows.offset_in(out), typed(text, out, "result"), "inside")
    return text


def _by_channel(node: Node, rows: RowView, seen: Callable[[NodeTensor], View]) -> KernelText:
    """Normalised rows times a scale and plus a bias of each channel."""
    text, out = rows.begin(node), node.output(0)
    place = rows.offset(contiguous(rows.shape))
    x = text.load(node.input(0), place, "inside", "0.0", wide=True)
    _centered(text, rows, x, node.attributes["epsilon"])
    for index, sign in ((1, "*"), (2, "+")):
        loaded = text.loaded(node.input(index), rows.offset(seen(node.input(index))), "inside", wide=True)
        text.add(f"result = result {sign} {loaded}")
    text.store(out, place, typed(text, out, "result"), "inside")
    return text


def _channels(tensor: NodeTensor, shape: tuple[int, ...]) -> View:
    """A vector along axis 1 of an array of `shape`."""
    return View(((1, 0), (tensor.size, 1), *((1, 0) for _ in shape[2:])))


def _centered(text: KernelText, rows: RowView, x: str, epsilon: float) -> None:
    """`mean`, `variance`, `reciprocal` of the deviation, and `result`, which has mean 0 and deviation 1."""
    text.add(
        f"mean = tl.sum({x}, axis=1, keep_dims=True) / {rows.length}.0",
        f"centered = tl.where(inside, {x} - mean, 0.0)",
        f"variance = tl.sum(centered * centered, axis=1, keep_dims=True) / {rows.length}.0",
        f"reciprocal = tl.div_rn(1.0, tl.sqrt_rn(variance + {epsilon!r}))",
        "result = centered * reciprocal",
    )


def _scaled(node: Node, text: KernelText, rows: RowView, steps: Mapping[int, str]) -> None:
    """`result` with the optional scale and bias, which broadcast to the array, stored as the first output."""
    for index, sign in steps.items():
        if (tensor := node.optional(index)) is not None:
            text.add(f"result = result {sign} {text.loaded(tensor, rows.offset_in(tensor), 'inside', wide=True)}")
    _finished(node, text, rows)


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    **dict.fromkeys(_ALONG_AXIS, along_axis),
    "LayerNormalization": layer, "RMSNormalization": root_mean_square, "InstanceNormalization": instance,
    "GroupNormalization": group, "BatchNormalization": batch, "LpNormalization": lp, "MeanVarianceNormalization": mean_variance,
}
