"""Operators that choose elements of a row: the place of the largest or smallest, and the k largest or smallest in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilefw.api.dtypes import dtype
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, contiguous
from tilefw_onnx.lowerings.rows import RowView, rows_of, typed
from tilefw_onnx.lowerings.text import KernelText, largest, least


def place_of_extreme(node: Node) -> KernelText:
    """The first or the last of the places where the extreme is."""
    source, out = node.input(0), node.output(0)
    rows = rows_of(source, (node.attributes["axis"],))
    text = rows.begin(node)
    greatest = node.operator == "ArgMax"
    x = _loaded(text, rows, source, greatest)
    best = "max" if greatest else "min"
    text.add(f"extreme = tl.{best}({x}, axis=1, keep_dims=True)", f"found = inside & ({x} == extreme)")
    if node.attributes.get("select_last_index", 0):
        text.add("result = tl.max(tl.where(found, column, 0), axis=1, keep_dims=True)")
    else:
        text.add(f"result = tl.min(tl.where(found, column, {rows.length - 1}), axis=1, keep_dims=True)")
    text.store(out, "row", typed(text, out, "result"), "known")
    return text


def top(node: Node) -> KernelText:
    """One after the other, the extreme of what is left; of equal elements the one that comes first."""
    source, (count,) = node.input(0), node.input(1).integers()
    rows = rows_of(source, (node.attributes["axis"],))
    text = rows.begin(node)
    greatest = bool(node.attributes["largest"])
    x = _loaded(text, rows, source, greatest)
    worst = (least if greatest else largest)(_element(source))
    text.add(
        "left = inside",
        f"for number in range({count}):",
        f"    extreme = tl.{'max' if greatest else 'min'}(tl.where(left, {x}, {worst}), axis=1, keep_dims=True)",
        f"    found = left & ({x} == extreme)",
        *(_above_all(x, greatest) if dtype(source.dtype).is_float else ()),
        f"    place = tl.min(tl.where(found, column, {rows.length - 1}), axis=1, keep_dims=True)",
    )
    for index, value in ((0, "extreme"), (1, "place")):
        if (out := node.optional_output(index)) is not None:
            body = KernelText(node)
            body.store(out, _nth(rows, out, count), typed(body, out, value), "known")
            text.tensors.update(body.tensors)
            text.add(*(f"    {line}" for line in body.lines))
    text.add("    left = left & (column != place)")
    return text


def _above_all(x: str, greatest: bool) -> tuple[str, ...]:
    """NaN is above all numbers, as where NumPy sorts: the first that is left where it is the turn of them."""
    many = "tl.max((left & ({x} {sign} {x})).to(tl.int32), axis=1, keep_dims=True)"
    turn = f"{many.format(x=x, sign='!=')} == 1" if greatest else f"{many.format(x=x, sign='==')} == 0"
    return (
        f"    turn = {turn}", f"    found = tl.where(turn, left & ({x} != {x}), found)",
        "    extreme = tl.where(turn, float('nan'), extreme)",
    )


def _nth(rows: RowView, out: NodeTensor, count: int) -> str:
    """The offset of element `number` of each row of the result, whose axis has `count` elements."""
    whole = contiguous(out.shape)
    (axis,) = rows.across
    row = View(whole.take(rows.along).dims).offset("row")
    assert out.shape[axis] == count
    return f"{row} + 0 * row + number * {whole.dims[axis][1]}"


def _loaded(text: KernelText, rows: RowView, source: NodeTensor, greatest: bool) -> str:
    """The row, with what never wins behind its end."""
    return rows.load(text, source, (least if greatest else largest)(_element(source)))


def _element(source: NodeTensor) -> str:
    """The type that the row is compared in."""
    return "fp32" if source.dtype in ("fp16", "bf16") else source.dtype


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {"ArgMax": place_of_extreme, "ArgMin": place_of_extreme, "TopK": top}
