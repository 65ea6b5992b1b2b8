"""Operators of PyTorch that its compiler would leave to the host, written by operators that it makes kernels of.

A convolution is a product: windows of the padded input, which are views, times the weight. Its gradients are two more. A product
of one row or column fills no tile of matrix instructions: it is a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from tilefw_torch import attention

aten = torch.ops.aten


def table() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own decompositions and these."""
    from torch._inductor.decomposition import select_decomp_table

    return {**select_decomp_table(), **_OURS, **attention.DECOMPOSITIONS}


def _windows(x: Tensor, extents: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Tensor:
    """[batch, channel, *outputs, *extents]: the elements that each output's window covers."""
    for axis, (extent, stride, dilation) in enumerate(zip(extents, strides, dilations, strict=True), 2):
        x = x.unfold(axis, (extent - 1) * dilation + 1, stride)[..., ::dilation]
    return x


def _padded(x: Tensor, before: Sequence[int], behind: Sequence[int]) -> Tensor:
    """Zeros around the spatial axes; a negative extent cuts elements off."""
    pads = [pad for pair in reversed(list(zip(before, behind, strict=True))) for pad in pair]
    return aten.constant_pad_nd(x, pads, 0.0) if any(pads) else x


def _correlated(x: Tensor, weight: Tensor, strides: Sequence[int], dilations: Sequence[int], groups: int) -> Tensor:
    """The convolution of a padded input: for each group [batch · outputs, taps] times [taps, channels]."""
    extents = weight.shape[2:]
    windows = _windows(x, extents, strides, dilations)
    batch, outputs = x.shape[0], windows.shape[2 : 2 + len(extents)]
    channels, taps = weight.shape[0] // groups, weight.shape[1]
    if taps * _product(extents) == 1 or channels == 1:
        return _summed(windows, weight, groups)
    spatial = list(range(3, 3 + len(extents)))
    inner = [i + len(extents) for i in spatial]
    grouped = windows.reshape(batch, groups, taps, *outputs, *extents).permute(1, 0, *spatial, 2, *inner)
    rows = grouped.reshape(groups, batch * _product(outputs), taps * _product(extents))
    columns = weight.reshape(groups, channels, taps * _product(extents)).transpose(1, 2)
    product = torch.mm(rows[0], columns[0])[None] if groups == 1 else torch.bmm(rows, columns)
    result = product.reshape(groups, batch, *outputs, channels)
    return result.permute(1, 0, len(extents) + 2, *range(2, len(extents) + 2)).reshape(batch, groups * channels, *outputs)


def _summed(windows: Tensor, weight: Tensor, groups: int) -> Tensor:
    """A convolution with one channel a group, such as a depthwise one: sums, no products of matrices."""
    extents, channels = weight.shape[2:], weight.shape[0] // groups
    batch, outputs = windows.shape[0], windows.shape[2 : 2 + len(extents)]
    seen = windows.reshape(batch, groups, 1, weight.shape[1], *outputs, *extents)
    factors = weight.reshape(1, groups, channels, weight.shape[1], *[1] * len(extents), *extents)
    axes = [3, *range(4 + len(extents), 4 + 2 * len(extents))]
    return (seen * factors).sum(axes).reshape(batch, groups * channels, *outputs)


def _product(extents: Sequence[int]) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result


def _spread(x: Tensor, strides: Sequence[int]) -> Tensor:
    """Zeros between the elements, stride − 1 of them."""
    for axis, stride in enumerate(strides, 2):
        if stride != 1:
            apart = aten.constant_pad_nd(x.unsqueeze(axis + 1), [0, 0] * (x.dim() - axis - 1) + [0, stride - 1], 0.0)
            x = apart.flatten(axis, axis + 1).narrow(axis, 0, (x.shape[axis] - 1) * stride + 1)
    return x


def _turned(weight: Tensor, groups: int) -> Tensor:
    """The weight of the transposed convolution: windows reversed, inputs and outputs exchanged within each group."""
    spatial = list(weight.shape[2:])
    grouped = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], *spatial).transpose(1, 2)
    return grouped.reshape(groups * weight.shape[1], weight.shape[0] // groups, *spatial).flip(list(range(2, weight.dim())))


def _padded_for_transposed(
    x: Tensor, weight: Tensor, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], extra: Sequence[int]
) -> Tensor:
    """The input of a transposed convolution as that of one which is not."""
    reach = [(extent - 1) * dilation for extent, dilation in zip(weight.shape[2:], dilations, strict=True)]
    before = [r - pad for r, pad in zip(reach, pads, strict=True)]
    behind = [b + more for b, more in zip(before, extra, strict=True)]
    return _padded(_spread(x, strides), before, behind)


