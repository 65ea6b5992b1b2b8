"""LinearAttention: a state of keys by values that each position decays, corrects and adds to, and that queries read.

A program has one head of keys, and carries its state in registers from position to position, in fp32.
"""

from __future__ import annotations

from math import sqrt

from tilefw_onnx.lowerings.heads import Heads, heads_of
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import next_power_of_2
from tilefw_onnx.lowerings.text import KernelText, spelled


def lower(node: Node) -> KernelText:
    query = heads_of(node.input(0), node.attributes["q_num_heads"])
    keys, values = (heads_of(node.input(i), node.attributes["kv_num_heads"]) for i in (1, 2))
    height, width = next_power_of_2(keys.features), next_power_of_2(values.features)
    text = KernelText(node, grid=(keys.batch * keys.count, 1, 1), elements=height * width)
    text.add(
        f"batch = tl.program_id(0) // {keys.count}",
        f"head = tl.program_id(0) % {keys.count}",
        f"row = tl.arange(0, {height})[:, None]",
        f"column = tl.arange(0, {width})[None, :]",
        f"in_row = row < {keys.features}",
        f"in_column = column < {values.features}",
    )
    past, state = node.optional(3), heads_of(node.output(1), None)
    text.add(f"state = {_initial(text, past, height, width)}", f"for time in range(0, {keys.positions}):")
    text.add(*(f"    {line}" for line in _step(node, text, query, keys, values)))
    kind = spelled(state.tensor.dtype)
    text.store(state.tensor, state.offset_of("head", "row", "column"), f"state.to({kind})", "in_row & in_column")
    return text


def _initial(text: KernelText, past: NodeTensor | None, height: int, width: int) -> str:
    if past is None:
        return f"tl.zeros(({height}, {width}), tl.float32)"
    offset = heads_of(past, None).offset_of("head", "row", "column")
    return f"{text.loaded(past, offset, 'in_row & in_column', '0.0')}.to(tl.float32)"


def _step(node: Node, text: KernelText, query: Heads, keys: Heads, values: Heads) -> list[str]:
    """One position: decay, correction, the new outer product, and each query head's reading."""
    lines = [
        f"k = {_vector(text, keys, 'head', 'row', 'in_row')}",
        f"v = {_vector(text, values, 'head', 'column', 'in_column')}",
    ]
    rule = node.attributes["update_rule"]
    if rule in ("gated", "gated_delta"):
        lines.append(f"state = state * tl.exp({_gate(text, node.input(4), keys)})")
    if rule in ("delta", "gated_delta"):
        lines += ["found = tl.sum(state * k, axis=0, keep_dims=True)", f"v = {_scalar(text, node.input(5))} * (v - found)"]
    lines.append("state = state + k * v")
    scale = node.attributes.get("scale") or 1 / sqrt(keys.features)
    out = heads_of(node.output(0), query.count)
    group = query.count // keys.count
    for member in range(group):
        head = f"(head * {group} + {member})"
        place = f"{out.offset_of(head, 'time', 'column')}"
        lines += [
            f"q = {_vector(text, query, head, 'row', 'in_row')}",
            f"read = {scale!r} * tl.sum(state * q, axis=0, keep_dims=True)",
            f"tl.store({text.pointer(out.tensor)} + {place}, read.to({spelled(out.tensor.dtype)}), mask=in_column)",
        ]
    return lines


def _vector(text: KernelText, heads: Heads, head: str, feature: str, mask: str) -> str:
    return f"{text.loaded(heads.tensor, heads.offset_of(head, 'time', feature), mask, '0.0')}.to(tl.float32)"


def _gate(text: KernelText, decay: NodeTensor, keys: Heads) -> str:
    """One decay for each feature of the keys, or one for the head."""
    if decay.shape[-1] == keys.count:
        return _scalar(text, decay)
    return _vector(text, heads_of(decay, keys.count), "head", "row", "in_row")


def _scalar(text: KernelText, tensor: NodeTensor) -> str:
    """The number of this head, of (batch, position, heads) or (batch, position, 1)."""
    _, positions, heads = tensor.shape
    head = " + head" if heads > 1 else ""
    return f"tl.load({text.pointer(tensor)} + (batch * {positions} + time) * {heads}{head}).to(tl.float32)"


LOWERINGS = {"LinearAttention": lower}
