"""Operators of windows that move over an array: convolutions as products of matrices, and pools.

A window's element has a coordinate along each axis of space: the output's coordinate times the stride, plus the tap's times the
dilation, less the padding before. Coordinates outside of the input are padding, and nothing is read there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import ceil_div
from tilefw_onnx.lowerings import reductions
from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.places import contiguous, next_power_of_2
from tilefw_onnx.lowerings.rows import typed
from tilefw_onnx.lowerings.text import KernelText, cover, least

_BLOCK = 64
_TILE = 2048  # elements of a pool's tile of outputs and taps
_FEW_TAPS = 16  # a maximum goes over so many one after the other, as neighbouring outputs


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of space: extents of input, output and window, and how the window moves."""

    source: int
    out: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    def coordinate(self, out: str, tap: str) -> str:
        terms = [_times(out, self.stride), _times(tap, self.dilation) if self.taps > 1 else ""]
        text = " + ".join(term for term in terms if term)
        return f"{text} - {self.before}" if self.before else text

    @property
    def stays(self) -> bool:
        """Whether each output is above the input with its own number: the window is one element, which moves by one."""
        return self.taps == 1 and self.stride == 1 and self.before == 0 and self.source == self.out

    @property
    def padded(self) -> bool:
        """Whether a coordinate may be outside of the input."""
        return self.before > 0 or (self.out - 1) * self.stride + (self.taps - 1) * self.dilation - self.before >= self.source


@dataclass(frozen=True, slots=True)
class Window:
    """All axes of space."""

    axes: tuple[Axis, ...]

    @property
    def taps(self) -> int:
        return prod(axis.taps for axis in self.axes)

    @property
    def source(self) -> int:
        return prod(axis.source for axis in self.axes)

    @property
    def out(self) -> int:
        return prod(axis.out for axis in self.axes)

    def place(self, text: KernelText, out: str, tap: str) -> tuple[str, str]:
        """Write the coordinates of the tap number `tap` at the output number `out`; the offset in space, and the mask of what is
        inside of the input."""
        if all(axis.stays for axis in self.axes):
            return out, ""
        outs, taps = (contiguous([getattr(axis, what) for axis in self.axes]).dims for what in ("out", "taps"))
        strides = [stride for _, stride in contiguous([axis.source for axis in self.axes]).dims]
        masks: list[str] = []
        for number, axis in enumerate(self.axes):
            first, second = (_part(word, *dims[number], number == 0) for word, dims in ((out, outs), (tap, taps)))
            text.add(f"at{number} = {axis.coordinate(first, second)}")
            if axis.padded:
                masks.append(f"(at{number} >= 0) & (at{number} < {axis.source})")
        offset = " + ".join(_times(f"at{number}", stride) for number, stride in enumerate(strides))
        return offset, " & ".join(masks)


def _part(word: str, extent: int, stride: int, outermost: bool) -> str:
    """One coordinate of a number in row-major order."""
    text = word if stride == 1 else f"{word} // {stride}"
    return f"({text})" if outermost else f"({text} % {extent})"


def _times(word: str, factor: int) -> str:
    return word if factor == 1 else f"{word} * {factor}"


def window_of(node: Node, taps: Sequence[int]) -> Window:
    """The window of a node with so many taps along each axis of space."""
    source, out = node.input(0).shape[2:], node.output(0).shape[2:]
    rank = len(source)
    strides, dilations = (tuple(node.attributes.get(name) or (1,) * rank) for name in ("strides", "dilations"))
    pads: Sequence[int] = node.attributes.get("pads") or [0] * (2 * rank)
    before, after = list(pads[:rank]), list(pads[rank:])
    mode = node.attributes.get("auto_pad", "NOTSET")
    for axis in range(rank) if mode != "NOTSET" else ():
        reach = (out[axis] - 1) * strides[axis] + (taps[axis] - 1) * dilations[axis] + 1
        whole = max(0, reach - source[axis]) if mode.startswith("SAME") else 0
        before[axis] = whole // 2 if mode == "SAME_UPPER" else whole - whole // 2
        after[axis] = whole - before[axis]
    return Window(tuple(map(Axis, source, out, taps, strides, dilations, before, after)))


def convolution(node: Node) -> KernelText:
    """For each batch and group the weights as rows, times the windows as columns; no array of windows is made."""
    source, weight, out = node.input(0), node.input(1), node.output(0)
    window = window_of(node, weight.shape[2:])
    groups = node.attributes["group"]
    channels, inner = weight.shape[0] // groups, weight.shape[1] * window.taps
    height, width, step = (min(_BLOCK, next_power_of_2(n)) for n in (channels, window.out, inner))
    columns = ceil_div(window.out, width)
    grid = (max(1, out.shape[0] * groups) * columns, ceil_div(channels, height), 1)  # the first axis alone is beyond 65,535
    text = KernelText(node, grid=grid, elements=height * width)
    total = "tl.float64" if source.dtype == "fp64" else "tl.float32"
    text.add(
        f"part = tl.program_id(0) // {columns}", f"group = part % {groups}",
        f"row = (tl.program_id(1) * {height} + tl.arange(0, {height}))[:, None]",
        f"column = (tl.program_id(0) % {columns} * {width} + tl.arange(0, {width}))[None, :]",
        f"inside = (row < {channels}) & (column < {window.out})",
        f"channel = group * {channels} + row",
        f"total = tl.zeros(({height}, {width}), {total})",
    )
    if (bias := node.optional(2)) is not None:  # products are added to it: a compiler may do so anyway where there is one step
        text.add(f"total += {text.loaded(bias, 'channel', f'row < {channels}')}.to({total})")
    text.add(
        f"for start in range(0, {inner}, {step}):",
    )
    _products(text, node, window, inner, step)
    place = f"((part // {groups}) * {weight.shape[0]} + channel) * {window.out} + column"
    text.store(out, place, typed(text, out, "total"), "inside")
    return text


