"""Plain pointer kernels and a copy engine, by description alone: a loop's loads are blocks of arrays where that is sure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from library_on_chips import check, lowered
from made_up import ENGINE, FOURS
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

import tilefw
import tilefw.language as tl
from tilefw.copy_descriptors import CopyDescriptor
from tilefw.frontend import build_module
from tilefw.passes.integer_ranges import IntegerRanges
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.passes import lane_passes
from tilefw.simt.software_pipeline.walked_block import walked_block
from tilefw.simt.software_pipeline.whole_arrays import WholeArrays
from tilefw.testing.lane_interpreter import run
from tilefw.tile.dialect.block_ops import LoadBlockOp
from tilefw.tile.dialect.kernel_info import argument_attributes, hidden_of, is_argument
from tilefw.tile.dialect.memory_ops import LoadOp
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.offset_arithmetic import offset_arithmetic

TILES = {"block_m": 32, "block_n": 32, "block_k": 32}
WHOLE, CUT = {"m": 64, "n": 64, "k": 160, **TILES}, {"m": 48, "n": 80, "k": 112, **TILES}


@pytest.mark.parametrize("parameters", [WHOLE, CUT, {**CUT, "k": 16}, {**CUT, "bias": True, "activation": "gelu"}], ids=str)
def test_a_product_through_pointers_is_right_and_comes_by_the_engine_alone(parameters: dict[str, Any]) -> None:
    """Rows that wrap around, terms that are masked off, and fewer iterations than stages."""
    function, *_ = lowered("matmul", parameters, ENGINE)
    copies = {type(op) for op in nested_ops(function) if isinstance(op, lane.CopyAsyncOp | lane.BulkCopyOp)}
    assert copies == {lane.BulkCopyOp}
    check("matmul", parameters, ENGINE)


def test_heads_of_batches_are_further_dims_of_an_array() -> None:
    """Of which a block is one element, from where programs divided by their number say."""
    parameters = {"heads": 2, "queries": 32, "keys": 80, "head_size": 32, "block_m": 32, "block_n": 32, "causal": False}
    function, *_ = lowered("attention", parameters, ENGINE)
    recipes = [CopyDescriptor.of(hidden_of(argument_attributes(function, i))) for i in range(len(function.body.block.args))]
    found = [(recipe.extents[2:], len(recipe.divisors)) for recipe in recipes if recipe is not None]
    assert found and set(found) == {((1, 1), 1)}
    assert not [op for op in nested_ops(function) if isinstance(op, lane.CopyAsyncOp)]
    check("attention", parameters, ENGINE)


def test_masks_and_wraps_are_the_sizes_that_the_launch_tells() -> None:
    function, *_ = lowered("matmul", CUT, ENGINE)
    attributes = [argument_attributes(function, i) for i in range(len(function.body.block.args))]
    names = [str(each["tile.name"].data) for each in attributes]
    a, b = (recipe for each in attributes if (recipe := CopyDescriptor.of(hidden_of(each))) is not None)
    assert [names[int(size)] for size in (*a.sizes, *b.sizes)] == ["K", "M", "N", "K"]
    assert [names[int(stride)] for stride in (*a.strides, *b.strides)] == ["stride_am", "stride_bk"]


@pytest.mark.parametrize("parameters", [{"k": 104, "n": 72}, {"num_stages": 1}], ids=str)
def test_what_the_engine_would_not_take_stays_as_it_is(parameters: dict[str, Any]) -> None:
    """Rows that begin anywhere, and what nothing issues early: as on a chip without an engine."""
    texts = [str(lowered("matmul", {**CUT, **parameters}, chip)[0]) for chip in (ENGINE, FOURS)]
    assert "lane.bulk_copy" not in texts[0]
    assert texts[0] == texts[1]


SIGNATURE = {"a": "*fp16:16", "b": "*fp16:16", "out": "*fp32:16", "m": "i32", "k": "i32:16", "row": "i32:16", "begin": "i32"}


@tilefw.jit
def walk(a, b, out, m, k, row, begin, KIND: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    if KIND == "rows before the array":
        rows = begin + tl.arange(0, B)
    columns, terms = tl.arange(0, B), tl.arange(0, B)
    if KIND == "stored to by assembly":
        tl.inline_asm_elementwise("st.global.b32 [$1], 0; mov.b32 $0, 0;", "=r,l", [a + terms], tl.int32, is_pure=False, pack=1)
    places = rows % m if KIND != "no wrap" else rows
    if KIND == "another row":
        places = tl.where(rows < m, rows, 0)
    if KIND == "another comparison":
        places = tl.where(rows <= m, rows, 0)
    a_ptrs = a + places[:, None] * row + terms[None, :]
    b_ptrs = b + columns[None, :] * row + terms[:, None]
    total = tl.zeros((B, B), tl.float32)
    for step in range(0, tl.cdiv(k, B)):
        left = k - step * B
        if KIND == "another mask":
            left = k - step
        x = tl.load(a_ptrs, mask=terms[None, :] < left, other=1.0 if KIND == "another filling" else 0.0)
        total += tl.dot(x, tl.load(b_ptrs, mask=terms[:, None] < left, other=0.0))
        a_ptrs += B * step if KIND == "uneven steps" else B
        b_ptrs += B
    if KIND == "summed rows":
        total += tl.sum(total, 0)[None, :]
    within = rows[:, None] < (m + 1 if KIND == "a row more" else m)
    if KIND == "all rows stored":
        within = columns[None, :] < B
    tl.store(out + rows[:, None] * B + columns[None, :], total, mask=within)


def blocks_of_arguments(kind: str) -> int:
    """How many loads of the loop are told from the beginning of their arrays."""
    module = build_module(walk, SIGNATURE, {"KIND": kind, "B": 32})
    PassManager([*default_passes(), WholeArrays(LaneMachine(ENGINE, 4), 3)], verify_each=True).run(module)
    return sum(isinstance(op, LoadBlockOp) and is_argument(op.base) for op in nested_ops(module))


@pytest.mark.parametrize("kind", ["as it should be", "no wrap", "another row"])
def test_blocks_are_told_from_the_beginning_of_their_arrays(kind: str) -> None:
    assert blocks_of_arguments(kind) == 2


@pytest.mark.parametrize(
    "kind",
    [
        "all rows stored", "a row more", "summed rows", "another filling", "uneven steps", "another mask", "stored to by assembly",
        "another comparison",
    ],
)
def test_rows_that_somebody_reads_steps_that_differ_and_arrays_that_change_stay_with_lanes(kind: str) -> None:
    """With the other operand, of which all is known."""
    assert blocks_of_arguments(kind) == 0


@tilefw.jit
def tile_after_tile(a, b, out, m, k, row, begin, AGAIN: tl.constexpr, ORDER: tl.constexpr, B: tl.constexpr):
    if ORDER is not None:
        tl.atomic_add(out, 1.0, sem=ORDER)
    lines, terms = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    for turn in range(begin if AGAIN else 0, m if AGAIN else 1):
        total = tl.zeros((B, B), tl.float32)
        for first in range(0, k, B):
            total += tl.dot(tl.load(a + lines * row + first + terms), tl.load(b + terms * row + first + lines))
        tl.store(out + (turn + lines) * B + terms, total)


@pytest.mark.parametrize(
    ("again", "order", "disjoint", "engine"),
    [
        (True, None, True, True), (True, None, False, False), (False, None, False, True), (False, "relaxed", True, True),
        (False, "relaxed", False, False), (False, "acquire", True, False),
    ],
)
def test_an_array_that_may_have_been_stored_to_stays_with_lanes(
    again: bool, order: str | None, disjoint: bool, engine: bool
) -> None:
    """Under another name, or by another program. What lanes store behind the engine's copies matters to none."""
    module = build_module(tile_after_tile, SIGNATURE, {"AGAIN": again, "ORDER": order, "B": 32})
    machine = LaneMachine(ENGINE, 4, disjoint=disjoint)
    PassManager([*default_passes(), *lane_passes(machine, 3, verify=True)]).run(module)
    kinds = {type(op) for op in nested_ops(module)} & {lane.BulkCopyOp, lane.CopyAsyncOp}
    assert kinds == {lane.BulkCopyOp if engine else lane.CopyAsyncOp}


