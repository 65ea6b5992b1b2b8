"""Barriers: with those inserted no two waves race, and without any one of them some do; loops and rings need no more than that."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, reject, settings
from shared_programs import MACHINE, Access, Branch, Loop, Scratch, build, programs
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from tilefw.simt import lane
from tilefw.simt.shared_memory.barriers import BarrierAnalysis, insert_barriers
from tilefw.simt.shared_memory.placement import place_shared
from tilefw.testing.lane_interpreter import LaneFault, run


def lowered(statements: tuple[Any, ...]) -> FuncOp:
    function = build(statements)
    if function is None:
        reject()
    place_shared(function, MACHINE.chip.shared_bytes)
    insert_barriers(function)
    return function


def barriers(function: FuncOp) -> list[lane.BarrierOp]:
    return [op for op in function.walk() if isinstance(op, lane.BarrierOp)]


_RNG = random.Random(1)
WAYS = [(0, 0), *((_RNG.getrandbits(31), _RNG.getrandbits(31)) for _ in range(40))]


def fault(function: FuncOp) -> str | None:
    """The first that the interpreter finds on many ways through the program."""
    for way in WAYS:
        try:
            run(function, way, (1,), MACHINE)
        except LaneFault as found:
            return str(found)
    return None


@settings(max_examples=20, deadline=None, derandomize=True)
@given(programs())
def test_no_race_with_them_and_one_without_any_of_them(statements: tuple[Any, ...]) -> None:
    function = lowered(statements)
    assert fault(function) is None
    for i in range(len(barriers(function))):
        function = lowered(statements)
        barriers(function)[i].detach()
        assert fault(function), f"barrier {i} is not needed:\n{function}"


STORE, LOAD = Access(0, True), Access(0, False)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ((STORE, LOAD), 2),
        ((LOAD, LOAD, LOAD), 1),
        ((Access(0, False), Access(1, False), Access(2, False)), 1),
        ((Loop((LOAD,)),), 1),
        ((Loop((LOAD, STORE)),), 2),
        ((STORE, Scratch(), LOAD), 2),
        ((Loop((Scratch(),)),), 2),
        ((Branch((LOAD,), ()), LOAD), 2),
    ],
)
def test_so_many_are_needed(statements: tuple[Any, ...], expected: int) -> None:
    """Every program begins with a store of each buffer that it uses."""
    assert len(barriers(lowered(statements))) == expected


def test_what_only_the_code_before_a_loop_needs_stands_before_it() -> None:
    function = lowered((Loop((LOAD,)),))
    (barrier,) = barriers(function)
    assert isinstance(barrier.next_op, ForOp)


def test_the_cost_of_pruning_does_not_grow_with_the_square_of_the_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared_programs.ACCESSES", 1 << 20)  # the program is not run
    followed: list[int] = []
    event = BarrierAnalysis.event
    monkeypatch.setattr(BarrierAnalysis, "event", lambda self, op, state: (followed.append(1), event(self, op, state))[1])
    counts = []
    for pairs in (20, 80):
        followed.clear()
        assert len(barriers(lowered((Branch((STORE, LOAD), ()), STORE, LOAD) * pairs))) >= 3 * pairs
        counts.append(len(followed))
    assert counts[1] < 6 * counts[0]