def _products(text: KernelText, node: Node, window: Window, inner: int, step: int) -> None:
    """One step along the channels and taps of a window."""
    source, weight = node.input(0), node.input(1)
    body = KernelText(node)
    body.add(f"tap = start + tl.arange(0, {step})")
    channels = weight.shape[0] // node.attributes["group"]
    known = f"(row < {channels}) & (tap[None, :] < {inner})"
    body.add(f"a = {body.loaded(weight, f'channel * {inner} + tap[None, :]', known, '0')}", "tap = tap[:, None]")
    offset, mask = window.place(body, "column", "tap" if window.taps == inner else f"(tap % {window.taps})")
    place = f"part * {weight.shape[1]} + tap // {window.taps}"
    masks = [f"(tap < {inner})", f"(column < {window.out})", *([mask] if mask else [])]
    body.add(f"b = {body.loaded(source, f'({place}) * {window.source} + {offset}', ' & '.join(masks), '0')}")
    body.add('total = tl.dot(a, b, total, input_precision="ieee", out_dtype=total.dtype)')
    text.tensors.update(body.tensors)
    text.add(*(f"    {line}" for line in body.lines))


def pool(node: Node) -> KernelText:
    """The largest, or the mean, of each window. The mean counts the padding where the node says so, but nothing behind it."""
    source, out, largest = node.input(0), node.output(0), node.operator == "MaxPool"
    window = window_of(node, node.attributes["kernel_shape"])
    if largest and window.taps <= _FEW_TAPS and node.optional_output(1) is None:
        return _largest_of_few(node, window)
    width = next_power_of_2(window.taps)
    text = KernelText(node)
    cover(text, out.size, max(1, _TILE // width))
    text.elements *= width
    text.add(
        f"tap = tl.arange(0, {width})[None, :]", f"plane = (index // {window.out})[:, None]",
        f"place = (index % {window.out})[:, None]", f"known = inside[:, None] & (tap < {window.taps})",
    )
    offset, mask = window.place(text, "place", "tap")
    text.add(f"seen = known{f' & {mask}' if mask else ''}")
    other = least(source.dtype) if largest else "0"
    x = text.loaded(source, f"plane * {window.source} + {offset}", "seen", other, wide=True)
    if largest:
        text.add(f"result = tl.max({x}, axis=1)")
        _place_of_largest(text, node, x, f"plane * {window.source} + {offset}")
    else:
        around = () if all(axis.stays for axis in window.axes) else window.axes
        counted = " & ".join(
            f"(at{n} >= {-axis.before}) & (at{n} < {axis.source + axis.after})" for n, axis in enumerate(around)
        )
        which = f"known & {counted}" if counted and node.attributes["count_include_pad"] else "seen"
        kind = "tl.float64" if dtype(source.dtype).bits == 64 else "tl.float32"
        text.add(f"count = tl.sum(({which}).to(tl.int32), axis=1)", f"result = tl.sum({x}, axis=1) / count.to({kind})")
    text.store(out, "index", typed(text, out, "result"), "inside")
    return text


def _largest_of_few(node: Node, window: Window) -> KernelText:
    """The largest of each window of few taps, which is what is so far met of it until all have passed."""
    source, out, text = node.input(0), node.output(0), KernelText(node)
    cover(text, out.size, _TILE // _FEW_TAPS)
    text.add(f"plane = index // {window.out}", f"place = index % {window.out}")
    for tap in range(window.taps):
        offset, mask = window.place(text, "place", str(tap))
        seen = f"inside & {mask}" if mask else "inside"
        x = text.loaded(source, f"plane * {window.source} + {offset}", seen, least(source.dtype), wide=True)
        text.add(f"result = tl.maximum(result, {x})" if tap else f"result = {x}")
    text.store(out, "index", typed(text, out, "result"), "inside")
    return text


def _place_of_largest(text: KernelText, node: Node, x: str, place: str) -> None:
    """The number in the input of the first element that is the largest of its window, where it is asked for."""
    out = node.optional_output(1)
    if out is None:
        return
    if node.attributes["storage_order"]:
        raise UnsupportedError("indices of a pool in column-major order", code="TFW0992")
    text.add(f"first = tl.min(tl.where(seen & ({x} == result[:, None]), {place}, {node.input(0).size}), axis=1)")
    text.store(out, "index", "first.to(tl.int64)", "inside")


def whole(reduction: str) -> Callable[[Node], KernelText]:
    """The lowering of a pool whose window is all of space, as a reduction."""

    def lower(node: Node) -> KernelText:
        axes = tuple(range(2, len(node.input(0).shape)))
        return reductions.lower(replace(node, operator=reduction, attributes={"axes": axes}))

    return lower


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {
    "Conv": convolution, "MaxPool": pool, "AveragePool": pool,
    "GlobalAveragePool": whole("ReduceMean"), "GlobalMaxPool": whole("ReduceMax"),
}
