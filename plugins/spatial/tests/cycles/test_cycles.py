"""The scheduler's count of cycles is both simulators' own, and a cycle more or less at one instruction is never overlooked."""

from __future__ import annotations

import random

import pytest

from cycles import campaign, launched
from cycles.edits import ERROR, KINDS, Edits
from cycles.shifts import SAME, TAKEN, Shifts

KERNELS = {
    "vector_add": {"n": 1000}, "matmul": {"m": 20, "n": 30, "k": 40}, "softmax": {"rows": 4, "columns": 50},
    "cast": {"n": 700, "source": "fp32", "result": "bf16"},
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_count_is_that_of_both_simulators(name: str) -> None:
    one = launched.kernel(name, KERNELS[name])
    fast, slow = one.fast(), one.slow()
    assert one.judged().problems == ()
    assert fast.findings == ()
    assert slow.same(fast)
    assert one.predicted == one.program.cycles == fast.cycles


@pytest.mark.parametrize("split", ["n", "k"])
def test_chips_that_send_to_one_another_take_the_cycles_that_are_predicted(split: str) -> None:
    sizes = {"m": 4, "n": 24, "k": 40, "dtype": "fp16", "block_m": 16, "block_n": 16, "block_k": 16}
    one = launched.kernel("matmul", sizes, 2, split)
    fast = one.fast()
    assert one.judged().problems == ()
    assert one.slow().same(fast)
    assert (one.predicted, fast.findings) == (fast.cycles, ())


@pytest.mark.parametrize(("index", "tiles"), [(6, True), (48, True), (26, False), (90, True)])
def test_random_programs_take_the_cycles_that_are_predicted(index: int, tiles: bool) -> None:
    """Of core's random programs some that the target serves; 48 has transfers of explicit elements."""
    row = campaign.measured(launched.random(1, index, tiles), slow=5_000)
    assert row.wrong == ""
    assert row.predicted == row.fast == row.slow > 50


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_a_cycle_more_or_less_is_an_error_or_harmless(name: str) -> None:
    shifts = Shifts()
    one = launched.kernel(name, KERNELS[name])
    shifts.sample(one, random.Random(name), 40, slowly=name == "matmul")
    assert shifts.contradictions == []
    assert shifts.total == 40
    assert shifts.seen[False, TAKEN] < 20
    assert shifts.seen[False, SAME] <= 2, "the checker is strict, not blind"


def test_what_a_simulator_finds_in_an_edited_program_is_an_error_of_the_checker() -> None:
    """A sample of `campaign.edits`: nothing that a simulator finds is sound to the checker, and most edits are errors."""
    found = Edits()
    for name in ("matmul", "softmax"):
        found.sample(launched.kernel(name, KERNELS[name]), random.Random(name), 6)
    assert found.contradictions == []
    assert {kind for kind, _ in found.seen} == set(KINDS)
    for kind in ("stream", "row", "slice", "dropped", "weight buffer", "count of REP"):
        assert {seen for k, seen in found.seen if k == kind} == {ERROR}, kind
