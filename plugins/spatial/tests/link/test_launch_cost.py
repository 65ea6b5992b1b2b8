"""What launches cost are the cycles that they take, and a model is fused as takes the fewest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilefw.graph.builder import ModuleBuilder
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.emit.model import kernel_graph
from tilefw.graph.fuse.choice import FusionWay
from tilefw.graph.session import Session
from tilefw.graph.target_choice import TargetChoice

TARGET = "spatial-sdm1"
ROWS, COLUMNS = 16, 64


def _module():
    """A sine of each row, which each column reads."""
    b = ModuleBuilder()
    x = b.input("x", "fp32", (ROWS, 1 + COLUMNS))
    sine = b.map("sin", b.slice(x, [0, 0], [ROWS, 1]))
    b.output("y", b.map("addf", sine, b.slice(x, [0, 1], [ROWS, COLUMNS])))
    return b.module()


class _Always:
    """The way of one number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def best(self, part: Callable[[], object], ways: Sequence[FusionWay]) -> int:
        return self.number


def _cycles(choice) -> tuple[int, int]:
    """The launches of the model, and the cycles that they take in the simulator."""
    graph = kernel_graph(_module(), choice=choice)
    with Session(compile_graph(graph, TARGET)) as session:
        session.run({"x": np.zeros((ROWS, 1 + COLUMNS), np.float32)})
        return len(graph.calls), session.counters["cycles"]


def test_the_way_of_the_fewest_cycles_is_chosen() -> None:
    together, apart, chosen = _cycles(_Always(0)), _cycles(_Always(1)), _cycles(TargetChoice(TARGET))
    assert (together[0], apart[0]) == (1, 2) and together[1] != apart[1]
    assert chosen == min(together, apart, key=lambda one: one[1])
