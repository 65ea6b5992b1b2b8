"""What dots read and nothing loads early goes through shared memory as a pipeline's loads do; what a loop computes stays."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import RUNS, WIDE
from pipelined import COPYING, PLAIN, STORING, check_on_lanes, pipeline, random_loop

from tilefw.simt.description import LaneMachine

CROWDED = {"processor_registers": 1 << 30, "processor_threads": 1 << 30}  # shared memory is what is short

KERNEL = """
func.func @k(%x: !tile.ptr<f16>, %y: !tile.ptr<f16>, %o: !tile.ptr<f32>, %n: i32) {{
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %c32 = tile.constant 32 : i32
  %zero = tile.constant 0.0 : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {{
    %a = tile.load_block %x at (%c0, %i : i32, i32) strides (%n, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x32xf16>
    %b = tile.load_block %y at (%i, %c0 : i32, i32) strides (%n, %c1 : i32, i32) : !tile.ptr<f16>, tensor<32x64xf16>
    {inside}
    %p = tile.dot {factors}, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }}
  tile.store_block %o, %sum at (%c0, %c0 : i32, i32) strides (%n, %c1 : i32, i32) : !tile.ptr<f32>, tensor<64x64xf32>
  func.return
}}
"""


def order(machine: LaneMachine = STORING, stages: int = 1, inside: str = "", factors: str = "%a, %b", **chip: int) -> list[str]:
    """What the loop does with shared memory, and its dot."""
    machine = replace(machine, chip=replace(machine.chip, **chip))
    text = str(pipeline(KERNEL.format(inside=inside, factors=factors), stages, machine))
    loop = text[text.index("scf.for") : text.index("scf.yield")]
    return re.findall(r"tile\.(load_block|store_shared|load_shared|dot)", loop)


_LOADS, _DOT = ["load_block"] * 2, ["dot"]
_STORE, _READ = ["store_shared"], ["load_shared"]


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ([*_LOADS, *_STORE * 2, *_READ * 2, *_DOT], {}),
        ([*_LOADS, *(_STORE + _READ) * 2, *_DOT], CROWDED),
        ([*_LOADS, *_STORE * 2, *_READ * 2, *_DOT], CROWDED | {"processor_threads": 1024}),  # so many have room
        ([*_LOADS, *_STORE * 2, *_READ * 2, *_DOT], CROWDED | {"processor_registers": 1 << 17}),
        ([*_LOADS, *_STORE * 2, *_READ * 2, *_DOT], {"machine": COPYING}),
        ([*_LOADS, *_DOT], {"machine": PLAIN}),  # no shared memory
        ([*_LOADS, *_DOT], {"shared_bytes": 4096}),  # too little
        ([*_LOADS, *_STORE, *_READ, *_DOT], {"inside": "%c = tile.negf %a : tensor<64x32xf16>", "factors": "%c, %b"}),
    ],
)
def test_factors_are_stored_together_and_take_turns_where_that_lets_more_workgroups_run(expected: list[str], given: dict) -> None:
    assert order(**given) == expected


CHIPS = tuple(LaneMachine(replace(chip, **more), 2) for chip in (WIDE, RUNS) for more in ({}, CROWDED))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), machine=st.sampled_from(CHIPS))
def test_a_loop_does_the_same_on_lanes(seed: int, machine: LaneMachine) -> None:
    check_on_lanes(random_loop(seed), 1, machine)
