"""A check observes a launch by the events that it overrides; what no check observes is never called."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from running import run

from tilefw.api.checks import BUILTIN_CHECKS
from tilefw.api.device import LaunchOptions
from tilefw.api.errors import PluginError
from tilefw.api.sim import Access, Check, Instruction
from tilefw.sim.checks.active import EVENTS, active_checks, observers_of
from tilefw.sim.engine.observers import Observers

ADD = "param a0, arg0\nindex a1, a0, tid\nload r0, a1\nadd r0, r0, 3\nstore a1, r0\nend\n"


class Stores(Check):
    """Counts the lanes that store."""

    name = "stores"

    def access(self, lanes: Any, access: Access) -> None:
        if access.kind == "write":
            counts = (lanes.frame.threads if piece.lanes is None else piece.index.size for piece in access.pieces)
            self.launch.diagnostics.counters.add("stores.lanes", sum(counts))

    def end(self, batch: Any) -> None:
        self.launch.diagnostics.counters.add("stores.batches", 1)


class BigSums(Check):
    """Reports sums above 9."""

    name = "big_sums"

    def step(self, lanes: Any, instruction: Instruction, sources: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        if instruction.mnemonic == "add" and (results[0] > 9).any():
            read = "+".join(str(int(s.reshape(-1)[-1])) for s in sources)
            self.launch.diagnostics.reporter.add(
                self.name, "TFW0999", f"{read} is big", instruction, count=int((results[0] > 9).sum()), severity="warning"
            )


def test_a_check_of_another_package_sees_accesses_and_ends() -> None:
    out = run(ADD, np.arange(16, dtype=np.uint32), block=8, grid=2, observers=(f"{__name__}:Stores",))
    assert (out.report.counters["stores.lanes"], out.report.counters["stores.batches"]) == (16, 1)


def test_a_check_of_steps_sees_what_was_read_although_the_result_overwrites_it() -> None:
    out = run(ADD, np.arange(8, dtype=np.uint32), observers=(f"{__name__}:BigSums",))
    finding = out.finding("big_sums")
    assert (finding.message, finding.count, finding.code_place.line) == ("7+3 is big", 1, 4)
    assert run(ADD, np.arange(8, dtype=np.uint32)).report.findings == ()


def test_without_checks_only_what_ends_a_launch_is_observed() -> None:
    observers = observers_of([check(None) for check in active_checks(LaunchOptions(checks=frozenset()))])  # type: ignore[arg-type]
    assert {event for event in EVENTS if getattr(observers, event)} == {"out_of_bounds", "write_to_readonly"}
    assert not (observers.follows_undefined or observers.follows_offsets or observers.orders_accesses or observers.bytes_per_byte)


def test_every_event_is_a_method_of_a_check() -> None:
    facts = {"follows_undefined", "follows_offsets", "orders_accesses", "bytes_per_byte"}
    assert {f.name for f in fields(Observers)} == {*EVENTS, *facts}


@pytest.mark.parametrize("info", [i for i in BUILTIN_CHECKS if i.observers], ids=lambda i: i.name)
def test_the_classes_of_a_check_report_under_its_name(info: Any) -> None:
    classes = active_checks(LaunchOptions(checks=frozenset({info.name})))[1:]
    assert len(classes) == len(info.observers) and {c.name for c in classes} == {info.name}


@pytest.mark.parametrize("wrong, words", [
    ("no_such_module:Check", "No module named 'no_such_module'"), (f"{__name__}:Missing", "has no attribute 'Missing'"),
    (f"{__name__}:ADD", "is not a tilefw.api.sim.Check"),
])
def test_a_class_that_is_no_check_is_refused(wrong: str, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        run(ADD, np.arange(8, dtype=np.uint32), observers=(wrong,))
    assert caught.value.code == "TFW0514"
