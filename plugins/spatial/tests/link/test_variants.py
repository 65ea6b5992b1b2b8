"""Every form in which a chain is tried is right, not only the one with the fewest cycles."""

from __future__ import annotations

import pytest
from linked_model import LinkedModel, given

from tilefw.api.errors import CapacityError
from tilefw.graph import link_cache
from tilefw.graph.certificate import certified
from tilefw.graph.compile_graph import compile_graph
from tilefw.graph.plan import ModelPlan
from tilefw.graph.session import Session
from tilefw_spatial.link import chain
from tilefw_spatial.machine import Machine


@pytest.fixture(autouse=True)
def _no_link_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_cache, "find", lambda key: None)


def _plan() -> ModelPlan:
    """x + W · norm(x), normed."""
    model = LinkedModel(256)
    up = model.product("up", model.normed("first", model.x, model.rows("n")), "none", model.rows("up"))
    h = model.added("residual", model.x, up, model.rows("h"))
    model.made.output("y", model.product("down", model.normed("second", h, model.rows("m")), "none", model.rows("y")))
    return compile_graph(model.made.graph(), "spatial-sdm1")


@pytest.mark.parametrize(("number", "moves"), [(0, False), (3, True)])
def test_small_values_may_change_lanes_on_the_chip(number: int, moves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = chain.variants
    monkeypatch.setattr(chain, "variants", lambda *given: [list(tried(*given))[number]])
    plan = _plan()
    (link,) = plan.links
    instructions = link.artifact.resources.instructions if link.artifact.resources else None
    assert instructions is not None and ("PRM" in instructions) == moves
    with Session(plan) as session:
        assert certified(session, {"x": given(256)}).ok
        assert session.counters["cycles"] == session.counters["cycles_predicted"]


def test_the_form_with_the_fewest_cycles_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, cycles = chain.tried, list[int]()

    def noted(variant: chain.ChainVariant, count: int, machine: Machine) -> chain.TriedVariant:
        made = tried(variant, count, machine)
        cycles.append(made.cycles)
        return made

    monkeypatch.setattr(chain, "tried", noted)
    made = _plan().links[0].artifact.metadata["cycles"]
    assert isinstance(made, int) and made <= min(cycles) < max(cycles)


def test_a_form_that_does_not_fit_the_chip_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, seen = chain.tried, list[int]()

    def refused_first(variant: chain.ChainVariant, count: int, machine: Machine) -> chain.TriedVariant:
        seen.append(count)
        if len(seen) == 1:
            raise CapacityError("it does not fit", "TFW0690")
        return tried(variant, count, machine)

    monkeypatch.setattr(chain, "tried", refused_first)
    model = LinkedModel(64)
    model.made.output("y", model.added("b", model.normed("a", model.x, model.rows("h")), model.x, model.rows("y")))
    (link,) = compile_graph(model.made.graph(), "spatial-sdm1").links
    assert link.count == 2 and len(seen) == 4


def test_a_chain_in_which_nothing_changes_lanes_has_one_form(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, seen = chain.tried, list[int]()
    monkeypatch.setattr(chain, "tried", lambda *given: (seen.append(0), tried(*given))[1])
    model = LinkedModel(64)
    model.made.output("y", model.added("b", model.added("a", model.x, model.x, model.rows("h")), model.x, model.rows("y")))
    assert len(compile_graph(model.made.graph(), "spatial-sdm1").links) == len(seen) == 1
