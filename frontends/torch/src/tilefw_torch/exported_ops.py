"""PyTorch's operators as ops of the graph dialect, for programs that torch.export wrote.

A rule takes the builder, what the operator gives, and its arguments, tensors as values of the dialect. Operands are cast as PyTorch
promotes them. An operator of several results gives a list, with None for one that no rule computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from math import inf, nan, prod
from typing import Any

import numpy as np
import torch

from tilefw.api.dtypes import dtype as dtype_named
from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.kernels.formats import array_dtype
from tilefw_torch.exported_tensor import ExportedTensor, Rule, element_type, in_float32

ELEMENTS: Mapping[torch.dtype, str] = {
    torch.float32: "fp32", torch.float64: "fp64", torch.float16: "fp16", torch.bfloat16: "bf16", torch.bool: "int1",
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
}
_TORCH = {name: kind for kind, name in ELEMENTS.items()}
# What sums, products and extremes of truth values are.
_OF_TRUTH_VALUES = {"addi": "ori", "muli": "andi", "maxs": "ori", "mins": "andi"}
_OF_NOTHING: Mapping[str, float] = {"addf": 0, "addi": 0, "ori": 0, "mulf": 1, "muli": 1}  # what they give without an element


Axes = Sequence[int] | int | None


def is_float(value: GraphValue) -> bool:
    return dtype_named(element_type(value)).is_float


def cast(b: ModuleBuilder, value: Any, dtype: str) -> Any:
    """A value as another type; a truth value says whether it is not zero. A number stays one."""
    if isinstance(value, bool | int | float):
        return value
    if dtype == "int1" and element_type(value) != "int1":
        return b.map("nef" if is_float(value) else "nei", value, 0)
    return b.cast(value, dtype)


def filled(b: ModuleBuilder, value: float, out: ExportedTensor) -> GraphValue:
    held = b.constant(np.array(value, array_dtype(out.dtype)), out.dtype)
    return b.broadcast(held, out.shape)


def as_tensor(b: ModuleBuilder, value: Any, out: ExportedTensor) -> GraphValue:
    """An operand of the result's type, where a tensor is asked for."""
    if isinstance(value, bool | int | float):
        return filled(b, value, ExportedTensor(out.dtype, ()))
    return cast(b, value, out.dtype)


def chosen_row(floats: str, integers: str, out: ExportedTensor) -> str:
    """The row for a result's elements."""
    if dtype_named(out.dtype).is_float:
        return floats
    return _OF_TRUTH_VALUES.get(integers, integers) if out.dtype == "int1" else integers


def _of_two(
    floats: str, integers: str, b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any, alpha: float = 1
) -> GraphValue:
    row = chosen_row(floats, integers, out)
    second = as_tensor(b, right, out)
    if alpha != 1:
        second = b.map("mulf" if row == floats else "muli", second, alpha)
    return b.map(row, as_tensor(b, left, out), second)


def _reversed_sub(b: ModuleBuilder, out: ExportedTensor, left: Any, right: Any, alpha: float = 1) -> GraphValue:
    return _of_two("subf", "subi", b, out, right, left, alpha)


def _promoted(left: GraphValue, right: GraphValue | float) -> str:
    """The element type in which PyTorch compares."""
    given: list[Any] = [
        torch.empty(shape_of(one), dtype=_TORCH[element_type(one)], device="meta") if isinstance(one, GraphValue) else one
        for one in (left, right)
    ]
    found = torch.result_type(given[0], given[1])
    if found not in ELEMENTS:
        raise NotImplementedError(f"a comparison of {found}")
    return ELEMENTS[found]


def _compared(floats: str, integers: str, b: ModuleBuilder, out: ExportedTensor, left: GraphValue, right: Any) -> GraphValue:
    wide = _promoted(left, right)
    said = ExportedTensor("int8" if wide == "int1" else wide, out.shape)
    row = floats if dtype_named(said.dtype).is_float else integers
    return b.map(row, as_tensor(b, left, said), as_tensor(b, right, said))


