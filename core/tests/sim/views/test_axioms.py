"""The view machine against the axioms on random tests: it shows nothing that they forbid, and nearly all that they allow."""

from __future__ import annotations

import random
from collections.abc import Callable

from axioms import outcomes

from tilefw.sim.memory.litmus import LitmusTest, explore
from tilefw.sim.memory.litmus.test import Condition, LitmusStep
from tilefw.sim.memory.views import Participant, SyncScope

SCOPES = (SyncScope.WORKGROUP, SyncScope.DEVICE, SyncScope.SYSTEM, SyncScope.SYSTEM)
KINDS = {"load": ("weak", "relaxed", "acquire"), "store": ("weak", "relaxed", "release"),
         "update": ("relaxed", "acquire", "release", "acq_rel"), "fence": ("acq_rel", "sc")}


def drawn(rng: random.Random, watch: Callable[[dict[str, int]], bool]) -> LitmusTest:
    """Two threads of three steps, on one device or two, on two locations; stores may store what was read."""
    places = tuple(Participant(rng.choice((0, 0, 1)), rng.choice((0, 1))) for _ in range(2))
    threads = tuple(tuple(step(rng, thread, place) for place in range(3)) for thread in range(2))
    return LitmusTest("drawn", places, threads, Condition("exists", watch, frozenset()), {"x": 0, "y": 0})


def step(rng: random.Random, thread: int, place: int) -> LitmusStep:
    kind = rng.choice(("load", "load", "store", "store", "update", "fence"))
    order = rng.choice(KINDS[kind])
    scope = SyncScope.SELF if order == "weak" else rng.choice(SCOPES)
    address = "" if kind == "fence" else rng.choice("xy")
    register = f"r{place}" if kind in ("load", "update") else ""
    operands = {"store": (1 + 3 * thread + place,), "update": (100,)}.get(kind, ())
    return LitmusStep(kind, register, address, operands, order, scope, action="add" if kind == "update" else "")  # type: ignore[arg-type]


def test_random_tests_show_nothing_that_the_axioms_forbid_and_nearly_all_that_they_allow():
    rng, allowed, missed = random.Random(4), 0, 0
    for _ in range(120):
        shown = set()
        test = drawn(rng, lambda final: bool(shown.add(tuple(sorted(final.items())))))  # noqa: B023 -- called in this round
        assert explore(test).complete
        expected = outcomes(test)
        assert shown <= expected, (test.places, test.threads, shown - expected)
        allowed, missed = allowed + len(expected), missed + len(expected - shown)
    assert missed <= allowed // 10, (missed, allowed)
