"""Barriers that count arrivals and bytes, in lane IR: who waits for a phase goes on when it is over, and no earlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up import PLAIN

from tilefw.simt.description import LaneMachine
from tilefw.simt.lane import Lane
from tilefw.simt.shared_memory.barriers import insert_barriers
from tilefw.simt.shared_memory.placement import place_shared
from tilefw.testing.lane_interpreter import LaneFault, run
from tilefw.tile.text.module import parse

MACHINE = LaneMachine(replace(PLAIN, barrier_bytes=8), 2)
HEAD = """
func.func @f(%p: !tile.ptr<i32>) {
  %m = lane.alloc {id = 0 : i64, bytes = 16 : i64, align = 8 : i64, label = "barriers"} : () -> i32
  %even = lane.constant 0 : i32
  %odd = lane.constant 1 : i32
  lane.begin_barriers %m {buffer = 0 : i64, number = 2 : i64, count = 64 : i64} : (i32) -> ()
"""
ARRIVE = '  lane.arrive %m {parts = "address", buffer = 0 : i64} : (i32) -> ()\n'
ANNOUNCE = '  lane.arrive %m {parts = "address", buffer = 0 : i64, bytes = 16 : i64} : (i32) -> ()\n'


def wait(parity: str) -> str:
    return f'  lane.wait_phase %m, %{parity} {{parts = "address,parity", buffer = 0 : i64}} : (i32, i32) -> ()\n'


def execute(body: str, insert: bool = True) -> int:
    """Run a program of these lines; how many barriers of the workgroup it was given."""
    module = parse(f"{HEAD}{body}  func.return\n}}", dialects=[Lane])
    (function,) = module.body.block.ops
    place_shared(function, 1 << 10)  # type: ignore[arg-type]
    count = insert_barriers(function) if insert else 0  # type: ignore[arg-type]
    run(function, [np.zeros(1, np.int32)], (1,), MACHINE)  # type: ignore[arg-type]
    return count


def test_phases_follow_one_another() -> None:
    body = wait("odd") + ARRIVE + wait("even") + ARRIVE + wait("odd") + ARRIVE + wait("even")
    assert execute(body) == 1  # behind what one thread makes


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (wait("even"), "nobody ends the wait"),
        (ARRIVE + wait("even") + wait("odd"), "nobody ends the wait"),
        (ANNOUNCE + wait("even"), "0 arrivals and 1024 bytes"),
        (ANNOUNCE + ARRIVE, "whose phase wants 0"),
    ],
    ids=["nobody came", "nobody came again", "bytes did not come", "one too many came"],
)
def test_a_phase_that_cannot_end_is_a_fault(body: str, words: str) -> None:
    with pytest.raises(LaneFault, match=words):
        execute(body)


def test_threads_use_barriers_behind_a_barrier_of_the_workgroup() -> None:
    with pytest.raises(LaneFault, match="without a barrier of the workgroup"):
        execute(ARRIVE, insert=False)


def test_the_bytes_of_barriers_serve_nobody_else() -> None:
    """An allocation that is alive later alone has bytes of its own."""
    later = '  %n = lane.alloc {id = 1 : i64, bytes = 256 : i64, align = 4 : i64, label = "later"} : () -> i32\n'
    later += "  %t = lane.thread_id : () -> vector<1xi32>\n  %four = lane.constant 4 : vector<1xi32>\n"
    later += "  %o = lane.muli %t, %four : vector<1xi32>\n  %b = lane.splat %n : i32 to vector<1xi32>\n"
    later += "  %a = lane.addi %b, %o : vector<1xi32>\n"
    later += '  lane.store %a, %t {parts = "address,value", width = 1 : i64, slots = array<i64: 0>, immediates = array<i64: 0>,'
    later += ' buffer = 1 : i64, space = "shared"} : (vector<1xi32>, vector<1xi32>) -> ()\n'
    assert execute(ARRIVE + wait("even") + later) == 1