@tilefw.jit
def from_anywhere(a, b, out, m, k, row, begin, B: tl.constexpr):
    rows, terms = begin + tl.arange(0, B), tl.arange(0, B)
    a_ptrs, b_ptrs = a + rows[:, None] * row + terms[None, :], b + tl.arange(0, B)[None, :] * row + terms[:, None]
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, k // B):
        total += tl.dot(tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0), tl.load(b_ptrs))
        a_ptrs += B
        b_ptrs += B
    tl.store(out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], total)


def test_rows_that_may_begin_before_the_array_stay_with_lanes() -> None:
    """An engine reads zeros there; the kernel what is there in memory."""
    module = build_module(from_anywhere, SIGNATURE, {"B": 32})
    PassManager([*default_passes(), WholeArrays(LaneMachine(ENGINE, 4), 3)], verify_each=True).run(module)
    assert not [op for op in nested_ops(module) if isinstance(op, LoadBlockOp) and is_argument(op.base)]


@tilefw.jit
def masked_by_offsets(a, b, out, m, k, row, begin, OWN: tl.constexpr, B: tl.constexpr):
    rows, terms = tl.arange(0, B), tl.arange(0, B)
    there = begin + rows
    a_ptrs, b_ptrs = a + rows[:, None] * row + terms[None, :], b + rows[None, :] * row + terms[:, None]
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, k // B):
        total += tl.dot(tl.load(a_ptrs, mask=(rows if OWN else there)[:, None] < m, other=0.0), tl.load(b_ptrs))
        a_ptrs += B
        b_ptrs += B
    tl.store(out + there[:, None] * B + rows[None, :], total, mask=(there == 5)[:, None])


