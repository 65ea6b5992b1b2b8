"""Rings of shared slots filled by asynchronous copies need one barrier an iteration, whatever their depth, and it is enough."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from tilefw.simt import lane
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.shared_memory.barriers import insert_barriers
from tilefw.simt.shared_memory.placement import place_shared
from tilefw.testing.lane_interpreter import LaneFault, run
from tilefw.tile.text.module import parse

MACHINE = LaneMachine(ChipDescription("narrow", lanes=1, pointer_bits=64, access_bytes=16, shared_bytes=4096, copy_bytes=(4,)), 8)
SLOT = 4 * MACHINE.threads
ONE = "slots = array<i64: 0>, immediates = array<i64: 0>"
ITERATIONS = 7

HEAD = f"""func.func @f(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) attributes {{lane.waves = {MACHINE.waves} : i64}} {{
  %t = lane.thread_id : () -> vector<1xi32>
  %four = lane.constant 4 : vector<1xi32>
  %flip = lane.constant 3 : vector<1xi32>
  %mine = lane.muli %t, %four : vector<1xi32>
  %other = lane.xori %t, %flip : vector<1xi32>
  %theirs = lane.muli %other, %four : vector<1xi32>
  %wide = lane.exts %mine : vector<1xi32> to vector<1xi64>
  %pi = lane.ptr_to_int %p : !tile.ptr<i32> to i64
  %pv = lane.splat %pi : i64 to vector<1xi64>
  %g = lane.addi %pv, %wide : vector<1xi64>
  %qi = lane.ptr_to_int %q : !tile.ptr<i32> to i64
  %qv = lane.splat %qi : i64 to vector<1xi64>
  %o = lane.addi %qv, %wide : vector<1xi64>
  %zero = lane.constant 0 : i32
  %one = lane.constant 1 : i32
  %sum0 = lane.constant 0 : vector<1xi32>
"""


def copy(name: str, iteration: str, stages: int, ring: str) -> str:
    """The copy of an iteration (a scalar) into its slot: word t of row `iteration`."""
    return f"""  %{name}m = lane.rems {iteration}, %stages : i32
  %{name}b = lane.muli %{name}m, %slot : i32
  %{name}w = lane.addi %ring, %{name}b : i32
  %{name}v = lane.splat %{name}w : i32 to vector<1xi32>
  %{name}a = lane.addi %{name}v, %mine : vector<1xi32>
  %{name}r = lane.muli {iteration}, %slot : i32
  %{name}x = lane.exts %{name}r : i32 to i64
  %{name}y = lane.splat %{name}x : i64 to vector<1xi64>
  %{name}g = lane.addi %g, %{name}y : vector<1xi64>
  %{name}c = lane.lts {iteration}, %end : i32
  lane.copy_async %{name}a, %{name}g, %{name}c {{parts = "address,source,when", bytes = 4 : i64, {ONE},
    source_slots = array<i64: 0>, source_immediates = array<i64: 0>, buffer = 0 : i64, argument = 0 : i64{ring}}}
    : (vector<1xi32>, vector<1xi64>, i1) -> ()
  lane.commit
"""


def pipelined(stages: int, late: bool, phases: bool = True) -> FuncOp:
    """A loop that adds up, in every thread, the words that another thread copied: `stages` - 1 iterations ahead.

    The copies are issued at the top of the loop or, `late`, behind the read.
    """

    def ring(phase: int) -> str:
        return f", ring = {stages} : i64, phase = {phase} : i64" if phases else ""

    text = HEAD + f"""  %end = lane.constant {ITERATIONS} : i32
  %stages = lane.constant {stages} : i32
  %ahead = lane.constant {stages - 1} : i32
  %slot = lane.constant {SLOT} : i32
  %ring = lane.alloc {{id = 0 : i64, bytes = {SLOT * stages} : i64, align = 16 : i64, label = "ring"}} : () -> i32
"""
    for s in range(stages - 1):
        text += f"  %s{s} = lane.constant {s} : i32\n" + copy(f"p{s}", f"%s{s}", stages, "")
    text += f"""  %r = scf.for %i = %zero to %end step %one iter_args(%sum = %sum0) -> (vector<1xi32>) : i32 {{
  lane.wait {{pending = {stages - 2} : i64}}
  %next = lane.addi %i, %ahead : i32
{"" if late else copy("n", "%next", stages, ring(stages - 1))}
  %im = lane.rems %i, %stages : i32
  %ib = lane.muli %im, %slot : i32
  %iw = lane.addi %ring, %ib : i32
  %iv = lane.splat %iw : i32 to vector<1xi32>
  %ia = lane.addi %iv, %theirs : vector<1xi32>
  %x = lane.load %ia {{parts = "address", width = 1 : i64, {ONE}, buffer = 0 : i64, space = "shared"{ring(0)}}}
    : (vector<1xi32>) -> vector<1xi32>
  %more = lane.addi %sum, %x : vector<1xi32>
{copy("n", "%next", stages, ring(stages - 1)) if late else ""}
  scf.yield %more : vector<1xi32>
  }}
  lane.wait {{pending = 0 : i64}}
  lane.store %o, %r {{parts = "address,value", width = 1 : i64, {ONE}, buffer = 1 : i64}} : (vector<1xi64>, vector<1xi32>) -> ()
  func.return
}}
"""
    (function,) = parse(text, dialects=[lane.Lane]).body.block.ops
    assert isinstance(function, FuncOp)
    place_shared(function, 4096)
    insert_barriers(function)
    return function


def barriers(function: FuncOp) -> list[lane.BarrierOp]:
    return [op for op in function.walk() if isinstance(op, lane.BarrierOp)]


def execute(function: FuncOp) -> None:
    data = np.arange(ITERATIONS * MACHINE.threads, dtype=np.int32).reshape(ITERATIONS, -1)
    out = np.zeros(MACHINE.threads, np.int32)
    run(function, [data, out], (1,), MACHINE)
    assert (out == data.sum(axis=0)[np.arange(MACHINE.threads) ^ 3]).all()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("stages", [2, 3, 4, 5])
def test_one_barrier_behind_the_wait(stages: int, late: bool) -> None:
    function = pipelined(stages, late)
    execute(function)
    (barrier,) = barriers(function)
    assert isinstance(barrier.parent_op(), ForOp)
    assert isinstance(barrier.next_op, lane.LoadOp if late else lane.CopyAsyncOp)
    barrier.detach()
    with pytest.raises(LaneFault):
        execute(function)


def test_without_phases_every_copy_might_meet_every_read() -> None:
    assert len(barriers(pipelined(3, late=True, phases=False))) == 2
