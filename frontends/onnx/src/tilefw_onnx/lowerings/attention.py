"""Attention of ai.onnx: grouped heads, a cache, additive and boolean masks, causal and windowed, softcap, the scores as output.

Every product, sum and quotient is rounded to the element type of the inputs where ONNX's function body has a tensor of it, so that
the reference's bounds cover ONNX's values too; products of matrices are summed in fp32.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from onnx import TensorProto

from tilefw.kernels import formats
from tilefw_onnx.lowerings.heads import (
    Heads,
    begin,
    broadcast_strides,
    heads_of,
    load_cached,
    load_query,
    strided,
)
from tilefw_onnx.lowerings.node import ELEMENT_TYPES, Node, NodeTensor
from tilefw_onnx.lowerings.text import KernelText, spelled

_SCORES_AFTER_SOFTCAP, _SCORES_WITH_BIAS, _SCORES_AFTER_SOFTMAX = 1, 2, 3


def lower(node: Node) -> KernelText:
    given = node.attributes
    query = heads_of(node.input(0), given.get("q_num_heads"))
    keys, values = (heads_of(node.input(i), given.get("kv_num_heads")) for i in (1, 2))
    past_keys, past_values = (None if (past := node.optional(i)) is None else heads_of(past, None) for i in (4, 5))
    cached = 0 if past_keys is None else past_keys.positions
    length = cached + keys.positions
    text = begin(node, query, keys, values, length)
    load_query(text, query)
    load_cached(text, "k", keys, past_keys, "feature")
    load_cached(text, "v", values, past_values, "value_feature")
    for index, tile, feature, whole in ((1, "k", "feature", keys), (2, "v", "value_feature", values)):
        _present(node, text, index, tile, feature, whole, length)
    _scores(node, text, query, keys, length)
    masked = _bias(node, text, query, cached, length)
    _softmax(node, text, query, length, masked)
    kind = spelled(query.tensor.dtype)
    out = heads_of(node.output(0), query.count)
    mask = f"(query < {query.positions}) & (value_feature < {values.features})"
    text.add(f'result = tl.dot(probability.to({kind}), v, input_precision="ieee").to({kind})')
    text.store(out.tensor, out.offset_of("head", "query", "value_feature"), "result", mask)
    return text


def scale_root(node: Node, query: Heads) -> str:
    """The square root of the scale, in the queries' type: it multiplies queries and keys alike."""
    scale = node.attributes.get("scale") or 1 / sqrt(query.features)
    name = query.tensor.dtype
    return repr(float(formats.decode(formats.encode(np.array([sqrt(scale)]), name), name)[0]))


def _scores(node: Node, text: KernelText, query: Heads, keys: Heads, length: int) -> None:
    """`score`: the scaled products of queries and keys, capped where the node says so."""
    kind, root = spelled(query.tensor.dtype), scale_root(node, query)
    text.add(f'score = tl.dot(q * {root}, tl.trans(k * {root}), input_precision="ieee").to({kind})')
    mode = node.attributes["qk_matmul_output_mode"]
    if mode == 0:
        _output(node, text, query, length, "score")
    if cap := node.attributes["softcap"]:
        text.add(f"score = (score.to(tl.float32) / {cap!r}).to({kind})")
        text.add(f"score = (libdevice.tanh(score.to(tl.float32)).to({kind}) * {cap!r}).to({kind})")
    if mode == _SCORES_AFTER_SOFTCAP:
        _output(node, text, query, length, "score")


def _bias(node: Node, text: KernelText, query: Heads, cached: int, length: int) -> bool:
    """Add the mask, minus infinity where a key may not be seen; returns whether a row may see none."""
    mask, allowed = node.optional(3), _allowed(node, text, query, cached)
    if mask is None and not allowed:
        _after_bias(node, text, query, length)
        return False
    text.add(f"bias = {_mask(text, query, mask, length) if mask is not None else 'tl.zeros_like(score)'}")
    for condition in allowed:
        text.add(f"bias = tl.where({condition}, bias, float('-inf'))")
    text.add(f"bias = tl.where(key < {length}, bias, float('-inf')).to(score.dtype)", "score = score + bias")
    _after_bias(node, text, query, length)
    return True


