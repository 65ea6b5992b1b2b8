"""FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through graphs that the node brings."""

from __future__ import annotations

from tilefw_onnx.lowerings.attention import computed_in, scale_root, softmax_type
from tilefw_onnx.lowerings.heads import begin, heads_of, load_cached, load_query
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.subgraph import written
from tilefw_onnx.lowerings.text import KernelText, spelled


def lower(node: Node) -> KernelText:
    """Scores are products in the inputs' type; from there on everything is in the softmax's, at least fp32."""
    query, keys, values = (heads_of(node.input(i), None) for i in range(3))
    text = begin(node, query, keys, values, keys.positions)
    load_query(text, query)
    load_cached(text, "k", keys, None, "feature")
    load_cached(text, "v", values, None, "value_feature")
    root, computed = scale_root(node, query), computed_in(softmax_type(node))
    text.add(
        f'score = tl.dot(q * {root}, tl.trans(k * {root}), input_precision="ieee")'
        f".to({spelled(query.tensor.dtype)}).to({computed})"
    )
    shape = (query.batch, query.count, query.positions, keys.positions)
    if (graph := node.attributes.get("score_mod")) is not None:
        text.add(f"score = {written(graph, 'score', shape)}")
    text.add(
        f"score = tl.where(key < {keys.positions}, score, float('-inf'))",
        "power = tl.exp(score - tl.max(score, axis=1, keep_dims=True))",
        "probability = power / tl.sum(power, axis=1, keep_dims=True)",
    )
    if (graph := node.attributes.get("prob_mod")) is not None:
        text.add(f"probability = {written(graph, 'probability', shape)}")
        text.add(f"probability = tl.where(key < {keys.positions}, probability, 0.0)")
    out = heads_of(node.output(0), None)
    text.add(f'result = tl.dot(probability, v.to({computed}), input_precision="ieee").to({spelled(out.tensor.dtype)})')
    mask = f"(query < {query.positions}) & (value_feature < {values.features})"
    text.store(out.tensor, out.offset_of("head", "query", "value_feature"), "result", mask)
    return text


LOWERINGS = {"FlexAttention": lower}
