"""Sizes that a model leaves open, as exporters leave that of the batch: whoever reads it says them by their names, or has arrays.

A dim that has no name is called by its input and its place, `x.0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import onnx

from tilefw.api.errors import CodeError, UsageError

_LARGEST = (1 << 31) - 1  # kernels count elements in 32 bits


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
        if not 0 <= size <= _LARGEST:
            raise UsageError(f"size '{name}' is {size}: a size is 0 to {_LARGEST:,}", code="TFW0917")
    lacking = [name for name in named if name not in sizes]
    if lacking:
        words = " ".join(quote(f"{name}=N") for name in lacking)
        told = "; ".join(f"'{info.name}' has shape [{', '.join(map(str, _dims(info)))}]" for info in inputs if any(_open(info)))
        raise CodeError(
            f"{file} leaves sizes open: {told}", code="TFW0994", note="every tensor has a static shape",
            help=f"say them: --size {words}, or give arrays that have them: --input X.npz",
        )
    for info in (*inputs, *graph.value_info, *graph.output):
        for name, dim in _open(info):
            dim.ClearField("dim_value")
            if name in sizes:
                dim.dim_value = sizes[name]


def sizes_of(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The open sizes that arrays of these shapes have, by the inputs' names. Raises UsageError TFW0917 where two differ in one.
    An array that has not as many dims as its input says none: it is told of when it is given to a run."""
    found: dict[str, int] = {}
    named: dict[str, str] = {}
    for info in graph.input:
        dims = info.type.tensor_type.shape.dim
        shape = shapes.get(info.name, ())
        if len(shape) != len(dims):
            continue
        for dim, size in zip(dims, shape, strict=True):
            name = next((name for name, one in _open(info) if one is dim), None)
            if name is None:
                continue
            if found.setdefault(name, size) != size:
                raise UsageError(
                    f"size '{name}' is {found[name]} in the array of '{named[name]}' and {size} in that of '{info.name}'", "TFW0917"
                )
            named.setdefault(name, info.name)
    return found


def _open(info: onnx.ValueInfoProto) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """The dims without a size, and what they are called."""
    for axis, dim in enumerate(info.type.tensor_type.shape.dim):
        if not _is_fixed(dim):
            yield dim.dim_param or f"{info.name}.{axis}", dim


def _dims(info: onnx.ValueInfoProto) -> Iterator[int | str]:
    for dim in info.type.tensor_type.shape.dim:
        yield dim.dim_value if _is_fixed(dim) else dim.dim_param or "?"


def _is_fixed(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a dim has a size; old exporters leave it open by -1."""
    return dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
