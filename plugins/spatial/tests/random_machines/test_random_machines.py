"""Machines drawn at random: a launch on one is right and takes the predicted cycles, or an error names what the machine lacks."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from random_machines.campaign import report
from random_machines.machines import LAUNCHES, MEMORY, RIGHT, SMALL, Outcome, drawn, outcome


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_works_or_the_error_names_what_it_lacks(seed: int) -> None:
    rng = random.Random(seed)
    machine = drawn(rng)
    outcomes = [outcome(machine, kernel, LAUNCHES[kernel]) for kernel in rng.sample(list(LAUNCHES), 2)]
    assert len(outcomes) == 2


def test_most_drawn_machines_work() -> None:
    found = Counter(outcome(drawn(random.Random(100 + seed)), "vector_add", SMALL).word for seed in range(4))
    assert found[RIGHT] >= 3, found


def test_the_report_counts_what_is_right_refused_and_wrong() -> None:
    rows = {(1, "vector_add"): Outcome(RIGHT, 70), (1, "matmul"): Outcome(MEMORY), (2, "vector_add"): Outcome("arrange, chain"),
            (2, "matmul"): "AssertionError: 5"}
    page = report(rows, 2, 1, 3.0)
    assert "| vector_add | 1 | 70 to 70 | 0 | 1 | 0 |" in page
    assert "| matmul | 0 | – | 1 | 0 | 1 |" in page
    assert "| arrange, chain | 1 | 1 |" in page
    assert "- machine 2, matmul: AssertionError: 5" in page
