"""A pipelined loop computes what the loop computed, bit for bit and without a finding, at every number of stages."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, RUNS, WIDE
from made_up import PLAIN as BARE
from pipelined import COPYING, FEW, PLAIN, STORING, TIGHT, check_on_lanes, execute, pipeline, random_loop

from tilefw.simt.description import LaneMachine
from tilefw.tile.text.module import parse

NARROW = LaneMachine(replace(COPYING.chip, shared_bytes=16 << 10), 4)  # room for two tiles
SHORT = LaneMachine(replace(STORING.chip, shared_bytes=12 << 10), 4)  # room for one tile
# Registers for two workgroups of four waves, and shared memory for two that have two slots of the ring each, not three.
BESIDE = replace(COPYING.chip, registers=255, processor_registers=1 << 16, processor_shared_bytes=48 << 10, system_shared_bytes=1)
MACHINES = st.sampled_from([COPYING, TIGHT, PLAIN, STORING])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), stages=st.integers(1, 5), machine=MACHINES, disjoint=st.booleans())
def test_a_pipelined_loop_computes_the_same(seed: int, stages: int, machine: LaneMachine, disjoint: bool) -> None:
    loop = random_loop(seed)
    programs = 1 if loop.stores_to else 2
    text = loop.text().replace("STAGES", str(stages))
    module = pipeline(text, 1, machine, disjoint)
    before, expected = execute(loop, parse(text), programs)
    after, found = execute(loop, module, programs)
    assert {f.check for f in after.findings} == {f.check for f in before.findings}, (after.findings, text, str(module))
    for name, value in expected.items():
        assert np.array_equal(found[name].x, value.x, equal_nan=True), (name, text, str(module))
        for part in ("err", "free"):
            a, b = getattr(value, part), getattr(found[name], part)
            assert np.array_equal(0 if a is None else a, 0 if b is None else b, equal_nan=True), (name, part, str(module))


CHIPS = (
    LaneMachine(replace(BLOCKS, shared_bytes=1 << 17, copy_bytes=(4, 8, 16)), 2), LaneMachine(replace(BARE, copy_bytes=(4,)), 1),
    LaneMachine(WIDE, 2), LaneMachine(RUNS, 2),
)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), stages=st.integers(2, 5), machine=st.sampled_from(CHIPS))
def test_a_pipelined_loop_does_the_same_on_lanes(seed: int, stages: int, machine: LaneMachine) -> None:
    check_on_lanes(random_loop(seed), stages, machine)


KERNEL = """
func.func @k(%x: !tile.ptr<f16> {{tile.divisible = 16 : i64}}, %o: !tile.ptr<f16> {{tile.divisible = 16 : i64}}, %n: i32, %s: i32{hint}) {{
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %c16 = tile.constant 16 : i32
  %zero = tile.constant 0.0 : tensor<64x64xf32>
  %fill = tile.constant {other} : tensor<64x64xf16>
  %sum = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {{
    %a = tile.load_block %x at (%i, %c0 : i32, i32) strides (%s, %c1 : i32, i32) shape (%n : i32) checks [upper, none] other %fill{words} : !tile.ptr<f16>, tensor<64x64xf16>
    {inside}
    %p = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }}{attribute}
  %r = tile.castf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store_block %o, %r at (%c0, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
  func.return
}}
"""  # noqa: E501
ALIGNED = " {tile.divisible = 16 : i64}"
STORE = "tile.store_block %{}, %a at (%c0, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>"


def ways(stages: int = 3, machine: LaneMachine = COPYING, disjoint: bool = False, **changes: str) -> tuple[int, int, int]:
    """Of the kernel with changes: the slots of the ring (0 for none), tiles carried in registers, copies in the steady loop."""
    filled = {"hint": ALIGNED, "other": "0.0", "words": "", "inside": "", "attribute": "", **changes}
    text = str(pipeline(KERNEL.format(**filled), stages, machine, disjoint))
    ring = re.search(r"tile.alloc_shared : !tile.shared<(\d+) x", text)
    steady = text[text.index("scf.for") :]
    return (int(ring[1]) if ring else 0), len(re.findall(r"%a_ahead\w* =", steady)), steady.count("tile.copy")


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ((3, 0, 1), {}),
        ((0, 0, 0), {"stages": 1}),
        ((5, 0, 1), {"stages": 5}),
        ((2, 0, 1), {"stages": 5, "attribute": " {tile.num_stages = 2 : i32}"}),  # the author's wish comes first
        ((0, 0, 0), {"attribute": " {tile.num_stages = 1 : i32}"}),
        ((2, 0, 1), {"machine": NARROW}),  # a slot less where shared memory is short
        ((2, 0, 1), {"machine": NARROW, "stages": 5}),  # and stages less, where it does not hold what is wanted
        ((2, 0, 1), {"machine": LaneMachine(BESIDE, 4)}),  # or where it lets another workgroup run beside
        ((1, 0, 1), {"machine": LaneMachine(replace(BESIDE, processor_shared_bytes=24 << 10), 4), "stages": 2}),
        ((3, 0, 1), {"machine": LaneMachine(replace(BESIDE, system_shared_bytes=0), 4)}),
        ((3, 0, 1), {"machine": LaneMachine(replace(BESIDE, processor_shared_bytes=32 << 10), 4)}),  # none has room either way
        ((3, 0, 1), {"machine": LaneMachine(BESIDE, 8)}),  # whose registers are not there
        ((0, 1, 0), {"machine": PLAIN}),  # no copies: registers
        ((0, 1, 0), {"machine": PLAIN, "stages": 5}),
        ((0, 1, 0), {"machine": FEW}),
        ((0, 1, 0), {"machine": FEW, "stages": 5}),  # one iteration early, however many stages
        ((0, 1, 0), {"machine": replace(FEW, waves=8), "stages": 5}),
        ((0, 0, 0), {"machine": replace(FEW, waves=2)}),
        ((3, 0, 1), {"other": "1.0"}),
        ((0, 1, 0), {"hint": ""}),  # rows that begin anywhere: accesses of two bytes
        ((1, 0, 0), {"machine": STORING, "stages": 2}),  # no copies: loads wait in registers for one iteration, then in a slot
        ((2, 0, 0), {"machine": STORING, "stages": 5}),
        ((1, 0, 0), {"machine": SHORT, "stages": 5}),
        ((0, 0, 0), {"words": " volatile"}),
        ((0, 0, 0), {"words": ' cache ".cv"'}),
        ((0, 0, 0), {"inside": "tile.barrier"}),
        ((0, 0, 0), {"inside": STORE.format("x")}),
        ((0, 0, 0), {"inside": STORE.format("x"), "disjoint": True}),
        ((0, 0, 0), {"inside": STORE.format("o")}),  # another argument may be the same buffer
        ((3, 0, 1), {"inside": STORE.format("o"), "disjoint": True}),
    ],
)
def test_each_load_goes_the_way_that_is_open_to_it(expected: tuple[int, int, int], given: dict) -> None:
    assert ways(**given) == expected


INVARIANT = """%q = tile.load_block %o at (%c0, %c0 : i32, i32) strides (%c16, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
  %sum = scf.for"""


@pytest.mark.parametrize(("registers", "slots"), [(64, 2), (1 << 12, 3)])
def test_an_operand_that_will_be_spilled_to_shared_memory_counts_in_its_loops_room(registers: int, slots: int) -> None:
    chip = replace(
        BESIDE, registers=registers, processor_registers=2 * 128 * registers, processor_shared_bytes=60 << 10, system_shared_bytes=0
    )
    text = KERNEL.replace("%sum = scf.for", INVARIANT).replace("dot %a, %a", "dot %q, %a")
    module = pipeline(text.format(hint=ALIGNED, other="0.0", words="", inside="", attribute=""), 3, LaneMachine(chip, 4))
    assert f"!tile.shared<{slots} x 64x64xf16>" in str(module)


@pytest.mark.parametrize(("other", "selects"), [("0.0", 0), ("-0.0", 1), ("1.0", 1)])
def test_what_copies_leave_zero_is_filled_where_it_is_read(other: str, selects: int) -> None:
    text = str(pipeline(KERNEL.format(hint=ALIGNED, other=other, words="", inside="", attribute=""), 3))
    filling = re.findall(r"tile.select .* : tensor<64x64xi?f?16>", text[text.index("scf.for") :])
    assert len(filling) == selects


def test_a_loop_around_a_loop_is_left_alone() -> None:
    inner = "scf.for %j = %c0 to %n step %c1 : i32 {\n" + STORE.format("o") + "\n}"
    assert ways(inside=inner, attribute=" {tile.num_stages = 3 : i32}", disjoint=True) == (0, 0, 0)


def test_the_steady_loop_waits_once_and_copies_right_after() -> None:
    """The one barrier of an iteration is to stand at the wait: copies follow it, and reads of the landed slot."""
    text = str(pipeline(KERNEL.format(hint=ALIGNED, other="0.0", words="", inside="", attribute=""), 4))
    steady = text[text.index("scf.for") :]
    order = re.findall(r"(?:tile|scf)\.(wait \d|copy_block|commit|load_shared|dot|yield)", steady)
    assert order == ["wait 2", "copy_block", "commit", "load_shared", "dot", "yield", "wait 0"]
    prologue = re.findall(r"tile\.(wait \d|copy_block|commit|load_shared|dot)", text[: text.index("scf.for")])
    assert prologue == ["copy_block", "commit"] * 3
