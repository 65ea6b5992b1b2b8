"""The tables of operators: how each is made a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw_onnx.lowerings import (
    attention,
    casts,
    coordinates,
    einsum,
    elementwise,
    flex_attention,
    gathers,
    layout,
    linear_attention,
    matmul,
    normalize,
    pads,
    quantize,
    reductions,
    scatters,
    selection,
    sequences,
    transposed_windows,
    windows,
)
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.text import KernelText

Lowering = Callable[[Node], KernelText]

OPERATORS: Mapping[str, Lowering] = {
    **dict.fromkeys(elementwise.FORMULAS, elementwise.lower),
    **casts.LOWERINGS,
    **layout.LOWERINGS,
    **reductions.LOWERINGS,
    **normalize.LOWERINGS,
    **matmul.LOWERINGS,
    **einsum.LOWERINGS,
    **attention.LOWERINGS,
    **flex_attention.LOWERINGS,
    **linear_attention.LOWERINGS,
    **sequences.LOWERINGS,
    **quantize.LOWERINGS,
}

# Those of the ONNX pack, whose editions name their number, and what models have beside.
MODEL_OPERATORS: Mapping[str, Lowering] = {
    **OPERATORS, **windows.LOWERINGS, **gathers.LOWERINGS, **pads.LOWERINGS, **selection.LOWERINGS, **scatters.LOWERINGS,
    **coordinates.LOWERINGS, **transposed_windows.LOWERINGS,
}
