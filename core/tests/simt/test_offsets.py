"""Accesses from a uniform base with 32 bits a lane, and limits in place of masks, reach what plain addresses reach."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_on_chips import CASES, check, lowered
from made_up import PLAIN, WIDE
from random_tiles import random_tiles
from test_tile_to_lane import agree

from tilefw.simt import lane
from tilefw.simt.description import LaneMachine
from tilefw.simt.lane.promises import promise_of
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

OFFSETS = replace(PLAIN, name="offsets", offsets=True, shared_bytes=1 << 18)
BOUNDED = replace(WIDE, name="bounded", offsets=True, bounded=True, bound_bytes=4, alignment=4, shared_bytes=1 << 18)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([OFFSETS, BOUNDED]), st.sampled_from([1, 4]), st.booleans(), st.booleans())
def test_random_tiles_agree_with_the_reference(seed, chip, waves, simplify, small):
    program = random_tiles(seed)
    if "tile.copy" not in program.text():
        agree(program, LaneMachine(chip, waves, small), simplify)


@pytest.mark.parametrize("small", [False, True], ids=["any", "small"])
@pytest.mark.parametrize("chip", [OFFSETS, BOUNDED], ids=lambda c: c.name)
@pytest.mark.parametrize(("name", "parameters"), CASES, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_a_library_kernel_is_right(name, parameters, chip, small):
    check(name, parameters, chip, small)


@pytest.mark.parametrize("name", ["rmsnorm", "swiglu", "cross_entropy", "embedding", "column_sum", "rope", "welford"])
def test_blocks_that_loops_move_are_right(name):
    check(name, {}, BOUNDED, True)


def test_a_loop_moves_offsets_and_neither_base_nor_limit():
    function, *_ = lowered("swiglu", {}, BOUNDED, True)
    (loop,) = [op for op in function.walk() if op.name == "scf.for"]
    (first, *_) = [op for op in loop.walk() if isinstance(op, lane.LoadOp) and not op.shared]
    offset, base, limit = first.part("address"), first.part("base"), first.part("limit")
    assert offset.owner.parent is loop.body.block
    assert base.owner.parent is not loop.body.block and limit.owner.parent is not loop.body.block


def text_of(name: str, chip, small: bool = True) -> str:
    function, *_ = lowered(name, {}, chip, small)
    return str(function)


def test_limits_stand_where_masks_did():
    plain, bounded = text_of("vector_add", OFFSETS), text_of("vector_add", BOUNDED)
    assert 'parts = "address,base,mask"' in plain and "lane.lts" in plain
    assert 'parts = "address,base,limit"' in bounded and "lane.lts" not in bounded


def test_a_fill_keeps_its_mask_beside_the_limit():
    assert 'parts = "address,base,limit,mask,other"' in text_of("softmax", BOUNDED)


@pytest.mark.parametrize(("name", "parameters"), [("vector_add", {"n": 4999}), ("softmax", {"columns": 999, "dtype": "fp32"})])
def test_a_limit_parts_the_elements_of_wide_accesses(name, parameters):
    """Four dwords at once, though neither bound nor rows are multiples of them; halves of dwords are not told apart."""
    check(name, parameters, BOUNDED, True)
    assert widths(name, parameters, BOUNDED) == {4}
    assert widths(name, parameters, replace(BOUNDED, bound_bytes=0)) == {1}
    assert widths(name, {**parameters, "dtype": "fp16"}, BOUNDED) == {1}


def widths(name: str, parameters, chip) -> set[int]:
    """Elements that an access to global memory takes."""
    function, *_ = lowered(name, parameters, chip, True)
    return {op.width for op in function.walk() if isinstance(op, lane.MemoryOp) and not op.shared}


def test_strides_known_at_run_time_take_small_buffers():
    assert 'parts = "address,base,limit"' in text_of("matmul", BOUNDED)
    assert 'parts = "address,base' not in text_of("strided_copy", BOUNDED, small=False)
    assert 'parts = "address,base,limit"' in text_of("strided_copy", BOUNDED)


def test_a_pointer_that_a_loop_carries_is_still_its_arguments():
    function, *_ = lowered("matmul", {}, BOUNDED, True)
    accesses = [op for op in function.walk() if isinstance(op, lane.MemoryOp) and not op.shared]
    assert {op.buffer for op in accesses} == {0, 1, 2}


@pytest.mark.parametrize(("columns", "compared"), [(250, 8), (256, 2)])
def test_a_bound_is_compared_once_for_all_that_its_divisor_holds_together(columns, compared):
    """Of neighbours between two multiples of what divides offset and bound, none is in bounds without the others."""
    function, *_ = lowered("matmul", {"n": columns}, BOUNDED, True)
    constants = [op for op in function.walk() if isinstance(op, lane.ConstantsOp)]
    assert [len(op.values) for op in constants] == [compared]


# --- what is promised of the integers -----------------------------------------------------------------------------------------


def promised(name: str, chip, small: bool = True) -> list[str]:
    """What is promised of the ops that accesses with a base get their offsets from, the last ones."""
    function, *_ = lowered(name, {}, chip, small)
    found = []
    for op in function.walk():
        if isinstance(op, lane.MemoryOp) and op.part("base") is not None:
            found += [promise_of(made) for made in makers(op.part("address"))]
    return found


def makers(value):
    """The ops that compute the elements of a value, through those that only move them."""
    owner = value.owner
    if isinstance(owner, lane.JoinOp | lane.PickOp | lane.SplatOp):
        return [made for operand in owner.operands for made in makers(operand)]
    return [owner] if isinstance(owner, ElementwiseOp) else []


def test_offsets_by_strides_that_are_known_never_wrap():
    assert set(promised("vector_add", BOUNDED)) == {"proven"}


def test_offsets_by_strides_of_the_launch_are_promised():
    assert set(promised("strided_copy", BOUNDED)) == {"exact"}


def test_the_kernels_own_offset_arithmetic_is_promised_on_every_chip():
    function, *_ = lowered("embedding", {}, PLAIN, False)
    marked = {op.name for op in function.walk() if promise_of(op) == "exact"}
    assert {"lane.muli", "lane.addi"} <= marked
    assert not {op.name for op in function.walk() if promise_of(op)} & {"lane.lts", "lane.andi"}


def test_a_promise_is_part_of_the_text():
    text = text_of("strided_copy", BOUNDED)
    assert "{no_wrap}" in text and 'no_wrap = "proven"' in text_of("vector_add", BOUNDED)
