"""Writes feed_forward.onnx: x + W2 · gelu(W1 · norm(x) + b), as a model with seeded weights."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, WIDTH, HIDDEN = 16, 32, 64
rng = np.random.default_rng(0)
shapes = {"scale": (WIDTH,), "shift": (WIDTH,), "w1": (WIDTH, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, WIDTH)}
weights = [numpy_helper.from_array(0.2 * rng.standard_normal(shape, np.float32), name) for name, shape in shapes.items()]
nodes = [
    helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["normed"], name="norm"),
    helper.make_node("Gemm", ["normed", "w1", "b1"], ["up"], name="up"),
    helper.make_node("Gelu", ["up"], ["active"], name="gelu"),
    helper.make_node("MatMul", ["active", "w2"], ["down"], name="down"),
    helper.make_node("Add", ["x", "down"], ["y"], name="residual"),
]
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, WIDTH]) for name in "xy")
graph = helper.make_graph(nodes, "feed_forward", [x], [y], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), "feed_forward.onnx")
