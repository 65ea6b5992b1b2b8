"""A region in segments computes what it computes whole, to the bit, whatever the limits; each segment keeps the unit's rules."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial import isa
from tilefw_spatial.chain import Apply, ChainLimits, Combined, Input, Literal, Node, NodeResult, legalise, segmented
from tilefw_spatial.chain.micro import Micro, MicroOperand, RegionResult, is_reduced
from tilefw_spatial.chain.native import Native
from tilefw_spatial.chain.record import operand_types
from tilefw_spatial.chain.region import steps_of
from tilefw_spatial.chain.segment_resources import SegmentResources
from tilefw_spatial.graph import ReductionKind
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import reinterpret
from tilefw_spatial.machine import load

from .running import Array, chain, run

OUTER, EVERY, LANES = 3, 4, 8
# (row, operand types, result type): native ones, and some that are expanded.
ROWS = (
    ("addf", ("fp32", "fp32"), "fp32"), ("subf", ("fp32", "fp32"), "fp32"), ("mulf", ("fp32", "fp32"), "fp32"),
    ("fma", ("fp32", "fp32", "fp32"), "fp32"), ("maxf", ("fp32", "fp32"), "fp32"), ("exp", ("fp32",), "fp32"),
    ("negf", ("fp32",), "fp32"), ("absf", ("fp32",), "fp32"), ("tanh", ("fp32",), "fp32"), ("divf", ("fp32", "fp32"), "fp32"),
    ("castf", ("fp16",), "fp32"), ("castf", ("fp32",), "fp16"), ("bitcast", ("fp32",), "int32"), ("bitcast", ("int32",), "fp32"),
    ("addi", ("int32", "int32"), "int32"), ("muli", ("int32", "int32"), "int32"), ("divu", ("int32", "int32"), "int32"),
    ("mulf", ("fp16", "fp16"), "fp16"), ("fma", ("fp16", "fp16", "fp16"), "fp16"), ("clz", ("int8",), "int8"),
    ("addi", ("int8", "int8"), "int8"), ("exts", ("int8",), "int32"), ("trunci", ("int32",), "int8"), ("extu", ("int8",), "int32"),
    ("ltf", ("fp32", "fp32"), "int1"), ("lts", ("int8", "int8"), "int1"), ("select", ("int1", "fp32", "fp32"), "fp32"),
    ("select", ("int1", "int8", "int8"), "int8"), ("xori", ("int1", "int1"), "int1"), ("extu", ("int1",), "int32"),
)
TYPES = ("fp32", "fp16", "int32", "int8", "int1")
FOLDS = {
    "fp32": (ReductionKind.ADDF, ReductionKind.MAXNUM, ReductionKind.MINF), "fp16": (ReductionKind.ADDF, ReductionKind.MAXF),
    "int32": (ReductionKind.ADDI, ReductionKind.MAXU), "int8": (ReductionKind.MINS, ReductionKind.XOR), "int1": (
        ReductionKind.ADDI, ReductionKind.MAXS
    ),
}


@st.composite
def regions(draw: st.DrawFn) -> list[NodeResult]:
    nodes: list[Node] = [Input(f"{t}{reduced}", t, reduced) for t in TYPES for reduced in (False, True)]
    nodes.append(Input("sums", "fp32", drained=True))
    nodes += [Literal(draw(st.sampled_from([0x3F800000, 0xBF800000, 0x40490FDB])), "fp32")]
    nodes += [Literal(3, "int32"), Literal(0x80, "int8")]
    for _ in range(draw(st.integers(1, 40))):
        nodes.append(draw(combined(nodes) if draw(st.integers(0, 7)) == 0 else applied(nodes)))
    chosen = draw(st.lists(st.sampled_from(nodes[len(nodes) // 2 :]), min_size=1, max_size=4))
    return [NodeResult(("result", k), node) for k, node in enumerate(chosen)]


@st.composite
def applied(draw: st.DrawFn, nodes: Sequence[Node]) -> Apply:
    row, kinds, to = draw(st.sampled_from(ROWS))
    operands = tuple(draw(st.sampled_from([node for node in nodes if node.dtype == kind])) for kind in kinds)
    return Apply(row, operands, to, fusion=draw(st.booleans()))


@st.composite
def combined(draw: st.DrawFn, nodes: Sequence[Node]) -> Combined:
    operand = draw(st.sampled_from(nodes))
    starts = [node for node in nodes if node.dtype == operand.dtype and isinstance(node, Input) and node.reduced]
    start = draw(st.sampled_from([None, *starts]))
    return Combined(draw(st.sampled_from(FOLDS[operand.dtype])), operand, EVERY, operand.dtype, start)


def inputs(seed: int) -> dict[Hashable, Array]:
    rng = np.random.default_rng(seed)

    def drawn(dtype: str, points: int) -> Array:
        if dtype == "int1":
            return rng.integers(0, 2, (points, LANES)).astype(bool)
        if isa.TYPES[dtype].is_float:
            return (rng.normal(size=(points, LANES)) * 4).astype(isa.TYPES[dtype].numpy)
        return rng.integers(-100, 100, (points, LANES)).astype(isa.TYPES[dtype].numpy)

    arrays: dict[Hashable, Array] = {"sums": drawn("fp32", OUTER * EVERY)}
    for t in TYPES:
        arrays |= {f"{t}False": drawn(t, OUTER * EVERY), f"{t}True": drawn(t, OUTER)}
    return arrays


def whole(wanted: Sequence[RegionResult], arrays: Mapping[Hashable, Array]) -> dict[Hashable, Array]:
    """The results by each step's meaning over all points, one step after the other."""
    made: dict[Micro, Array] = {}

    def read(operand: MicroOperand, dtype: str, reduced: bool) -> Any:
        source = operand.source
        if isinstance(source, Literal):
            found = immediate(dtype, source.bits)
        else:
            found = made[source] if isinstance(source, Micro) else arrays[source.key]
            found = found if reduced or not is_reduced(source) else np.repeat(found, EVERY, axis=0)
        return modified(reinterpret(found, dtype), operand.negate, operand.absolute)

    for step in steps_of(wanted):
        kinds = operand_types(Native(step.op, step.dtype))
        operands = [read(o, dtype, step.reduced) for o, dtype in zip(step.operands, kinds, strict=False)]
        if step.every:
            operands = [np.broadcast_to(operand, (OUTER * EVERY, LANES)) for operand in operands]
        found = meaning(step.op, step.dtype, operands, every=max(1, step.every))
        made[step] = np.broadcast_to(found, (OUTER if step.makes_reduced else OUTER * EVERY, LANES))
    return {key: reinterpret(made[result.micro], result.dtype) for result in wanted for key in result.keys}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(regions(), st.integers(4, 16), st.sampled_from([16, 24, 32]), st.integers(0, 99))
