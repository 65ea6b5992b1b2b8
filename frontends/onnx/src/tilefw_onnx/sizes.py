"""Sizes that a model leaves open, as exporters leave that of the batch: whoever reads it says them by their names.

A dim that has no name is called by its input and its place, `x.0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from tilefw.api.errors import CodeError, UsageError


def fix_sizes(graph: onnx.GraphProto, sizes: Mapping[str, int], file: str) -> None:
    """Write the sizes into the graph. Raises UsageError TFW0917 for a name or a size that it cannot have, CodeError TFW0994 where
    one of its inputs has a size that nobody says."""
    held = {one.name for one in graph.initializer}
    inputs = [info for info in graph.input if info.name not in held and info.type.WhichOneof("value") == "tensor_type"]
    named = list(dict.fromkeys(name for info in inputs for name, _ in _open(info)))
    for name, size in sizes.items():
        if name not in named:
            known = f"open sizes are {', '.join(named)}" if named else "all of its sizes are fixed"
            raise UsageError(f"{file} has no open size '{name}'", code="TFW0917", note=known)
        if size < 1:
            raise UsageError(f"size '{name}' is {size}, and a tensor has at least one element", code="TFW0917")
    lacking = [name for name in named if name not in sizes]
    if lacking:
        told = "; ".join(f"'{info.name}' has shape [{', '.join(map(str, _dims(info)))}]" for info in inputs if any(_open(info)))
        raise CodeError(
            f"{file} leaves sizes open: {told}", code="TFW0994", note="every tensor has a static shape",
            help=f"say them: --size {' '.join(f'{name}=N' for name in lacking)}",
        )
    for info in (*inputs, *graph.value_info, *graph.output):
        for name, dim in _open(info):
            if name in sizes:
                dim.dim_value = sizes[name]


def _open(info: onnx.ValueInfoProto) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """The dims without a size, and what they are called."""
    for axis, dim in enumerate(info.type.tensor_type.shape.dim):
        if dim.WhichOneof("value") != "dim_value":
            yield dim.dim_param or f"{info.name}.{axis}", dim


def _dims(info: onnx.ValueInfoProto) -> Iterator[int | str]:
    for dim in info.type.tensor_type.shape.dim:
        yield dim.dim_value if dim.WhichOneof("value") == "dim_value" else dim.dim_param or "?"