def _transposed(
    x: Tensor, weight: Tensor, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int], extra: Sequence[int],
    groups: int,
) -> Tensor:
    spread = _padded_for_transposed(x, weight, strides, pads, dilations, extra)
    return _correlated(spread, _turned(weight, groups), [1] * len(strides), dilations, groups)


def _full(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> Any:
    """aten.convolution, of a batch of real numbers."""
    count = weight.dim() - 2
    if x.dim() != weight.dim() or x.is_complex() or not x.is_floating_point():
        return NotImplemented
    strides, pads, dilations = (_full(values, count) for values in (stride, padding, dilation))
    if transposed:
        result = _transposed(x, weight, strides, pads, dilations, _full(output_padding, count), groups)
    else:
        result = _correlated(_padded(x, pads, pads), weight, strides, dilations, groups)
    return result if bias is None else result + bias.reshape(1, -1, *[1] * count)


def without_transposition(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> Any:
    """aten.convolution where it is transposed: one of the input with zeros between its elements."""
    if not transposed or x.is_complex() or not x.is_floating_point():
        return NotImplemented
    count = weight.dim() - 2
    strides, pads, dilations, extra = (_full(values, count) for values in (stride, padding, dilation, output_padding))
    spread = _padded_for_transposed(x, weight, strides, pads, dilations, extra)
    return aten.convolution(spread, _turned(weight, groups), bias, [1] * count, [0] * count, dilations, False, [0] * count, groups)


def convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, bias_sizes: Sequence[int] | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> Any:
    """aten.convolution_backward, of one that is not transposed: the gradients of the input, the weight and the bias."""
    count = weight.dim() - 2
    if transposed or x.dim() != weight.dim() or x.is_complex() or not x.is_floating_point():
        return NotImplemented
    strides, pads, dilations = (_full(values, count) for values in (stride, padding, dilation))
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        # What the strides left of the input behind the last window.
        extra = [
            size + 2 * pad - (extent - 1) * gap - 1 - (outputs - 1) * step
            for size, pad, extent, gap, outputs, step in zip(
                x.shape[2:], pads, weight.shape[2:], dilations, gradient.shape[2:], strides, strict=True
            )
        ]
        of_input = _transposed(gradient, weight, strides, pads, dilations, extra, groups)
    if output_mask[1]:
        of_weight = _weight_gradient(gradient, _padded(x, pads, pads), weight, strides, dilations, groups)
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, 2 + count)])
    return of_input, of_weight, of_bias


def _weight_gradient(
    gradient: Tensor, x: Tensor, weight: Tensor, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Tensor:
    """For each group [channels, batch · outputs] times [batch · outputs, taps], of a padded input."""
    extents, count = weight.shape[2:], weight.dim() - 2
    channels, taps = weight.shape[0] // groups, weight.shape[1]
    windows = _windows(x, extents, strides, dilations)
    batch, outputs = x.shape[0], gradient.shape[2:]
    spatial = list(range(3, 3 + count))
    inner = [axis + count for axis in spatial]
    seen = windows.reshape(batch, groups, taps, *outputs, *extents).permute(1, 0, *spatial, 2, *inner)
    rows = seen.reshape(groups, batch * _product(outputs), taps * _product(extents))
    sides = gradient.reshape(batch, groups, channels, *outputs).permute(1, 2, 0, *spatial)
    columns = sides.reshape(groups, channels, batch * _product(outputs))
    product = torch.mm(columns[0], rows[0]) if groups == 1 else torch.bmm(columns, rows)
    return product.reshape(weight.shape)


def mm(left: Tensor, right: Tensor) -> Any:
    """aten.mm and aten.bmm where an extent is one, or none."""
    extents = (*left.shape[-2:], right.shape[-1])
    if left.is_complex() or not any(statically_known_true(extent <= 1) for extent in extents):
        return NotImplemented
    return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(-2, dtype=left.dtype)


def addmm(added: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    """aten.addmm where an extent is one, or none."""
    product = mm(left, right)
    if product is NotImplemented:
        return NotImplemented
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:  # what is not a number in `added` does not count
        return scaled
    return scaled + (added if beta == 1 else added * beta)


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """aten.topk: the first of all elements in order."""
    if x.dim() == 0:
        return NotImplemented
    values, places = aten.sort.stable(x, stable=True, dim=dim, descending=largest)
    return values.narrow(dim, 0, k).clone(), places.narrow(dim, 0, k).clone()


_OURS: dict[Any, Callable[..., Any]] = {
    aten.convolution.default: convolution,
    aten.convolution_backward.default: convolution_backward,
    aten.topk.default: topk,
    aten.mm.default: mm,
    aten.bmm.default: mm,
    aten.addmm.default: addmm,
}
