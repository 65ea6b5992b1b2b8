"""Products of all kinds and convolutions of all kinds as contractions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, shape_of
from tilefw_jax.element_types import is_float, kind_of, static_shape
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integer, integers, pairs
from tilefw_jax.rules.moves import flipped, spread

Values = Sequence[GraphValue]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dot_general(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """Sums of products over any dims, side by side over others."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batches = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    left, right = _factors(b, op, values)
    letters = iter(_LETTERS)
    words: list[dict[int, str]] = [{}, {}]
    for pair in (*batches, *summed):
        letter = next(letters)
        for side, dim in enumerate(pair):
            words[side][dim] = letter
    result = [words[0][dim] for dim, _ in batches]
    for side, value in enumerate((left, right)):
        for dim in range(len(shape_of(value))):
            if dim not in words[side]:
                words[side][dim] = next(letters)
                result.append(words[side][dim])
    if not all(prod(shape_of(value)) for value in (left, right)):
        return _zeros(b, op)
    spelled = ["".join(word[dim] for dim in sorted(word)) for word in words]
    found = b.einsum(left, right, f"{spelled[0]},{spelled[1]}->{''.join(result)}", _summed_as(op))
    return b.map("nei", found, 0) if kind_of(op.results[0].type) == "int1" else found


def _zeros(b: KnownValueBuilder, op: Any) -> GraphValue:
    """A sum of nothing."""
    kind, shape = kind_of(op.results[0].type), static_shape(op.results[0].type)
    zero = b.fused_map(lambda s: s.number(0, kind), shape=())[0]
    return b.broadcast(zero, shape)


def _summed_as(op: Any) -> str:
    """The type of the sums; truth values are counted."""
    kind = kind_of(op.results[0].type)
    return "int32" if kind == "int1" else kind


def _factors(b: KnownValueBuilder, op: Any, values: Values) -> list[GraphValue]:
    """The factors in one element type."""
    kinds, result = [kind_of(one.type) for one in op.operands], _summed_as(op)
    if is_float(kinds[0]) != is_float(result) or is_float(kinds[1]) != is_float(result):
        raise UnsupportedError(f"a product of {kinds[0]} and {kinds[1]} with sums of {result}", code="TFW0992")
    same = kinds[0] == kinds[1] and (is_float(result) or not kinds[0].startswith("u") or kinds[0] == result)
    return list(values) if same else [b.cast(value, result, kind) for value, kind in zip(values, kinds, strict=True)]


def convolution(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """A convolution with strides, dilations of both sides, groups of features or of the batch, and windows turned around."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel = _factors(b, op, values)
    space = len(numbers.input_spatial_dimensions)
    image = b.transpose(image, [numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions])
    kernel = b.transpose(kernel, [
        numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension, *numbers.kernel_spatial_dimensions,
    ])
    strides, kernel_dilation = (integers(op, name, 1, space) for name in ("window_strides", "rhs_dilation"))
    padding, groups = pairs(op, "padding", space), integer(op, "feature_group_count", 1)
    kernel = flipped(b, kernel, [2 + dim for dim, turned in enumerate(integers(op, "window_reversal", 0, space)) if turned])
    image = spread(b, image, [1, 1, *integers(op, "lhs_dilation", 1, space)], b.full(0, image))
    batches = integer(op, "batch_group_count", 1)
    if batches > 1:
        image, groups = _batch_groups(b, image, batches), batches
    if not all(map(prod, (shape_of(image), shape_of(kernel), static_shape(op.results[0].type)))):
        return _zeros(b, op)
    found = b.convolve(
        image, kernel, strides, [low for low, _ in padding], [high for _, high in padding], kernel_dilation, groups,
        kind_of(op.results[0].type),
    )
    order = [numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions]
    return b.transpose(found, [order.index(dim) for dim in range(len(order))])


def _batch_groups(b: KnownValueBuilder, image: GraphValue, count: int) -> GraphValue:
    """Groups of the batch as groups of features."""
    batch, features, *space = shape_of(image)
    apart = b.reshape(image, (count, batch // count, features, *space))
    turned = b.transpose(apart, [1, 0, *range(2, len(space) + 3)])
    return b.reshape(turned, (batch // count, count * features, *space))