def test_segments_compute_what_the_region_computes(results: list[NodeResult], alus: int, streams: int, seed: int) -> None:
    wanted = legalise(results)
    arrays = inputs(seed)
    expected = whole(wanted, arrays)
    found = run(segmented(wanted, ChainLimits(alus, streams), load()), arrays, (OUTER * EVERY, LANES), EVERY)
    for result in results:
        dtype = result.node.dtype
        assert np.array_equal(reinterpret(found[result.key], _codes(dtype)), reinterpret(expected[result.key], _codes(dtype)))


def _codes(dtype: str) -> str:
    return "int1" if dtype == "int1" else f"uint{8 * isa.TYPES[dtype].nbytes}"


def test_a_softmax_is_three_fused_segments() -> None:
    x = Apply("castf", (Input("x", "fp16"),), "fp32")
    power = Apply("exp", (Apply("subf", (x, Combined(ReductionKind.MAXF, x, 64, "fp32")), "fp32"),), "fp32")
    quotient = Apply("divf", (power, Combined(ReductionKind.ADDF, power, 64, "fp32")), "fp32")
    fused_segments = chain([NodeResult("y", Apply("castf", (quotient,), "fp16"))])
    assert [[step.op for step in fused.steps] for fused in fused_segments] == [
        ["CVT.fp32", "TRED.max"], ["CVT.fp32", "SUB", "MUL", "EX2", "TRED.add"], ["RCP", "MUL", "CVT.fp16"],
    ]
    assert [read.constant for read in fused_segments[1].reads] == [False, True]


def test_a_value_is_used_at_both_rates() -> None:
    """As attention's running maximum: by all elements of a row, and by the factor that corrects the sums so far."""
    old, new, x = Input("fp32True", "fp32", True), Input("fp16True", "fp16", True), Input("fp32False", "fp32")
    most = Apply("maxf", (old, Apply("castf", (new,), "fp32")), "fp32")
    power = Apply("exp2", (Apply("subf", (x, most), "fp32"),), "fp32")
    factor = Apply("exp2", (Apply("subf", (old, most), "fp32"),), "fp32")
    total = Apply("addf", (power, most), "fp32")
    results = [NodeResult("power", power), NodeResult("factor", factor), NodeResult("most", most), NodeResult("total", total)]
    arrays = inputs(1)
    expected = whole(legalise(results), arrays)
    found = run(chain(results), arrays, (OUTER * EVERY, LANES), EVERY)
    assert all(np.array_equal(found[result.key], expected[result.key]) for result in results)


@pytest.mark.parametrize("count", [250, 1000])
def test_cutting_looks_at_each_step_as_often_however_long_the_region_is(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    take = SegmentResources.take

    def counted(self: SegmentResources, step: Micro) -> None:
        nonlocal taken
        taken += 1
        take(self, step)

    monkeypatch.setattr(SegmentResources, "take", counted)
    fused_segments = chain([NodeResult("out", long_region(count))])
    steps = sum(step.op != "MOV" for fused in fused_segments for step in fused.steps)
    assert steps >= count
    assert taken <= 17 * steps  # a segment has 16 steps at most, and one more that is too much


def long_region(count: int) -> Node:
    """A hash of two words: each round reads what several before it made."""
    words: list[Node] = [Input("int32False", "int32"), Input("int32True", "int32")]
    for k in range(count // 2):
        mixed = Apply("muli", (words[-1], words[-2]), "int32")
        words.append(Apply("xori", (mixed, words[(7 * k) % len(words[-12:]) - min(12, len(words))]), "int32"))
    return words[-1]


def test_a_product_joins_the_sum_that_alone_reads_it() -> None:
    x, y, z = (Input(name, "fp32") for name in "xyz")

    def ops(fusion: bool, row: str) -> list[str]:
        product = Apply("mulf", (x, y), "fp32", fusion)
        [fused] = chain([NodeResult("out", Apply(row, (z, product), "fp32", fusion))])
        return [step.op for step in fused.steps]

    assert ops(True, "addf") == ops(True, "subf") == ["FMA"]
    assert ops(False, "addf") == ["MUL", "ADD"]


def test_sums_of_two_sides_are_the_first_reads() -> None:
    west, east = Input("west", "fp32", drained=True), Input("east", "fp32", drained=True)
    bias = Input("bias", "fp32")
    total = Apply("addf", (Apply("addf", (bias, west), "fp32"), east), "fp32")
    [fused] = chain([NodeResult("out", Apply("castf", (total,), "fp16"))])
    assert [read.key for read in fused.reads] == ["west", "east", "bias"]
