"""ONNX operators as ops of the graph dialect: those whose elements are formulas, reductions along rows, and moves.

Each rule takes the builder, the node and its inputs as values, and gives the first output. A node has a rule where all its floats
are fp32 or fp64 and its integers signed; every other node stays a kernel of its own (`lowerings`). The steps are those of the
operator's definition in `onnx/defs`, as the lowerings have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

from tilefw.api.dtypes import dtype
from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw_onnx.lowerings.gathers import require_within
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import axis_of

Values = Sequence[GraphValue]
Rule = Callable[[ModuleBuilder, Node, Values], GraphValue]

_LONGEST_ROW = 16384  # what a rows kernel holds in a tile
_SERVED = {"fp32", "fp64", "int1", "int8", "int16", "int32", "int64"}


def is_served(node: Node) -> bool:
    """Whether the dialect has the types of all tensors, each of which has elements and is given a name, and what says how the node
    works is known."""
    tensors = [one for one in (*node.inputs, *node.outputs) if one is not None]
    if node.operator in _KNOWN and any(one is not None and one.array is None for one in node.inputs[1:]):
        return False
    return None not in node.outputs and all(one.dtype in _SERVED and one.size for one in tensors)


def rule_of(node: Node) -> Rule | None:
    """The rule of a node; None where it has none, or not for these types."""
    rule = RULES.get(node.operator)
    if rule is None or not is_served(node) or len(node.outputs) != 1:
        return None
    if node.operator in _FLOATS_ONLY and not dtype(node.input(0).dtype).is_float:
        return None
    if node.operator in _TESTS and not _TESTS[node.operator](node):
        return None
    if node.operator in _ROWS and not _fits(node):
        return None
    return rule


def _by_type(floats: str, integers: str, b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    row = floats if dtype(node.input(0).dtype).is_float else integers
    found = values[0]
    for value in values[1:]:
        found = b.map(row, found, value)
    return found


def _row(row: str, b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map(row, *values)


def _reciprocal(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map("div_rn", b.full(1, values[0]), values[0])


def _sigmoid(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    """In two branches, so that no exponential overflows."""
    small = b.map("exp", b.map("negf", b.map("absf", values[0])))
    over = b.map("addf", small, 1.0)
    return b.map("divf", b.map("select", b.map("gef", values[0], 0.0), b.full(1, small), small), over)


def _gelu(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    x = values[0]
    if node.attributes["approximate"] == "tanh":
        cube = b.map("mulf", b.map("mulf", x, x), x)
        inner = b.map("mulf", b.map("addf", x, b.map("mulf", cube, 0.044715)), 0.7978845608028654)
        factor = b.map("addf", b.map("tanh", inner), 1.0)
    else:
        factor = b.map("addf", b.map("erf", b.map("mulf", x, 0.7071067811865476)), 1.0)
    return b.map("mulf", b.map("mulf", x, 0.5), factor)


def _relu(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map("maxf_nan", values[0], 0.0)


def _clip(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    found, limits = values[0], iter(values[1:])
    if node.optional(1) is not None:
        found = _by_type("maxf_nan", "maxs", b, node, [found, next(limits)])
    return found if node.optional(2) is None else _by_type("minf_nan", "mins", b, node, [found, next(limits)])


def _leaky_relu(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    slope: GraphValue | float = values[1] if len(values) > 1 else node.attributes["alpha"]
    return b.map("select", b.map("ltf", values[0], 0.0), b.map("mulf", values[0], slope), values[0])


def _hard_sigmoid(b: ModuleBuilder, node: Node, values: Values, alpha: float | None = None, beta: float = 0.5) -> GraphValue:
    scale, offset = (node.attributes["alpha"], node.attributes["beta"]) if alpha is None else (alpha, beta)
    line = b.map("addf", b.map("mulf", values[0], scale), offset)
    return b.map("maxf_nan", b.map("minf_nan", line, 1.0), 0.0)


def _hard_swish(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    return b.map("mulf", values[0], _hard_sigmoid(b, node, values, 1 / 6))


def _is_nan(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map("isnan", values[0])


def _not(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map("xori", values[0], 1)


def _transpose(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    rank = len(shape_of(values[0]))
    return b.transpose(values[0], node.attributes.get("perm", list(range(rank))[::-1]))


def _expand(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    return b.broadcast(values[0], node.output(0).shape)


def _concat(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    return b.concat(values, axis_of(node.attributes["axis"], len(node.output(0).shape)))


def _softmax(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    axis = axis_of(node.attributes["axis"], len(shape_of(values[0])))
    held = b.map("exp", b.map("subf", values[0], b.reduce("maxf", values[0], [axis], keep=True)))
    return b.map("divf", held, b.reduce("addf", held, [axis], keep=True))


def _mean(b: ModuleBuilder, x: GraphValue, axes: Sequence[int]) -> GraphValue:
    count = prod(shape_of(x)[axis] for axis in axes)
    return b.map("divf", b.reduce("addf", x, axes, keep=True), float(count))


def _reduction(row: str | None, b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    """The sum, the greatest or the least along the axes; with `row` None their mean."""
    axes = _axes(node)
    if not axes:
        return values[0]
    found = _mean(b, values[0], axes) if row is None else b.reduce(row, values[0], axes, keep=True)
    return b.reshape(found, node.output(0).shape)


def _log_softmax(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    axis = axis_of(node.attributes["axis"], len(shape_of(values[0])))
    below = b.map("subf", values[0], b.reduce("maxf", values[0], [axis], keep=True))
    return b.map("subf", below, b.map("log", b.reduce("addf", b.map("exp", below), [axis], keep=True)))


def _layer_norm(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    axes = _axes(node)
    centred = b.map("subf", values[0], _mean(b, values[0], axes))
    variance = _mean(b, b.map("mulf", centred, centred), axes)
    deviation = b.map("sqrt_rn", b.map("addf", variance, node.attributes["epsilon"]))
    found = b.map("mulf", b.map("divf", centred, deviation), values[1])
    return b.map("addf", found, values[2]) if len(values) > 2 else found


def _rms_norm(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    square = _mean(b, b.map("mulf", values[0], values[0]), _axes(node))
    root = b.map("sqrt_rn", b.map("addf", square, node.attributes["epsilon"]))
    return b.map("mulf", b.map("mulf", values[0], b.map("div_rn", b.full(1, root), root)), values[1])


def _matmul(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.matmul(values[0], values[1])


def _gemm(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    words = ("km" if node.attributes["transA"] else "mk") + "," + ("nk" if node.attributes["transB"] else "kn")
    found = b.einsum(values[0], values[1], f"{words}->mn")
    if node.attributes["alpha"] != 1:
        found = b.map("mulf", found, node.attributes["alpha"])
    if len(values) < 3:
        return found
    return b.map("addf", found, values[2] if node.attributes["beta"] == 1 else b.map("mulf", values[2], node.attributes["beta"]))


def _convolution(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    space = len(shape_of(values[0])) - 2
    strides, dilations = (node.attributes.get(name) or [1] * space for name in ("strides", "dilations"))
    pads = node.attributes.get("pads") or [0] * (2 * space)
    found = b.convolve(values[0], values[1], strides, pads[:space], pads[space:], dilations, node.attributes["group"])
    if len(values) < 3:
        return found
    return b.map("addf", found, b.reshape(values[2], _channel_shape(node)))


def _batch_norm(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    scale, bias, mean, variance = (b.reshape(value, _channel_shape(node)) for value in values[1:])
    deviation = b.map("sqrt_rn", b.map("addf", variance, node.attributes["epsilon"]))
    return b.map("addf", b.map("divf", b.map("mulf", scale, b.map("subf", values[0], mean)), deviation), bias)


def _channel_shape(node: Node) -> list[int]:
    """A vector of channels beside (n, channels, *space)."""
    shape = node.output(0).shape
    return [extent if dim == 1 else 1 for dim, extent in enumerate(shape)]


def _slice(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    shape = shape_of(values[0])
    starts, steps = [0] * len(shape), [1] * len(shape)
    begins, ends = node.input(1).integers(), node.input(2).integers()
    axes, asked = node.optional(3), node.optional(4)
    named = axes.integers() if axes is not None else range(len(begins))
    for place, axis in enumerate(named):
        dim = axis_of(axis, len(shape))
        step = asked.integers()[place] if asked is not None else 1
        starts[dim], _, steps[dim] = slice(begins[place], ends[place], step).indices(shape[dim])
    return b.slice(values[0], starts, node.output(0).shape, steps)


def _gather(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    axis = axis_of(node.attributes["axis"], len(shape_of(values[0])))
    extent = shape_of(values[0])[axis]
    require_within(node.input(1), extent)
    behind = b.map("addi", values[1], extent)
    return b.take(values[0], b.map("select", b.map("lts", values[1], 0), behind, values[1]), axis, trusted=True)


def _gather_elements(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    source, asked = values
    rank = len(shape_of(source))
    axis = axis_of(node.attributes["axis"], rank)
    extent = shape_of(source)[axis]
    require_within(node.input(1), extent)
    index = b.map("select", b.map("lts", asked, 0), b.map("addi", asked, extent), asked)
    rows = [[int(k == d and k != axis) for d in range(rank)] for k in range(rank)]
    return b.gather(source, [index], [axis], linear_map(rows, [0] * rank, rank), trusted=True)


def _cast(b: ModuleBuilder, node: Node, values: Values) -> GraphValue:
    wanted = node.output(0).dtype
    if wanted == "int1" != node.input(0).dtype:  # what is not zero, NaN too
        return b.map("nef" if dtype(node.input(0).dtype).is_float else "nei", values[0], 0)
    return b.cast(values[0], wanted, node.input(0).dtype)


def _power(b: ModuleBuilder, _node: Node, values: Values) -> GraphValue:
    return b.map("pow", values[0], values[1])


def _axes(node: Node) -> list[int]:
    """The axes that a node reduces, ascending."""
    rank = len(node.input(0).shape)
    if node.operator in ("LayerNormalization", "RMSNormalization"):
        return list(range(axis_of(node.attributes["axis"], rank), rank))
    if node.operator in ("Softmax", "LogSoftmax"):
        return [axis_of(node.attributes["axis"], rank)]
    if node.operator in _WHOLE_IMAGES:
        return list(range(2, rank))
    given = node.optional(1)
    asked = given.integers() if given is not None else tuple(node.attributes.get("axes", ()))
    if not asked and node.attributes.get("noop_with_empty_axes"):
        return []
    return sorted({axis_of(axis, rank) for axis in asked}) or list(range(rank))


def _fits(node: Node) -> bool:
    """Whether the axes are known and a row of them fits a kernel."""
    axes: NodeTensor | None = node.optional(1)
    if node.operator.startswith("Reduce") and axes is not None and axes.array is None:
        return False
    return prod(node.input(0).shape[axis] for axis in _axes(node)) <= _LONGEST_ROW


_FLOATS_ONLY = {
    "Div", "LeakyRelu", "PRelu", "Softmax", "LogSoftmax", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
    "Relu", "Neg", "Abs", "Erf", "IsNaN", "MatMul", "Gemm", "Conv", "GlobalAveragePool", "GlobalMaxPool",
}
_WHOLE_IMAGES = {"GlobalAveragePool", "GlobalMaxPool"}
_KNOWN = {"Slice", "Split"}  # whose inputs but the first say what is done
_ROWS = {
    "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
    *_WHOLE_IMAGES,
}


def _is_plain_convolution(node: Node) -> bool:
    """One group, or as many as there are channels; other groups have a kernel of their own."""
    return node.attributes["group"] in (1, node.input(0).shape[1]) and node.attributes["auto_pad"] == "NOTSET"


def _is_inference(node: Node) -> bool:
    return not node.attributes["training_mode"] and _has_one_type(node)


def _has_one_type(node: Node) -> bool:
    """Scales and statistics of a normalisation may have another type than what is normalised."""
    return len({one.dtype for one in node.given()}) == 1


def _has_matrices(node: Node) -> bool:
    return min(len(node.input(0).shape), len(node.input(1).shape)) >= 2


def _has_one_float_type(node: Node) -> bool:
    return dtype(node.input(0).dtype).is_float and node.input(0).dtype == node.input(1).dtype


_TESTS: Mapping[str, Callable[[Node], bool]] = {
    "Conv": _is_plain_convolution, "BatchNormalization": _is_inference, "MatMul": _has_matrices, "Pow": _has_one_float_type,
    "RMSNormalization": _has_one_type,
}

RULES: Mapping[str, Rule] = {
    # Arithmetic and order.
    "Add": partial(_by_type, "addf", "addi"), "Sub": partial(_by_type, "subf", "subi"), "Mul": partial(_by_type, "mulf", "muli"),
    "Div": partial(_row, "div_rn"), "Pow": _power,
    "Max": partial(_by_type, "maxf_nan", "maxs"), "Min": partial(_by_type, "minf_nan", "mins"),
    "Neg": partial(_row, "negf"), "Abs": partial(_row, "absf"), "Reciprocal": _reciprocal,

    # Functions.
    "Exp": partial(_row, "exp"), "Log": partial(_row, "log"), "Sqrt": partial(_row, "sqrt_rn"), "Erf": partial(_row, "erf"),
    "Tanh": partial(_row, "tanh"), "Sin": partial(_row, "sin"), "Cos": partial(_row, "cos"), "Floor": partial(_row, "floor"),
    "Ceil": partial(_row, "ceil"),

    # Activations.
    "Relu": _relu, "Sigmoid": _sigmoid, "Gelu": _gelu, "Clip": _clip, "LeakyRelu": _leaky_relu,
    "PRelu": _leaky_relu, "HardSigmoid": _hard_sigmoid, "HardSwish": _hard_swish,

    # Comparison and choice.
    "Equal": partial(_by_type, "eqf", "eqi"), "Greater": partial(_by_type, "gtf", "gts"), "Less": partial(_by_type, "ltf", "lts"),
    "GreaterOrEqual": partial(_by_type, "gef", "ges"), "LessOrEqual": partial(_by_type, "lef", "les"),
    "And": partial(_row, "andi"), "Or": partial(_row, "ori"), "Not": _not, "Where": partial(_row, "select"), "IsNaN": _is_nan,

    # Rows.
    "Softmax": _softmax, "LogSoftmax": _log_softmax, "LayerNormalization": _layer_norm, "RMSNormalization": _rms_norm,
    "ReduceMean": partial(_reduction, None), "ReduceSum": partial(_reduction, "addf"),
    "ReduceMax": partial(_reduction, "maxf"), "ReduceMin": partial(_reduction, "minf"),
    "GlobalAveragePool": partial(_reduction, None), "GlobalMaxPool": partial(_reduction, "maxf"),

    # Sums of products.
    "MatMul": _matmul, "Gemm": _gemm, "Conv": _convolution, "BatchNormalization": _batch_norm,

    # Moves.
    "Slice": _slice, "Gather": _gather, "GatherElements": _gather_elements, "Cast": _cast,
    "Transpose": _transpose, "Expand": _expand, "Concat": _concat,
}
