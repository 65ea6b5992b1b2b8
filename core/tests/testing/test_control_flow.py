"""The control-flow graph of a text: who follows whom, what is met on the ways from a place, and which ways come to an end."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.testing.control_flow import ControlFlowGraph


@dataclass(frozen=True)
class Step:
    line: int
    targets: tuple[int, ...]


# 0 -> 1 -> 2 -> (1 or 3) -> the end, as a loop of 1 and 2; 4 leads nowhere and nothing leads there.
STEPS = [Step(10, (1,)), Step(20, (2,)), Step(30, (1, 3)), Step(40, (5,)), Step(50, ())]
GRAPH = ControlFlowGraph(STEPS, lambda place: STEPS[place].targets)


def test_what_follows_and_what_comes_before_agree() -> None:
    assert GRAPH.after == [[1], [2], [1, 3], [], []]
    assert GRAPH.before == [[], [0, 2], [1], [2], []]
    assert GRAPH.at(30) == 2


def test_a_walk_meets_each_place_once_and_goes_no_further_than_a_stop() -> None:
    assert sorted(GRAPH.walk(2, GRAPH.after, lambda _: False)) == [1, 2, 3]
    assert sorted(GRAPH.walk(2, GRAPH.after, lambda place: place == 1)) == [1, 3]
    assert sorted(GRAPH.walk(2, GRAPH.before, lambda _: False)) == [0, 1, 2]


def test_a_way_to_an_end_is_one_without_a_stop() -> None:
    assert GRAPH.reaches_end(0, GRAPH.after, lambda _: False)
    assert not GRAPH.reaches_end(0, GRAPH.after, lambda place: place == 3)
    assert not GRAPH.reaches_end(0, GRAPH.after, lambda place: place == 1)
    assert GRAPH.reaches_end(4, GRAPH.after, lambda _: True)
