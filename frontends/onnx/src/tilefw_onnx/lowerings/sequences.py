"""Operators along a sequence: rotary embeddings, causal convolutions with a state, and sums and products of all before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw_onnx.lowerings.heads import heads_of
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous, next_power_of_2
from tilefw_onnx.lowerings.rows import rows_of
from tilefw_onnx.lowerings.text import KernelText, cover, spelled


def rotary(node: Node) -> KernelText:
    """Pairs of features turned by the angle of their position; features behind `rotary_embedding_dim` stay."""
    source, out = node.input(0), node.output(0)
    heads = heads_of(source, node.attributes.get("num_heads"))
    turned = node.attributes["rotary_embedding_dim"] or heads.features
    text = KernelText(node)
    cover(text, out.size)
    text.add(f"feature = index % {heads.features}")
    _sequence_index(text, source, heads.positions, heads.count)
    if node.attributes["interleaved"]:
        text.add("pair = feature // 2", "second = feature % 2 != 0", "place = index - feature + pair * 2", "step = 1")
    else:
        half = turned // 2
        text.add(f"pair = feature % {half}", f"second = feature >= {half}", "place = index - feature + pair", f"step = {half}")
    text.add(f"turns = inside & (feature < {turned})", f"angle = {_angle(node, text, heads.positions)} * {turned // 2} + pair")
    cosine, sine = (text.loaded(node.input(i), "angle", "turns", "0.0", wide=True) for i in (1, 2))
    text.add(
        f"cosine = {cosine}", f"sine = {sine}",
        f"first = {text.loaded(source, 'place', 'turns', '0.0', wide=True)}",
        f"other = {text.loaded(source, 'place + step', 'turns', '0.0', wide=True)}",
        f"kept = {text.loaded(source, 'index', 'inside', wide=True)}",
        "result = tl.where(second, sine * first + cosine * other, cosine * first - sine * other)",
        f"result = tl.where(turns, result, kept).to({spelled(out.dtype)})",
    )
    text.store(out, "index", "result", "inside")
    return text


def _sequence_index(text: KernelText, source: NodeTensor, positions: int, heads: int) -> None:
    """`batch` and `time` of an element of (batch, head, position, feature) or (batch, position, head · feature)."""
    size = source.shape[-1]
    if len(source.shape) == 4:
        text.add(f"time = index // {size} % {positions}", f"batch = index // {size * positions * heads}")
    else:
        text.add(f"time = index // {size} % {positions}", f"batch = index // {size * positions}")


def _angle(node: Node, text: KernelText, positions: int) -> str:
    """The row of the caches: each position's own, or the one that its id names."""
    place = f"(batch * {positions} + time)"
    ids = node.optional(3)
    return place if ids is None else text.loaded(ids, place, "inside", "0")


def causal_convolution(node: Node) -> KernelText:
    """Each channel's sum of taps over what came before, with the last positions of a former call, and those for the next."""
    source, weight, out, state = node.input(0), node.input(1), node.output(0), node.output(1)
    _, channels, length = source.shape
    taps = weight.shape[2]
    width = next_power_of_2(taps)
    text = KernelText(node)
    cover(text, out.size)
    text.elements *= width
    text.add(
        f"tap = tl.arange(0, {width})[None, :]",
        f"line = (index // {length})[:, None]",
        f"channel = index // {length} % {channels}",
        f"place = (index % {length})[:, None] + tap",
        f"known = inside[:, None] & (tap < {taps})",
        f"sample = {_padded(node, text, source, taps - 1)}",
        f"factor = {text.loaded(weight, f'channel[:, None] * {taps} + tap', 'known', '0.0')}.to(tl.float32)",
        "total = tl.sum(sample * factor, axis=1)",
    )
    if (bias := node.optional(2)) is not None:
        text.add(f"total += {text.loaded(bias, 'channel', 'inside', '0.0')}.to(tl.float32)")
    text.add(f"result = total.to({spelled(out.dtype)})")
    if node.attributes["activation"] in ("silu", "swish"):
        text.add("wide = result.to(tl.float32)", f"result = (wide * functions.sigmoid(wide)).to({spelled(out.dtype)})")
    text.store(out, "index", "result", "inside")
    if state.size:
        _next_state(node, text, state, taps, length)
    return text


def _next_state(node: Node, text: KernelText, state: NodeTensor, taps: int, length: int) -> None:
    """The last positions, as many as a window looks back; the grid still covers the larger of the two outputs."""
    grid = text.grid
    cover(text, state.size)
    text.grid = max(grid, text.grid)
    text.add(f"line = index // {taps - 1}", f"place = index % {taps - 1} + {length}", "known = inside")
    text.store(state, "index", f"{_padded(node, text, node.input(0), taps - 1)}.to({spelled(state.dtype)})", "inside")


def _padded(node: Node, text: KernelText, source: NodeTensor, before: int) -> str:
    """The samples at `place` of channel `line`, in fp32. Position 0 is `before` ahead of the input: a former call's, or zeros."""
    length, past = source.shape[2], node.optional(3)
    inside = f"known & (place >= {before})"
    fresh = f"{text.loaded(source, f'line * {length} + place - {before}', inside, '0.0')}.to(tl.float32)"
    if past is None or not before:
        return fresh
    former = text.loaded(past, f"line * {before} + place", f"known & (place < {before})", "0.0")
    return f"tl.where(place < {before}, {former}.to(tl.float32), {fresh})"


_SCANS = {"CumSum": ("tl.cumsum", "0"), "CumProd": ("tl.cumprod", "1")}


def scan(node: Node) -> KernelText:
    """Along one axis. `reverse` goes through it backwards; `exclusive` begins with the neutral element and leaves out the last."""
    function, neutral = _SCANS[node.operator]
    source, out = node.input(0), node.output(0)
    (axis,) = node.input(1).integers()
    axis = axis_of(axis, len(source.shape))
    rows = rows_of(source, (axis,))
    view = _backwards(contiguous(source.shape), axis) if node.attributes["reverse"] else contiguous(source.shape)
    text = rows.begin(node)
    place, mask = rows.offset(view), "inside"
    if node.attributes["exclusive"]:
        place, mask = rows.offset(view.moved(-view.dims[axis][1])), "inside & (column > 0)"
    text.add(f"x = {text.loaded(source, place, mask, neutral)}", f"result = {function}(x, axis=1).to({spelled(out.dtype)})")
    text.store(out, rows.offset(view), "result", "inside")
    return text


def _backwards(view: View, axis: int) -> View:
    extent, stride = view.dims[axis]
    return View((*view.dims[:axis], (extent, -stride), *view.dims[axis + 1 :]), view.start + (extent - 1) * stride)


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "RotaryEmbedding": rotary, "CausalConvWithState": causal_convolution, "CumSum": scan, "CumProd": scan,
}
