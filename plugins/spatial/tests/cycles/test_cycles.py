"""The scheduler's count of cycles is both simulators' own, and a cycle more or less at one instruction is never overlooked."""

from __future__ import annotations

import random

import pytest

from cycles import campaign, launched
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


def test_random_programs_take_the_cycles_that_are_predicted() -> None:
    """A fixed sample of core's random programs."""
    found = campaign.programs(count=3, seed=11, slow=1_500)
    assert [row.wrong for row in found] == [""] * 3


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_a_cycle_more_or_less_is_an_error_or_harmless(name: str) -> None:
    shifts = Shifts()
    one = launched.kernel(name, KERNELS[name])
    shifts.sample(one, random.Random(name), 40, slowly=name == "matmul")
    assert shifts.contradictions == []
    assert shifts.total == 40
    assert shifts.seen[False, TAKEN] < 20
    assert shifts.seen[False, SAME] <= 2, "the checker is strict, not blind"
