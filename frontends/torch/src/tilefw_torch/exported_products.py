"""PyTorch's sums of products as ops of the graph dialect; rules as in exported_ops.py.

Products of elements of 16 bits are exact, summed in float32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw_torch.exported_ops import chosen_row
from tilefw_torch.exported_tensor import ExportedTensor, Rule


def _matmul(b: ModuleBuilder, out: ExportedTensor, left: GraphValue, right: GraphValue) -> GraphValue:
    return b.cast(b.matmul(left, right, out.summed.dtype), out.dtype)


def _addmm(
    b: ModuleBuilder, out: ExportedTensor, added: GraphValue, left: GraphValue, right: GraphValue, *, beta: float = 1,
    alpha: float = 1,
) -> GraphValue:
    product, times = b.matmul(left, right, out.summed.dtype), chosen_row("mulf", "muli", out)
    product = product if alpha == 1 else b.map(times, product, alpha)
    if beta != 0:
        held = b.cast(added, out.summed.dtype)
        product = b.map(chosen_row("addf", "addi", out), product, held if beta == 1 else b.map(times, held, beta))
    return b.cast(product, out.dtype)


def _convolution(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, weight: GraphValue, bias: GraphValue | None, strides: Sequence[int],
    pads: Sequence[int], dilations: Sequence[int], transposed: bool, _output_pads: Sequence[int], groups: int,
) -> GraphValue:
    assert not transposed  # decompositions.without_transposition has none
    space = len(shape_of(x)) - 2
    strides, pads, dilations = ([*one] * space if len(one) == 1 else [*one] for one in (strides, pads, dilations))
    found = b.convolve(x, weight, strides, pads, pads, dilations, groups, out.summed.dtype)
    if bias is not None:
        found = b.map("addf", found, b.cast(b.reshape(bias, (shape_of(bias)[0], *[1] * space)), out.summed.dtype))
    return b.cast(found, out.dtype)


def _grouped(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, weights: GraphValue, ends: GraphValue | None = None,
    bias: GraphValue | None = None, _dtype: object = None,
) -> GraphValue:
    """Runs of rows, each times a matrix of its own, as a layer of experts has them; `ends` says before which row each run ends. All
    rows are multiplied by all matrices, and one of the products is taken: 0 behind the last run, as transformers has it."""
    if ends is None or len(shape_of(x)) != 2 or len(shape_of(weights)) != 3 or bias is not None:
        raise NotImplementedError("grouped products of other than runs of rows, or with a bias")
    experts, rows = shape_of(weights)[0], shape_of(x)[0]
    products = b.einsum(x, weights, "sk,ekn->esn", out.summed.dtype)
    place = b.iota((experts, rows), 1)
    lasts = b.broadcast(b.reshape(b.cast(ends, "int32"), (experts, 1)), (experts, rows))
    run = b.reduce("addi", b.cast(b.map("les", lasts, place), "int32"), [0], keep=True)
    own = b.reshape(b.map("eqi", run, b.iota((experts, rows), 0)), (experts, rows, 1))
    return b.cast(b.reduce("addf", b.map("select", own, products, b.full(0, products)), [0]), out.dtype)


RULES: Mapping[str, Rule] = {
    "mm.default": _matmul, "bmm.default": _matmul, "addmm.default": _addmm, "convolution.default": _convolution,
    "_grouped_mm.default": _grouped, "transformers.grouped_mm_fallback.default": _grouped,
}
