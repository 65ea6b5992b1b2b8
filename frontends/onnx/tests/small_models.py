"""Tiny models with seeded weights, built with onnx.helper: encoder layers as BERT's, a decoder layer as Llama's, a residual
block as ResNet's, an inverted bottleneck as MobileNet's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 8, 16, 2, 32, 20
HEAD = WIDTH // HEADS


class ModelText:
    """Nodes and weights of a model as they come to be used. Every node is called by its operator and number."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        number = len(self.nodes)
        self.nodes.append(helper.make_node(operator, inputs, [f"t{number}"], name=f"/{operator}_{number}", **attributes))
        return f"t{number}"

    def weight(self, *shape: int, scale: float | None = None) -> str:
        spread = shape[0] ** -0.5 if scale is None else scale
        return self.constant((spread * self.rng.standard_normal(shape)).astype(np.float32))

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def model(self, inputs: dict[str, tuple[int, list[Any]]], output: str, shape: list[int]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes, "model", [helper.make_tensor_value_info(name, *told) for name, told in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def encoder(layers: int = 1) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = ModelText(0)
    x = made.node("Gather", made.weight(WORDS, WIDTH, scale=1.0), "ids", axis=0)
    x = _normed(made, x)
    for _ in range(layers):
        x = _normed(made, made.node("Add", _attention(made, x, "mask"), x))
        up = made.node("Gelu", made.node("MatMul", x, made.weight(WIDTH, HIDDEN)))
        x = _normed(made, made.node("Add", made.node("MatMul", up, made.weight(HIDDEN, WIDTH)), x))
    inputs = {"ids": (TensorProto.INT64, [1, LENGTH]), "mask": (TensorProto.BOOL, [1, 1, 1, LENGTH])}
    model = made.model(inputs, x, [1, LENGTH, WIDTH])
    mask = np.arange(LENGTH).reshape(1, 1, 1, LENGTH) < 6
    return model, {"ids": made.rng.integers(0, WORDS, (1, LENGTH)), "mask": mask}


def decoder() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """RMS norm by its parts, rotary embeddings by halves, causal mask, gated feed-forward."""
    made = ModelText(1)
    x = made.node("Add", _attention(made, _rms(made, "x"), None), "x")
    normed = _rms(made, x)
    gate = made.node("MatMul", normed, made.weight(WIDTH, HIDDEN))
    up = made.node("MatMul", normed, made.weight(WIDTH, HIDDEN))
    gate = made.node("Mul", made.node("Mul", gate, made.node("Sigmoid", gate)), up)
    x = made.node("Add", made.node("MatMul", gate, made.weight(HIDDEN, WIDTH)), x)
    model = made.model({"x": (TensorProto.FLOAT, [1, LENGTH, WIDTH])}, x, [1, LENGTH, WIDTH])
    return model, {"x": made.rng.standard_normal((1, LENGTH, WIDTH)).astype(np.float32)}


def residual() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A stem with its pool, one block whose branch is strided and projected, a classifier."""
    made = ModelText(2)
    x = made.node("Relu", _scaled(made, _convolved(made, "x", 3, 8, 3, 2), 8))
    x = made.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    branch = made.node("Relu", _scaled(made, _convolved(made, x, 8, 12, 3, 2), 12))
    branch = _scaled(made, _convolved(made, branch, 12, 12, 3, 1), 12)
    x = made.node("Relu", made.node("Add", branch, _scaled(made, _convolved(made, x, 8, 12, 1, 2), 12)))
    x = made.node("Flatten", made.node("GlobalAveragePool", x))
    x = made.node("Gemm", x, made.weight(12, 10), made.weight(10))
    return _of_image(made, x, [2, 10], 17)


def depthwise() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Expanded by 1 x 1, each channel alone by 3 x 3, scaled by what all of a channel says, and back, with the residual."""
    made = ModelText(3)
    x = made.node("HardSwish", _convolved(made, "x", 3, 8, 3, 2))
    wide = made.node("HardSwish", _convolved(made, x, 8, 16, 1, 1))
    wide = made.node("HardSwish", _convolved(made, wide, 16, 16, 3, 1, group=16))
    gate = made.node("Relu", _convolved(made, made.node("GlobalAveragePool", wide), 16, 4, 1, 1))
    gate = made.node("HardSigmoid", _convolved(made, gate, 4, 16, 1, 1), alpha=1 / 6, beta=0.5)
    x = made.node("Add", _convolved(made, made.node("Mul", wide, gate), 16, 8, 1, 1), x)
    pooled = made.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    return _of_image(made, pooled, [2, 8, 3, 3], 9)


def _of_image(made: ModelText, output: str, shape: list[int], size: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    model = made.model({"x": (TensorProto.FLOAT, [2, 3, size, size])}, output, shape)
    return model, {"x": made.rng.standard_normal((2, 3, size, size)).astype(np.float32)}


def _convolved(made: ModelText, x: str, channels: int, results: int, taps: int, stride: int, group: int = 1) -> str:
    depth = channels // group
    weight = made.weight(results, depth, taps, taps, scale=(depth * taps * taps) ** -0.5)
    return made.node(
        "Conv", x, weight, made.weight(results), kernel_shape=[taps] * 2, strides=[stride] * 2, pads=[taps // 2] * 4, group=group
    )


def _scaled(made: ModelText, x: str, channels: int) -> str:
    variance = made.constant((0.5 + made.rng.random(channels)).astype(np.float32))
    return made.node("BatchNormalization", x, *(made.weight(channels) for _ in range(3)), variance)


def _normed(made: ModelText, x: str) -> str:
    return made.node("LayerNormalization", x, made.weight(WIDTH, scale=1.0), made.weight(WIDTH), axis=-1)


def _rms(made: ModelText, x: str) -> str:
    mean = made.node("ReduceMean", made.node("Pow", x, made.constant(np.float32(2))), made.integers(-1), keepdims=1)
    root = made.node("Sqrt", made.node("Add", mean, made.constant(np.float32(1e-5))))
    return made.node("Mul", made.node("Mul", x, made.node("Reciprocal", root)), made.weight(WIDTH, scale=1.0))


def _attention(made: ModelText, x: str, mask: str | None) -> str:
    """With a mask as BERT's; without one causal, queries and keys rotated. The shape of the heads is computed as exporters do."""
    known = made.node("Slice", made.node("Shape", x), made.integers(0), made.integers(2))
    shape = made.node("Concat", known, made.integers(HEADS, HEAD), axis=0)
    q, k, v = (made.node("Reshape", made.node("MatMul", x, made.weight(WIDTH, WIDTH)), shape) for _ in range(3))
    q, v = (made.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    k = made.node("Transpose", k, perm=[0, 2, 1, 3])
    if mask is None:
        q, k = _rotated(made, q), _rotated(made, k)
    scores = made.node("MatMul", q, made.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = made.node("Mul", scores, made.constant(np.float32(HEAD**-0.5)))
    seen = mask or made.constant(np.tril(np.ones((LENGTH, LENGTH), bool)))
    scores = made.node("Where", seen, scores, made.constant(np.float32(-1e9)))
    mixed = made.node("Transpose", made.node("MatMul", made.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return made.node("MatMul", made.node("Reshape", mixed, made.integers(1, LENGTH, WIDTH)), made.weight(WIDTH, WIDTH))


def _rotated(made: ModelText, x: str) -> str:
    half = HEAD // 2
    angles = np.arange(LENGTH)[:, None] * 10000.0 ** (-np.arange(half) / half)
    cosine, sine = (made.constant(np.tile(f(angles), 2).astype(np.float32)) for f in (np.cos, np.sin))
    low = made.node("Slice", x, made.integers(0), made.integers(half), made.integers(-1))
    high = made.node("Slice", x, made.integers(half), made.integers(HEAD), made.integers(-1))
    turned = made.node("Concat", made.node("Neg", high), low, axis=-1)
    return made.node("Add", made.node("Mul", x, cosine), made.node("Mul", turned, sine))
