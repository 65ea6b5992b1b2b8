"""Reductions along axes: a map of each element, a combination, and a map of the whole, by a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilefw_onnx.lowerings.node import Node
from tilefw_onnx.lowerings.rows import rows_of, typed
from tilefw_onnx.lowerings.text import KernelText, largest, least


@dataclass(frozen=True, slots=True)
class Reduction:
    """`before` maps elements `{x}`, `combine` reduces the tile `{x}` along rows, `after` maps the result `{x}` of `{n}` elements.

    `neutral` gives what stands where a row has no element, by element type, before `before` is applied.
    """

    combine: str
    before: str = "{x}"
    after: str = "{x}"
    neutral: Callable[[str], str] = lambda _: "0"


_SUM = "tl.sum({x}, axis=1, keep_dims=True)"
_PRODUCT = "tl.reduce({x}, 1, functions.multiply, keep_dims=True)"

REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceSum": Reduction(_SUM),
    "ReduceMean": Reduction(_SUM, after="{x} / {n}.0"),
    "ReduceProd": Reduction(_PRODUCT, neutral=lambda _: "1"),
    "ReduceMax": Reduction("tl.max({x}, axis=1, keep_dims=True)", neutral=least),
    "ReduceMin": Reduction("tl.min({x}, axis=1, keep_dims=True)", neutral=largest),
    "ReduceL1": Reduction(_SUM, before="tl.abs({x})"),
    "ReduceL2": Reduction(_SUM, before="{x} * {x}", after="tl.sqrt_rn({x})"),
    "ReduceSumSquare": Reduction(_SUM, before="{x} * {x}"),
    "ReduceLogSum": Reduction(_SUM, after="tl.log({x})"),
    "ReduceLogSumExp": Reduction("functions.log_sum_exp({x})", neutral=least),
}


def lower(node: Node) -> KernelText:
    """One row for each element of the output; a bool is reduced as an integer of 32 bits."""
    reduction, source, out = REDUCTIONS[node.operator], node.input(0), node.output(0)
    rows = rows_of(source, _axes(node))
    text = rows.begin(node)
    neutral = reduction.neutral(source.dtype)
    if source.dtype == "int1":
        text.add(
            f"{text.variable(source)} = tl.where(inside, {text.loaded(source, rows.offset_in(source), 'inside')}, {neutral} != 0)"
        )
        x = f"{text.variable(source)}.to(tl.int32)"
    else:
        x = rows.load(text, source, neutral)
    text.add(f"mapped = {reduction.before.format(x=x)}", f"whole = {reduction.combine.format(x='mapped')}")
    value = reduction.after.format(x="whole", n=rows.length)
    text.store(out, "row", f"{value} != 0" if out.dtype == "int1" else typed(text, out, value), "known")
    return text


def _axes(node: Node) -> tuple[int, ...]:
    """From the attribute or the second input; all, or none (`noop_with_empty_axes`), where neither names one."""
    given = node.optional(1)
    axes = given.integers() if given is not None else tuple(node.attributes.get("axes", ()))
    if axes or node.attributes.get("noop_with_empty_axes"):
        return axes
    return tuple(range(len(node.input(0).shape)))


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = dict.fromkeys(REDUCTIONS, lower)
