"""Facts hold for what the interpreter computes, on random programs; and the ones that vector widths hang on are found."""

from __future__ import annotations

import random
from itertools import pairwise
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.testing.random_program import generate
from tilefw.tile import types
from tilefw.tile.dialect.axis_info import AxisInfo
from tilefw.tile.dialect.dim_groups import matching_dims
from tilefw.tile.reference.interpret import GridRun, ProgramFrame, find_entry
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.text.module import parse

OFFSETS = """
func.func @f(%p: !tile.ptr<f32> {tile.divisible = 16 : i64}, %n: i32 {tile.divisible = 16 : i64}, %m: i32) {
  %pid = tile.program_id 0
  %c = tile.constant 1024 : i32
  %b = tile.muli %pid, %c : i32
  %i = tile.iota 0 to 1024
  %bs = tile.splat %b : i32 to tensor<1024xi32>
  %k = tile.addi %bs, %i : tensor<1024xi32>
  %ns = tile.splat %n : i32 to tensor<1024xi32>
  %ms = tile.splat %m : i32 to tensor<1024xi32>
  %aligned = tile.lts %k, %ns : tensor<1024xi32>
  %ragged = tile.lts %k, %ms : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %q = tile.addptr %ps, %k : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %shifted = tile.addi %k, %ms : tensor<1024xi32>
  %q2 = tile.addptr %ps, %shifted : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  func.return
}
"""


def facts_by_name(text: str) -> dict[str, AxisInfo]:
    module = parse(text)
    analysis = AxisInfoAnalysis(module)
    return {r.name_hint: analysis[r] for op in module.walk() for r in op.results if r.name_hint}


def test_what_vector_widths_hang_on_is_found() -> None:
    facts = facts_by_name(OFFSETS)
    assert facts["k"].contiguity == (1024,) and facts["k"].divisibility[0] % 1024 == 0
    assert facts["q"].contiguity == (1024,) and facts["q"].divisibility == (16,)
    assert facts["q2"].contiguity == (1024,) and facts["q2"].divisibility == (4,)
    assert facts["aligned"].constancy == (16,) and facts["ragged"].constancy == (1,)
    assert (facts["i"].low, facts["i"].high) == (0, 1023)


def test_moved_elements_keep_their_runs() -> None:
    facts = facts_by_name("""
func.func @f() {
  %i = tile.iota 16 to 80
  %rows = tile.reshape %i : tensor<64xi32> to tensor<4x16xi32>
  %flat = tile.reshape %rows : tensor<4x16xi32> to tensor<2x1x32xi32>
  %twice = tile.join %i, %i : tensor<64xi32>
  %back, %again = tile.split %twice : tensor<64x2xi32>
  %down = tile.flip %i axis 0 : tensor<64xi32>
  %most = tile.reduce %rows axis 1 : tensor<4x16xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = tile.maxs %a, %b : i32
    tile.reduce_return %c : i32
  }
  func.return
}""")
    assert facts["rows"].contiguity == (1, 16) and facts["rows"].divisibility[1] == 16
    assert facts["flat"].contiguity == (1, 1, 16) and facts["flat"].divisibility[2] == 16
    assert facts["twice"].contiguity == (64, 1) and facts["back"].contiguity == (64,) and facts["back"].divisibility == (16,)
    assert facts["down"].contiguity == (1,) and (facts["down"].low, facts["down"].high) == (16, 79)
    assert (facts["most"].low, facts["most"].high) == (16, 79)


@settings(max_examples=100, deadline=None)
@given(cuts=st.lists(st.integers(0, 6), max_size=4), more=st.lists(st.integers(0, 6), max_size=4))
def test_dims_of_a_reshape_are_grouped(cuts: list[int], more: list[int]) -> None:
    """Groups hold as many elements before as after, in order, and no smaller ones would."""
    shapes = []
    for ends in (sorted(cuts), sorted(more)):
        marks = [0, *ends, 6]
        shapes.append([1 << (b - a) for a, b in pairwise(marks)])
    groups = matching_dims(*shapes)
    for before, after in groups:
        assert prod(shapes[0][d] for d in before) == prod(shapes[1][d] for d in after) > 1
        assert len(before) == 1 or len(after) == 1 or not {
            prod(shapes[0][d] for d in before[:k]) for k in range(1, len(before))
        } & {prod(shapes[1][d] for d in after[:k]) for k in range(1, len(after))}
    for side in (0, 1):
        assert [d for group in groups for d in group[side]] == [d for d, size in enumerate(shapes[side]) if size > 1]


def test_a_loop_keeps_what_every_round_keeps() -> None:
    facts = facts_by_name("""
func.func @f(%n: i32) {
  %zero = tile.constant 0 : i32
  %step = tile.constant 32 : i32
  %one = tile.constant 1 : i32
  %even, %any = scf.for %i = %zero to %n step %step iter_args(%a = %step, %b = %step) -> (i32, i32) : i32 {
    %c = tile.addi %a, %i : i32
    %d = tile.addi %b, %one : i32
    scf.yield %c, %d : i32, i32
  }
  func.return
}""")
    assert facts["even"].divisor == 32 and facts["any"].divisor == 1


