"""The view machine has the verdicts of the own table of scopes; without one of its rules it has not."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from scope_tests import scope_tests

from tilefw.sim.memory.litmus import explore, sample
from tilefw.sim.memory.views.agents import MemoryRules

TESTS = list(scope_tests())


def test_every_state_of_each_test_agrees_with_its_verdict():
    for name, test, allowed in TESTS:
        tally = explore(test)
        assert tally.complete and tally.ends, name
        assert (tally.witnesses > 0) == allowed, name


def test_the_table_has_sixty_tests_and_each_once():
    assert len(TESTS) >= 60 and len({" ".join(name.split()) for name, *_ in TESTS}) == len(TESTS)


def test_seeded_schedules_show_what_is_allowed_and_nothing_else():
    for name, test, allowed in TESTS:
        tally = sample(test, 2000 if allowed else 60, seed=3, until_seen=True)
        assert (tally.witnesses > 0) == allowed and not tally.stuck, name


@pytest.mark.parametrize("rule", [field.name for field in fields(MemoryRules) if field.name != "ways"])
def test_without_one_of_its_rules_the_model_has_another_verdict(rule):
    rules = replace(MemoryRules(), **{rule: False})
    assert any((explore(test, rules=rules, until_seen=True).witnesses > 0) != allowed for _, test, allowed in TESTS)
