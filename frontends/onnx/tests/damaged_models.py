"""Models that are damaged on purpose: bytes of a file changed or cut off, and nodes, attributes, shapes, names of a whole model.

    python frontends/onnx/tests/damaged_models.py [COUNT] [SEED]     # a campaign; 10,000 take minutes

Each is read, with its nodes apart or fused, and must end in a graph or an error of ours.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

import onnx
import small_models
from onnx import helper

from tilefw.api.errors import KernelError
from tilefw_onnx.fused_reader import FusedReading
from tilefw_onnx.model_file import opened_bytes
from tilefw_onnx.reader import opened_graph

MODELS = (small_models.encoder, small_models.decoder, small_models.residual, small_models.depthwise)
OPERATORS = ("Relu", "Add", "MatMul", "Conv", "Reshape", "Slice", "Pad", "TopK", "Split", "If", "Resize", "Gather", "Nonsense", "")
NUMBERS = (0, 1, -1, 2, 3, -7, 64, 1 << 31, -(1 << 31), (1 << 63) - 1)


def attempt(wholes: list[bytes], seed: int) -> str:
    """Damage one model and read it, every third with its nodes fused: the code of the error, or `read`. What is no error of ours is
    raised."""
    rng = random.Random(seed)
    whole = rng.choice(wholes)
    data = _bytes(whole, rng) if rng.random() < 0.4 else _structure(whole, rng)
    try:
        opened_graph(opened_bytes(data, "damaged.onnx"), FusedReading if seed % 3 == 0 else None)
    except KernelError as error:
        assert error.code is not None
        return error.code
    return "read"


def wholes() -> list[bytes]:
    return [make()[0].SerializeToString() for make in MODELS]


def _bytes(whole: bytes, rng: random.Random) -> bytes:
    data = bytearray(whole)
    if rng.random() < 0.2:
        return bytes(data[: rng.randrange(len(data))])
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _structure(whole: bytes, rng: random.Random) -> bytes:
    model = onnx.ModelProto()
    model.ParseFromString(whole)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(_DAMAGES)(model.graph, rng)
    if rng.random() < 0.05:
        model.opset_import[0].version = rng.choice((0, 1, 7, 11, 26, 99, -1))
    return model.SerializeToString()


def _operator(graph: onnx.GraphProto, rng: random.Random) -> None:
    rng.choice(graph.node).op_type = rng.choice(OPERATORS)


def _rename(graph: onnx.GraphProto, rng: random.Random) -> None:
    """Another input, perhaps one that comes later: a cycle."""
    node = rng.choice(graph.node)
    names = [name for other in graph.node for name in (*other.input, *other.output)] + ["", "nobody"]
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)


def _drop(graph: onnx.GraphProto, rng: random.Random) -> None:
    node = rng.choice(graph.node)
    parts = [part for part in (node.input, node.output, node.attribute, graph.node, graph.initializer, graph.input) if part]
    part = rng.choice(parts)
    del part[rng.randrange(len(part))]


def _attribute(graph: onnx.GraphProto, rng: random.Random) -> None:
    node = rng.choice(graph.node)
    if not node.attribute:
        node.attribute.append(helper.make_attribute(rng.choice(("axis", "group", "perm", "mode")), rng.choice(NUMBERS)))
        return
    one = rng.choice(node.attribute)
    if one.ints:
        one.ints[rng.randrange(len(one.ints))] = rng.choice(NUMBERS)
    elif one.type == onnx.AttributeProto.INT:
        one.i = rng.choice(NUMBERS)
    else:
        one.type = rng.randrange(1, 12)


def _shape(graph: onnx.GraphProto, rng: random.Random) -> None:
    info = rng.choice([*graph.input, *graph.output])
    dims = info.type.tensor_type.shape.dim
    if dims and rng.random() < 0.7:
        dims[rng.randrange(len(dims))].dim_value = rng.choice(NUMBERS)
    else:
        info.type.tensor_type.elem_type = rng.randrange(24)


def _weight(graph: onnx.GraphProto, rng: random.Random) -> None:
    if not graph.initializer:
        return
    one = rng.choice(graph.initializer)
    kind = rng.randrange(4)
    if kind == 0 and one.dims:
        one.dims[rng.randrange(len(one.dims))] = rng.choice(NUMBERS)
    elif kind == 1:
        one.raw_data = one.raw_data[: rng.randrange(len(one.raw_data) + 1)]
    elif kind == 2:
        one.data_type = rng.randrange(24)
    else:
        one.data_location = onnx.TensorProto.EXTERNAL
        one.external_data.append(onnx.StringStringEntryProto(key="location", value=rng.choice(("none.bin", "../x", "/etc/passwd"))))


_DAMAGES: tuple[Callable[[onnx.GraphProto, random.Random], None], ...] = (_operator, _rename, _drop, _attribute, _shape, _weight)


def main(count: int = 10_000, first: int = 0) -> int:
    made, ends, bad = wholes(), Counter[str](), 0
    for seed in range(first, first + count):
        try:
            ends[attempt(made, seed)] += 1
        except Exception as error:
            bad += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
    print(", ".join(f"{code} {number}" for code, number in ends.most_common()), f"; {bad} with a traceback")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
