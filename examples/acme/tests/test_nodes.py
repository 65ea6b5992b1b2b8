"""The chips are devices of nodes by their description and rules alone: the level `distributed` passes, and needs each rule."""

from __future__ import annotations

import pytest

from tilefw.runtime.plugins.loader import find_target
from tilefw_acme.lower import AcmeLanes
from tilefw_conformance import runner
from tilefw_conformance.nodes.cases import cases
from tilefw_conformance.selection import select

LITMUS = "litmus/put_signal/* or litmus/fences/order=needed"
COLLECTIVES = "all_gather/order/form=push*seed=1 or all_reduce/ranks/form=ring,ranks=3*"


def ran(target: str, expression: str) -> list[str]:
    """The outcomes of the cases of the level, in this process."""
    return [runner.run(case, find_target(target)).outcome for case in select(cases(), "distributed", expression)]


@pytest.mark.parametrize(("target", "expression", "number"), [("acme-x1", LITMUS, 6), ("acme-x2", COLLECTIVES, 2)])
def test_litmus_tests_and_collectives_pass(target: str, expression: str, number: int) -> None:
    assert ran(target, expression) == ["pass"] * number


def test_without_its_cache_actions_a_chip_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AcmeLanes, "fence", lambda *said: None)
    monkeypatch.setenv("TILEFW_CACHE", "off")
    assert ran("acme-x1", "litmus/fences/order=needed") == ["fail"]