def assert_holds(x: np.ndarray, facts: AxisInfo, shape: tuple[int, ...], bits: int) -> None:
    tile = x.astype(object).reshape(shape or (1,))
    low, high = facts.low, facts.high
    assert low is None or (tile >= low).all()
    assert high is None or (tile <= high).all()
    for dim, size in enumerate(tile.shape):
        rows = np.moveaxis(tile, dim, -1).reshape(-1, size).tolist()
        run, alike, divisor = facts.contiguity[dim], facts.constancy[dim], facts.divisibility[dim]
        for row in rows[:4]:
            for at in range(0, size - size % run, run):
                assert row[at] % divisor == 0
                assert all((row[at + i] - row[at] - i) % (1 << min(bits, 32)) == 0 for i in range(run))
            for at in range(0, size - size % alike, alike):
                assert len(set(row[at : at + alike])) == 1


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_facts_hold_for_random_programs(seed: int) -> None:
    program = generate(random.Random(seed), 14)
    module = parse(program.text)
    analysis = AxisInfoAnalysis(module)
    function = find_entry(module, None)
    memory = RefMemory()
    plain = (int, float)
    bound = [a if isinstance(a, plain) else memory.of_array(np.ascontiguousarray(a.array)) for a in program.arguments.values()]
    launch = GridRun(function, program.grid, bound, memory, True, 10**9, None)
    frame = ProgramFrame(np.arange(1))
    frame.values.update(launch.arguments)
    for _ in launch.block(function.body.block, frame):
        pass  # each turn of a program that waits for others
    for op in function.body.block.ops:
        for result in op.results:
            value = frame.values[result]
            if types.is_int(result.type) and not types.is_bool(result.type) and value.free is None:
                assert_holds(value.x, analysis[result], types.shape_of(result.type), types.dtype_of(result.type).bits)


def test_runs_survive_division_and_remainder_up_to_multiples() -> None:
    facts = facts_by_name("""
func.func @f(%n: i32 {tile.divisible = 16 : i64}, %m: i32) {
  %pid = tile.program_id 0
  %c = tile.constant 64 : i32
  %b = tile.muli %pid, %c : i32
  %i = tile.iota 0 to 64
  %bs = tile.splat %b : i32 to tensor<64xi32>
  %k = tile.addi %bs, %i : tensor<64xi32>
  %ns = tile.splat %n : i32 to tensor<64xi32>
  %ms = tile.splat %m : i32 to tensor<64xi32>
  %wrapped = tile.rems %k, %ns : tensor<64xi32>
  %ragged = tile.rems %k, %ms : tensor<64xi32>
  %group = tile.divs %k, %ns : tensor<64xi32>
  %minus = tile.constant -64 : tensor<64xi32>
  %negative = tile.addi %i, %minus : tensor<64xi32>
  %broken = tile.rems %negative, %ns : tensor<64xi32>
  func.return
}""")
    assert facts["wrapped"].contiguity == (16,) and facts["wrapped"].divisibility == (16,)
    assert facts["group"].constancy == (16,) and facts["group"].contiguity == (1,)
    assert facts["ragged"].contiguity == (1,) and facts["broken"].contiguity == (1,)


BOUNDED = """
func.func @f(%n: i32) {
  %pid = tile.program_id 0
  %c = tile.constant 256 : i32
  %b = tile.muli %pid, %c : i32
  %zero = tile.constant 0 : i32
  %two = tile.constant 2 : i32
  %inside = tile.ges %b, %zero : i32
  %outside = tile.lts %b, %zero : i32
  %open = tile.lts %b, %n : i32
  %end = scf.while (%walk = %n) : (i32) -> i32 {
    %more = tile.gts %walk, %two : i32
    scf.condition(%more) %walk : i32
  } do {
  ^bb0(%held: i32):
    %positive = tile.gts %held, %zero : i32
    %half = tile.divs %held, %two : i32
    scf.yield %half : i32
  }
  func.return
}
"""


def test_program_ids_are_below_the_largest_grid_and_decide_comparisons() -> None:
    module = parse(BOUNDED)
    for grid, known in (((1 << 23, 1, 1), True), ((1 << 24, 1, 1), False)):
        analysis = AxisInfoAnalysis(module, grid)
        facts = {r.name_hint: analysis[r] for op in module.walk() for r in op.results if r.name_hint}
        assert (facts["inside"].low, facts["outside"].high) == ((1, 0) if known else (0, 1))
        assert (facts["open"].low, facts["open"].high) == (0, 1)


def test_the_body_of_a_loop_knows_its_condition() -> None:
    facts = facts_by_name(BOUNDED)
    assert (facts["more"].low, facts["positive"].low) == (0, 1)