def _row(row: str, b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map(row, cast(b, x, out.dtype))


def _whole(row: str, b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    """A rounding to integers, which leaves integers as they are."""
    return b.map(row, x) if is_float(x) else x


def _bits(row: str, b: ModuleBuilder, out: ExportedTensor, left: GraphValue, right: Any) -> GraphValue:
    return b.map(row, cast(b, left, out.dtype), as_tensor(b, right, out))


def _not(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("xori", cast(b, x, out.dtype), 1 if out.dtype == "int1" else -1)


def _power(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, exponent: Any) -> GraphValue:
    held = cast(b, x, out.dtype)
    if exponent in (2, 3) and not isinstance(exponent, GraphValue):
        product = "mulf" if dtype_named(out.dtype).is_float else "muli"
        square = b.map(product, held, held)
        return square if exponent == 2 else b.map(product, square, held)
    if not dtype_named(out.dtype).is_float:
        raise NotImplementedError("a power of integers but the second and the third")
    return b.map("pow", held, as_tensor(b, exponent, out))


def _rounded_to(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, **_: Any) -> GraphValue:
    return cast(b, x, out.dtype)


def _negated(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("negf", x) if is_float(x) else b.map("subi", b.full(0, x), x)


def _absolute(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return b.map("absf" if is_float(x) else "absi", x)


def _reciprocal(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    held = cast(b, x, out.dtype)
    return b.map("div_rn", b.full(1, held), held)


def _inverse_root(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return _reciprocal(b, out, b.map("sqrt_rn", cast(b, x, out.dtype)))


def _sigmoid(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    """In two branches, so that no exponential overflows."""
    held = cast(b, x, out.dtype)
    small = b.map("exp", b.map("negf", b.map("absf", held)))
    return b.map("divf", b.map("select", b.map("gef", held, 0.0), b.full(1, small), small), b.map("addf", small, 1.0))


def _gelu(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, approximate: str = "none") -> GraphValue:
    if approximate == "tanh":
        cube = b.map("mulf", b.map("mulf", x, x), x)
        inner = b.map("mulf", b.map("addf", x, b.map("mulf", cube, 0.044715)), 0.7978845608028654)
        factor = b.map("addf", b.map("tanh", inner), 1.0)
    else:
        factor = b.map("addf", b.map("erf", b.map("mulf", x, 0.7071067811865476)), 1.0)
    return b.map("mulf", b.map("mulf", x, 0.5), factor)


def _clamped(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, low: Any = None, high: Any = None) -> GraphValue:
    """Between numbers or tensors."""
    held = cast(b, x, out.dtype)
    if low is not None:
        held = b.map(chosen_row("maxf_nan", "maxs", out), held, as_tensor(b, low, out))
    return held if high is None else b.map(chosen_row("minf_nan", "mins", out), held, as_tensor(b, high, out))


def _relu(b: ModuleBuilder, out: ExportedTensor, x: GraphValue) -> GraphValue:
    return _clamped(b, out, x, 0)


def _hard_tanh(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, low: float = -1, high: float = 1) -> GraphValue:
    return _clamped(b, out, x, low, high)


def _leaky(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, slope: float = 0.01) -> GraphValue:
    return b.map("select", b.map("gtf", x, 0.0), x, b.map("mulf", x, slope))


def _where(b: ModuleBuilder, out: ExportedTensor, condition: GraphValue, left: Any, right: Any) -> GraphValue:
    return b.map("select", cast(b, condition, "int1"), as_tensor(b, left, out), as_tensor(b, right, out))


# Rows -------------------------------------------------------------------------------------------------------------------


def axes_of(shape: Sequence[int], axes: Axes) -> list[int]:
    """Axes counted from the first; none or an empty list means all."""
    given = [axes] if isinstance(axes, int) else list(axes or range(len(shape)))
    return sorted(axis % len(shape) for axis in given) if shape else []


def reduced(
    floats: str, integers: str, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axes: Axes = None, keep: bool = False,
    **_: Any,
) -> GraphValue:
    row = chosen_row(floats, integers, out)
    if not prod(shape_of(x)) and (row in _OF_NOTHING or not prod(out.shape)):
        return filled(b, _OF_NOTHING.get(row, 0), out)
    return b.reshape(b.reduce(row, cast(b, x, out.dtype), axes_of(shape_of(x), axes), keep=True), out.shape)


def _averaged(b: ModuleBuilder, x: GraphValue, axes: Sequence[int], fewer: float = 0) -> GraphValue:
    count = prod(shape_of(x)[axis] for axis in axes)
    return b.map("divf", b.reduce("addf", x, axes, keep=True), float(max(count - fewer, 0)))


def _mean(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axes: Axes = None, keep: bool = False, **_: Any) -> GraphValue:
    if not prod(shape_of(x)):
        return filled(b, nan, out)
    return b.reshape(_averaged(b, cast(b, x, out.dtype), axes_of(shape_of(x), axes)), out.shape)


def _variance(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axes: Axes = None, *, correction: float | None = 1, keepdim: bool = False
) -> GraphValue:
    found = axes_of(shape_of(x), axes)
    centred = b.map("subf", x, _averaged(b, x, found))
    return b.reshape(_averaged(b, b.map("mulf", centred, centred), found, 1 if correction is None else correction), out.shape)


def _softmax(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, _half: bool) -> GraphValue:
    axes = axes_of(out.shape, axis)
    held = b.map("exp", b.map("subf", x, b.reduce("maxf", x, axes, keep=True)))
    return b.map("divf", held, b.reduce("addf", held, axes, keep=True))


def _log_softmax(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, axis: int, _half: bool) -> GraphValue:
    axes = axes_of(out.shape, axis)
    centred = b.map("subf", x, b.reduce("maxf", x, axes, keep=True))
    return b.map("subf", centred, b.map("log", b.reduce("addf", b.map("exp", centred), axes, keep=True)))


def _normalised(b: ModuleBuilder, x: GraphValue, axes: Sequence[int], epsilon: float) -> GraphValue:
    centred = b.map("subf", x, _averaged(b, x, axes))
    deviation = b.map("sqrt_rn", b.map("addf", _averaged(b, b.map("mulf", centred, centred), axes), epsilon))
    return b.map("divf", centred, deviation)


def _scaled(
    b: ModuleBuilder, x: GraphValue, weight: GraphValue | None, bias: GraphValue | None, shape: Sequence[int]
) -> GraphValue:
    if weight is not None:
        x = b.map("mulf", x, b.reshape(weight, shape))
    return x if bias is None else b.map("addf", x, b.reshape(bias, shape))


def _layer_norm(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, shape: Sequence[int], weight: GraphValue | None, bias: GraphValue | None,
    epsilon: float,
) -> list[GraphValue | None]:
    own = shape_of(x)
    found = _normalised(b, x, range(len(own) - len(shape), len(own)), epsilon)
    return [_scaled(b, found, weight, bias, shape), None, None]


def _group_norm(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, weight: GraphValue | None, bias: GraphValue | None, batch: int,
    channels: int, pixels: int, groups: int, epsilon: float,
) -> list[GraphValue | None]:
    own = shape_of(x)
    found = _normalised(b, b.reshape(x, (batch, groups, channels // groups * pixels)), [2], epsilon)
    return [_scaled(b, b.reshape(found, own), weight, bias, (channels, *[1] * (len(own) - 2))), None, None]


def _batch_norm(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, weight: GraphValue | None, bias: GraphValue | None, mean: GraphValue,
    variance: GraphValue, _momentum: float, epsilon: float,
) -> list[GraphValue | None]:
    channels = (shape_of(x)[1], *[1] * (len(shape_of(x)) - 2))
    deviation = b.map("sqrt_rn", b.map("addf", b.reshape(variance, channels), epsilon))
    found = b.map("divf", b.map("subf", x, b.reshape(mean, channels)), deviation)
    return [_scaled(b, found, weight, bias, channels), None, None]


def _instance_norm(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, weight: GraphValue | None, bias: GraphValue | None, _training: bool,
    _momentum: float, epsilon: float,
) -> list[GraphValue | None]:
    """By the mean and the variance of the channels of this batch alone."""
    own = shape_of(x)
    found = _normalised(b, x, [axis for axis in range(len(own)) if axis != 1], epsilon)
    return [_scaled(b, found, weight, bias, (own[1], *[1] * (len(own) - 2))), None, None]


# Pools ----------------------------------------------------------------------------------------------------------------


def _windows(
    b: ModuleBuilder, x: GraphValue, out: ExportedTensor, window: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], outside: float,
) -> GraphValue:
    """The elements that each output covers, in as many axes as a window has behind those of the result."""
    if not is_float(x):
        raise NotImplementedError("a pool of integers")
    count = len(window)
    ranks, outer = len(out.shape) + count, len(out.shape) - count
    rows = [[int(d == k) for d in range(ranks)] for k in range(outer)]
    for k in range(count):
        rows.append([strides[k] if d == outer + k else dilations[k] if d == outer + count + k else 0 for d in range(ranks)])
    offsets = [0] * outer + [-pad for pad in pads]
    return b.view(x, linear_map(rows, offsets, ranks), (*out.shape, *window), b.full(outside, x))


def _each(count: int, values: Sequence[int], otherwise: Sequence[int] = ()) -> list[int]:
    """A number for each of the axes of a window."""
    given = list(values) or list(otherwise)
    return given * count if len(given) == 1 else given


def _behind(out: ExportedTensor, count: int) -> list[int]:
    """The axes of windows of so many axes."""
    return list(range(len(out.shape), len(out.shape) + count))


def _max_pool(
    count: int, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, window: Sequence[int], strides: Sequence[int] = (),
    pads: Sequence[int] = (0,), dilations: Sequence[int] = (1,), ceil: bool = False,
) -> list[GraphValue | None]:
    size, step = _each(count, window), _each(count, strides, window)
    seen = _windows(b, x, out, size, step, _each(count, pads), _each(count, dilations), -inf)
    return [b.reduce("maxf_nan", seen, _behind(out, count)), None]


def _average_pool(
    count: int, b: ModuleBuilder, out: ExportedTensor, x: GraphValue, window: Sequence[int], strides: Sequence[int] = (),
    pads: Sequence[int] = (0,), ceil: bool = False, padded: bool = True, divisor: int | None = None,
) -> GraphValue:
    size, step, pad = _each(count, window), _each(count, strides, window), _each(count, pads)
    seen = _windows(b, x, out, size, step, pad, [1] * count, 0.0)
    total = b.reduce("addf", seen, _behind(out, count))
    if divisor or not (ceil or (any(pads) and not padded)):
        return b.map("divf", total, float(divisor or prod(size)))
    own = shape_of(x)[-count:]
    counts = [_counted(*one, padded) for one in zip(own, out.shape[-count:], size, step, pad, strict=True)]
    held = b.constant(reduce(np.multiply.outer, counts).astype(array_dtype(out.dtype)), out.dtype)
    return b.map("divf", total, b.broadcast(held, out.shape))


def _counted(extent: int, windows: int, size: int, step: int, pad: int, padded: bool) -> np.ndarray[Any, Any]:
    """How many elements each window counts: none beyond the padding, and with `padded` those within it too."""
    begin = np.arange(windows) * step - pad
    end = np.minimum(begin + size, extent + pad)
    return end - begin if padded else np.minimum(end, extent) - np.maximum(begin, 0)


def _adaptive_average(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, extents: Sequence[int]) -> GraphValue:
    own = shape_of(x)[-2:]
    if not any(one % extent for one, extent in zip(own, extents, strict=True)):
        return _average_pool(2, b, out, x, [one // extent for one, extent in zip(own, extents, strict=True)])
    for axis, extent in enumerate(extents, len(out.shape) - 2):
        x, counts = _shared_out(b, x, axis, extent, "addf", 0)
        behind = [1] * (len(shape_of(x)) - axis - 1)
        x = b.map("divf", x, b.constant(counts.astype(array_dtype(out.dtype)).reshape(extent, *behind), out.dtype))
    return x


def _adaptive_greatest(b: ModuleBuilder, out: ExportedTensor, x: GraphValue, extents: Sequence[int]) -> list[GraphValue | None]:
    for axis, extent in enumerate(extents, len(out.shape) - 2):
        x, _ = _shared_out(b, x, axis, extent, "maxf_nan", -inf)
    return [x, None]


def _shared_out(
    b: ModuleBuilder, x: GraphValue, axis: int, windows: int, row: str, outside: float
) -> tuple[GraphValue, np.ndarray[Any, Any]]:
    """Windows of different sizes, which may have elements in common, combined by a row; and how many elements each has. What is
    outside of one is not multiplied by zero, which infinity would make NaN."""
    extent, behind = shape_of(x)[axis], [1] * (len(shape_of(x)) - axis - 1)
    first = np.arange(windows) * extent // windows
    counts = -(-(np.arange(windows) + 1) * extent // windows) - first
    places = first[:, None] + np.arange(max(counts))
    inside = (places < (first + counts)[:, None]).reshape(*places.shape, *behind)
    taken = b.take(x, b.constant(np.minimum(places, extent - 1).astype(np.int32), "int32"), axis)
    held = b.map("select", b.constant(inside.astype(array_dtype("int1")), "int1"), taken, b.full(outside, x))
    return b.reduce(row, held, [axis + 1]), counts


# What chooses among elements, or compares them: no rounding.
_EXACT: Mapping[str, Rule] = {
    "maximum.default": partial(_of_two, "maxf_nan", "maxs"), "minimum.default": partial(_of_two, "minf_nan", "mins"),
    "neg.default": _negated, "abs.default": _absolute, "relu.default": _relu,
    "clamp.default": _clamped, "clamp.Tensor": _clamped, "hardtanh.default": _hard_tanh,
    "where.self": _where, "where.ScalarOther": _where, "_to_copy.default": _rounded_to,
    "amax.default": partial(reduced, "maxf_nan", "maxs"), "amin.default": partial(reduced, "minf_nan", "mins"),
    "any.dim": partial(reduced, "", "ori"), "any.dims": partial(reduced, "", "ori"), "any.default": partial(reduced, "", "ori"),
    "max_pool2d_with_indices.default": partial(_max_pool, 2), "max_pool3d_with_indices.default": partial(_max_pool, 3),
    "adaptive_max_pool2d.default": _adaptive_greatest,

    # Comparison and truth values.
    "eq.Tensor": partial(_compared, "eqf", "eqi"), "eq.Scalar": partial(_compared, "eqf", "eqi"),
    "ne.Tensor": partial(_compared, "nef", "nei"), "ne.Scalar": partial(_compared, "nef", "nei"),
    "lt.Tensor": partial(_compared, "ltf", "lts"), "lt.Scalar": partial(_compared, "ltf", "lts"),
    "le.Tensor": partial(_compared, "lef", "les"), "le.Scalar": partial(_compared, "lef", "les"),
    "gt.Tensor": partial(_compared, "gtf", "gts"), "gt.Scalar": partial(_compared, "gtf", "gts"),
    "ge.Tensor": partial(_compared, "gef", "ges"), "ge.Scalar": partial(_compared, "gef", "ges"),
    "logical_and.default": partial(_bits, "andi"), "logical_or.default": partial(_bits, "ori"),
    "logical_xor.default": partial(_bits, "xori"), "bitwise_xor.Tensor": partial(_bits, "xori"),
    "bitwise_and.Tensor": partial(_bits, "andi"), "bitwise_or.Tensor": partial(_bits, "ori"),
    "bitwise_and.Scalar": partial(_bits, "andi"), "bitwise_or.Scalar": partial(_bits, "ori"),
    "bitwise_xor.Scalar": partial(_bits, "xori"),
    "logical_not.default": _not, "bitwise_not.default": _not,
}
# What rounds its result, once.
_COMPUTED: Mapping[str, Rule] = {
    # Arithmetic.
    "add.Tensor": partial(_of_two, "addf", "addi"), "add.Scalar": partial(_of_two, "addf", "addi"),
    "sub.Tensor": partial(_of_two, "subf", "subi"), "sub.Scalar": partial(_of_two, "subf", "subi"),
    "mul.Tensor": partial(_of_two, "mulf", "muli"), "mul.Scalar": partial(_of_two, "mulf", "muli"),
    "div.Tensor": partial(_of_two, "div_rn", "divs"), "div.Scalar": partial(_of_two, "div_rn", "divs"),
    "rsub.Scalar": _reversed_sub, "pow.Tensor_Scalar": _power, "pow.Tensor_Tensor": _power,
    "reciprocal.default": _reciprocal, "rsqrt.default": _inverse_root,

    # Functions and activations.
    "exp.default": partial(_row, "exp"), "log.default": partial(_row, "log"), "sqrt.default": partial(_row, "sqrt_rn"),
    "sin.default": partial(_row, "sin"), "cos.default": partial(_row, "cos"), "tanh.default": partial(_row, "tanh"),
    "erf.default": partial(_row, "erf"), "floor.default": partial(_whole, "floor"), "ceil.default": partial(_whole, "ceil"),
    "log1p.default": partial(_row, "log1p"), "expm1.default": partial(_row, "expm1"),
    "round.default": partial(_whole, "round_even"), "trunc.default": partial(_whole, "trunc"),
    "sigmoid.default": _sigmoid, "gelu.default": _gelu, "leaky_relu.default": _leaky,

    # Rows.
    "sum.dim_IntList": partial(reduced, "addf", "addi"), "sum.default": partial(reduced, "addf", "addi"),
    "prod.default": partial(reduced, "mulf", "muli"), "prod.dim_int": partial(reduced, "mulf", "muli"),
    "mean.dim": _mean, "mean.default": _mean, "var.correction": _variance,
    "_softmax.default": _softmax, "_log_softmax.default": _log_softmax, "native_layer_norm.default": _layer_norm,
    "native_group_norm.default": _group_norm, "_native_batch_norm_legit_no_training.default": _batch_norm,
    "_native_batch_norm_legit.no_stats": _instance_norm,

    # Pools.
    "avg_pool2d.default": partial(_average_pool, 2), "avg_pool3d.default": partial(_average_pool, 3),
    "_adaptive_avg_pool2d.default": _adaptive_average,
}
RULES: Mapping[str, Rule] = {**in_float32(_COMPUTED), **_EXACT}