def _after_bias(node: Node, text: KernelText, query: Heads, length: int) -> None:
    if node.attributes["qk_matmul_output_mode"] == _SCORES_WITH_BIAS:
        _output(node, text, query, length, "score")


def _mask(text: KernelText, query: Heads, mask: NodeTensor, length: int) -> str:
    """The mask as a bias: a bool chooses, a number is added; keys beyond a shorter mask are not seen."""
    shape = (query.batch, query.count, query.positions, mask.shape[-1])
    place = strided(broadcast_strides(mask, shape), ("batch", "head", "query", "key"))
    known = f"(query < {query.positions}) & (key < {min(length, mask.shape[-1])})"
    # A mask of one column or row still has a place for each element of the tile.
    place = f"{place} + query * 0 + key * 0"
    if mask.dtype == "int1":
        return f"tl.where({text.loaded(mask, place, known)} & {known}, 0.0, float('-inf'))"
    return text.loaded(mask, place, known, "float('-inf')")


def _allowed(node: Node, text: KernelText, query: Heads, cached: int) -> list[str]:
    """Conditions on `query` and `key` that all must hold, by the query's place among all keys."""
    filled = node.optional(6)
    if filled is not None:
        text.add(f"filled = tl.load({text.pointer(filled)} + batch).to(tl.int32)")
    text.add(f"place = query + {f'filled - {query.positions}' if filled is not None else cached}")
    windows = {
        "is_causal": "key <= place",
        "left_window_size": "place - key <= {}", "right_window_size": "key - place <= {}",
    }
    absent = {"is_causal": 0, "left_window_size": -1, "right_window_size": -1}
    said = [(name, node.attributes.get(name, absent[name])) for name in windows]
    conditions = [windows[name].format(value) for name, value in said if value != absent[name]]
    return conditions + (["key < filled"] if filled is not None else [])


def softmax_type(node: Node) -> str:
    """The element type that the softmax is rounded to: the queries' where the node names none."""
    named = node.attributes.get("softmax_precision")
    return ELEMENT_TYPES[TensorProto.DataType.Name(named)] if named else node.input(0).dtype


def computed_in(name: str) -> str:
    """The element type in which floats of type `name` are computed, as kernels write it."""
    return spelled("fp64" if name == "fp64" else "fp32")


def _softmax(node: Node, text: KernelText, query: Heads, length: int, masked: bool) -> None:
    """`probability`, rounded to the precision of the softmax at each step; a row that sees no key is zero."""
    kind = softmax_type(node)
    computed = computed_in(kind)
    rounded = f".to({spelled(kind)}).to({computed})"
    text.add(
        f"score = tl.where(key < {length}, score.to({computed}){rounded}, float('-inf'))",
        "peak = tl.max(score, axis=1, keep_dims=True)",
        "peak = tl.where(peak == float('-inf'), 0.0, peak)",
        f"power = tl.exp((score - peak){rounded}){rounded}",
        f"total = tl.sum(power.to({spelled(kind)}), axis=1, keep_dims=True).to({computed})",
        f"probability = (power / tl.where(total == 0, 1.0, total)){rounded}",
    )
    if masked:
        text.add("probability = tl.where(tl.max(bias, axis=1, keep_dims=True) == float('-inf'), 0.0, probability)")
    if node.attributes["qk_matmul_output_mode"] == _SCORES_AFTER_SOFTMAX:
        _output(node, text, query, length, "probability")


def _present(node: Node, text: KernelText, index: int, tile: str, feature: str, whole: Heads, length: int) -> None:
    """The cache as an output: the first of the query heads that share a head of keys writes it."""
    out = node.optional_output(index)
    if out is None:
        return
    present = heads_of(out, None)
    query_heads = heads_of(node.input(0), node.attributes.get("q_num_heads")).count
    mask = f"(position < {length}) & ({feature} < {whole.features}) & (head % {query_heads // whole.count} == 0)"
    text.store(out, present.offset_of("kv_head", "position", feature), tile, mask)


def _output(node: Node, text: KernelText, query: Heads, length: int, value: str) -> None:
    """The scores as they are now, where the node has the output."""
    if (out := node.optional_output(3)) is not None:
        place = heads_of(out, None).offset_of("head", "query", "key")
        text.store(out, place, f"{value}.to({spelled(out.dtype)})", f"(query < {query.positions}) & (key < {length})")


LOWERINGS = {"Attention": lower}
