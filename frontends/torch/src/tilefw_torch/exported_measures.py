"""PyTorch's norms and histograms as ops of the graph dialect; rules as in exported_ops.py."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod

from tilefw.graph.builder import GraphValue, ModuleBuilder, shape_of
from tilefw.kernels.formats import array_dtype
from tilefw_torch.exported_ops import Axes, cast, reduced
from tilefw_torch.exported_tensor import ExportedTensor, Rule, in_float32


def _norm(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, order: float = 2, axes: Axes = None, keep: bool = False, **_: object
) -> GraphValue:
    held = b.map("absf", cast(b, x, out.dtype))
    if order in (inf, -inf):
        return reduced(*(("maxf_nan", "") if order > 0 else ("minf_nan", "")), b, out, held, axes, keep)
    if order == 0:
        return reduced("addf", "", b, out, cast(b, b.map("nef", held, 0.0), out.dtype), axes, keep)
    if order == 1:
        return reduced("addf", "", b, out, held, axes, keep)
    if order == 2:
        return b.map("sqrt_rn", reduced("addf", "", b, out, b.map("mulf", held, held), axes, keep))
    total = reduced("addf", "", b, out, b.map("pow", held, float(order)), axes, keep)
    return b.map("pow", total, 1 / order)


def _distances(
    b: ModuleBuilder, out: ExportedTensor, left: GraphValue, right: GraphValue, order: float, _mode: int | None
) -> GraphValue:
    """Of each row of the left tensor from each of the right one."""
    one, other = shape_of(left), shape_of(right)
    apart = b.map("subf", b.reshape(left, (*one[:-1], 1, one[-1])), b.reshape(right, (*other[:-2], 1, *other[-2:])))
    return _norm(b, out, apart, order, -1)


def _histogram(
    b: ModuleBuilder, out: ExportedTensor, x: GraphValue, bins: int = 100, least: float = 0, most: float = 0
) -> GraphValue:
    """How many elements are in each of the parts of a range, which has its upper end; each part looks through all elements."""
    if least == most:
        raise NotImplementedError("histc whose range is that of its elements")
    count = prod(shape_of(x))
    held = cast(b, b.reshape(x, (1, count)), out.dtype)
    # As PyTorch has it (HistogramKernel.cpp, SummaryOps.cu): where a part ends follows from what is rounded.
    kind = array_dtype(out.dtype).type
    width = float(kind(most) - kind(least))
    place = b.map("floor", b.map("div_rn", b.map("mulf", b.map("subf", held, least), float(bins)), width))
    last = b.map("select", b.map("eqf", place, float(bins)), b.full(bins - 1, place), place)
    inside = b.map("andi", b.map("gef", held, least), b.map("lef", held, most))
    own = b.map("eqf", b.cast(b.iota((bins, 1), 0), out.dtype), last)
    return b.reduce("addf", cast(b, b.map("andi", own, inside), out.dtype), [1]) if count else b.full(0, held)


RULES: Mapping[str, Rule] = in_float32({
    "linalg_vector_norm.default": _norm, "histc.default": _histogram, "_cdist_forward.default": _distances,
})
