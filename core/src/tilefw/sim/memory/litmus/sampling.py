"""Seeded schedules of a litmus test: a fair adversary picks who steps, what is read, and which loads stay in flight."""

from __future__ import annotations

from tilefw.sim.memory.litmus.outcomes import Tally
from tilefw.sim.memory.litmus.test import LitmusTest
from tilefw.sim.memory.litmus.threads import RunningTest
from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import MemoryRules
from tilefw.sim.memory.views.machine import PassedTooFar, ViewMachine

STEPS = 2000
"""Steps after which a schedule counts as stuck: the adversary is fair, so a loop that can end does."""


def sample(test: LitmusTest, schedules: int, seed: int = 0, rules: MemoryRules | None = None, until_seen: bool = False) -> Tally:
    """Run schedules; with `until_seen` only until a witness is seen."""
    tally = Tally()
    adversary = Adversary(seed)
    for run in range(1, schedules + 1):
        tally.runs = run
        try:
            execution = _run(test, adversary, rules)
        except PassedTooFar:
            tally.impossible += 1
            continue
        if execution is None:
            tally.stuck += 1
            continue
        tally.ends += 1
        if any(test.condition.witness(final) for final in execution.finals()):
            tally.witnesses += 1
            tally.first = tally.first or run
            if until_seen:
                break
    return tally


def _run(test: LitmusTest, adversary: Adversary, rules: MemoryRules | None) -> RunningTest | None:
    """One schedule to its end; None if it is stuck."""
    adversary.begin()
    machine = ViewMachine(test.places, adversary, dict(test.aliases), rules)
    for address, value in test.memory.items():
        machine.initialise(address, value)
    execution = RunningTest(test, machine)
    for _ in range(STEPS):
        ready = execution.ready()
        if not ready:
            return execution if all(map(execution.ended, range(len(test.threads)))) else None
        number = ready[adversary.pick(len(ready))]
        execution.step(number, execution.may_wait(number) and adversary.happens(0.5))
    return None