@pytest.mark.parametrize("own", [True, False])
def test_a_mask_of_offsets_of_another_access_which_may_wrap_is_no_end_of_an_array(own: bool) -> None:
    module = build_module(masked_by_offsets, SIGNATURE, {"OWN": own, "B": 32})
    PassManager(default_passes()).run(module)
    (loop,) = [op for op in nested_ops(module) if isinstance(op, ForOp)]
    masked = next(op for op in nested_ops(loop) if isinstance(op, LoadOp | LoadBlockOp))
    assert (walked_block(masked, loop, offset_arithmetic(module), IntegerRanges(module)) is not None) is own


@tilefw.jit
def in_groups(a, b, out, m, k, row, begin, KIND: tl.constexpr, B: tl.constexpr):
    """out = a @ b.T, tile after tile, in the order of groups of rows."""
    down, across = tl.cdiv(m, B), tl.cdiv(m, B)
    for tile in range(tl.program_id(0), begin if KIND == "another end" else down * across, 2):
        first = tile // ((4 if KIND == "other groups" else 2) * across) * 2
        left = tl.minimum(down - first, 2)
        rows = (first + tile % (2 * across) % left) * B + tl.arange(0, B)
        columns = tile % (2 * across) // left * B + tl.arange(0, B)
        y, x = rows, columns
        if KIND == "others beyond the end":
            y, x = tl.where(rows < m, rows, 0), tl.where(columns < m, columns, 0)
        total = tl.zeros((B, B), tl.float32)
        for step in range(0, tl.cdiv(k, B)):
            terms = step * B + tl.arange(0, B)
            a_mask, b_mask = terms[None, :] < k, terms[:, None] < k
            if KIND != "others beyond the end":
                a_mask, b_mask = a_mask & (y[:, None] < m), b_mask & (x[None, :] < m)
            left_factor = tl.load(a + y[:, None] * row + terms[None, :], mask=a_mask, other=0.0)
            total += tl.dot(left_factor, tl.load(b + x[None, :] * row + terms[:, None], mask=b_mask, other=0.0))
        within = (rows[:, None] < m) & (columns[None, :] < m)
        tl.store(out + rows[:, None] * m + columns[None, :], total, mask=within)


def grouped_lanes(kind: str) -> tuple[Any, LaneMachine]:
    module, machine = build_module(in_groups, SIGNATURE, {"KIND": kind, "B": 32}), LaneMachine(ENGINE, 4, disjoint=True)
    PassManager([*default_passes(), *lane_passes(machine, 3, verify=True)]).run(module)
    (function,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return function, machine


@pytest.mark.parametrize("kind", ["masked", "others beyond the end"])
def test_tiles_of_a_persistent_loop_in_groups_of_rows_come_by_the_engine(kind: str) -> None:
    """None begins before its array where no size is negative, which the launch sees to."""
    function, machine = grouped_lanes(kind)
    kinds = {type(op) for op in nested_ops(function)} & {lane.BulkCopyOp, lane.CopyAsyncOp}
    assert kinds == {lane.BulkCopyOp}
    recipes = [CopyDescriptor.of(hidden_of(argument_attributes(function, i))) for i in range(len(function.body.block.args))]
    assert [recipe.divisors for recipe in recipes if recipe is not None and recipe.base == 1] == [(3,)]
    m, k = 80, 72
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((m, k)).astype(np.float16) for _ in range(2))
    out = np.zeros((m, m), np.float32)
    run(function, [a, b, out, m, k, k, 0], (2, 1, 1), machine)
    np.testing.assert_allclose(out, a.astype("f4") @ b.astype("f4").T, atol=0.05)


@pytest.mark.parametrize("kind", ["another end", "other groups"])
def test_where_groups_are_not_those_of_the_loop_lanes_copy(kind: str) -> None:
    """A place behind the last group would make the number of rows that are left negative, and so its columns."""
    kinds = {type(op) for op in nested_ops(grouped_lanes(kind)[0])} & {lane.BulkCopyOp, lane.CopyAsyncOp}
    assert lane.CopyAsyncOp in kinds
