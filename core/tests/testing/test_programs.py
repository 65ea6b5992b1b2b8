"""Random tile programs: each parses, the same number gives the same program, passes keep what the interpreter computes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.dialects.builtin import ModuleOp

from tilefw.runtime.config import Resolved
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.testing.programs import COUNTED, ProgramCampaign, narrowed, numbered, operations, part, parts, programs, run, run_on
from tilefw.testing.random_program import OPERATIONS, RandomProgram, generate
from tilefw.tile.text.module import parse

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=_SLOW)
@given(programs())
def test_tile_passes_keep_the_meaning_of_a_program(program: RandomProgram) -> None:
    outcome = run(program, "reference")
    assert outcome.status == "pass", outcome.message()


def test_every_operation_is_drawn() -> None:
    counted: Counter[str] = Counter()
    for index in range(len(OPERATIONS)):
        counted.update(operations(numbered(3, index)))
    assert not set(COUNTED) - counted.keys()


def test_a_pointwise_program_has_no_tile_operations() -> None:
    for index in range(40):
        text = numbered(3, index, tiles=False).text
        assert not any(f"tile.{name} " in text for name in ("reduce", "scan", "dot", "trans", "join", "split", "flip"))


def test_a_number_is_one_program() -> None:
    first, second = numbered(5, 17), numbered(5, 17)
    assert first.text == second.text
    assert first.text != numbered(5, 18).text


@pytest.mark.parametrize(("asked", "name"), [
    ("divs", "divs"), ("log", "log"), ("castf", "castf"), ("ptr_to_int", "ptr_to_int"), ("select", "select"), ("cat", "join"),
    ("interleave", "reshape"), ("reduce_function", "reduce"), ("scan_function", "scan"), ("dot_loop", "dot"),
    ("chained_dots", "dot"), ("flip", "flip"), ("gather", "gather"),
    ("atomic_shared", "atomic_rmw"), ("atomic_alone", "atomic_rmw"), ("atomic_swap", "atomic_cas"),
])
def test_the_operation_asked_for_occurs(asked: str, name: str) -> None:
    assert all(f"tile.{name} " in generate(random.Random(seed), 1, asked).text for seed in range(5))


def test_control_flow_and_both_ranks_occur() -> None:
    texts = [generate(random.Random(seed), 8).text for seed in range(60)]
    for word in ("scf.for", "scf.if", "scf.while", "tile.expand_dims", "tile.splat", " other ", "tile.addptr", "tile.load_block"):
        assert sum(word in text for text in texts) >= 3, word


@pytest.mark.parametrize("index", range(4))
def test_one_wrong_element_is_found(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign's own alarm: after the launch, one element of each output is another one."""
    from tilefw.testing import programs as module

    real = module._launch

    def spoiled(program: RandomProgram, code: ModuleOp, target: Target, resolved: Resolved, values: Mapping[str, Any]) -> None:
        real(program, code, target, resolved, values)
        for name in program.outputs:
            values[name].array.view("uint8")[-1] ^= 0x7F

    program = next(p for p in (numbered(9, i) for i in range(10 * index, 200)) if run(p, "reference").free == 0)
    assert run(program, "reference").status == "pass"
    monkeypatch.setattr(module, "_launch", spoiled)
    outcome = run(program, "reference")
    assert outcome.status == "differs", outcome.message()


def test_a_narrowed_program_still_parses_and_stores_one_output() -> None:
    program = next(p for p in (numbered(2, i) for i in range(50)) if len(p.outputs) >= 3)
    texts = [narrowed(program, output) for output in program.outputs]
    stores = [len([op for op in parse(text).walk() if op.name.startswith("tile.store")]) for text in texts]
    assert set(stores) <= {0, 1} and 1 in stores  # none where atomics alone write the output
    assert max(map(len, texts)) < len(program.text)


def test_a_campaign_counts_what_it_ran() -> None:
    campaign = ProgramCampaign(("reference",), 4)
    for index in range(5):
        campaign.take(index, None)
    report = campaign.report()
    found = report["targets"]["reference"]
    assert report["programs"] == 5 and found["outcomes"] == {"pass": 5} and not report["failures"]
    assert set(found["occurrences"]) == set(COUNTED)


def test_processes_find_what_one_finds() -> None:
    """Two processes, each with a part of its own, add up to the campaign over all of it."""
    whole, added = part(("reference",), 6, None, range(4)), ProgramCampaign(("reference",), 6)
    for found in parts(("reference",), 6, None, range(4), 2, 2):
        added.add(found)
    reports = [{k: v for k, v in campaign.report().items() if k != "seconds"} for campaign in (whole, added)]
    assert reports[0] == reports[1]
    assert reports[0]["programs"] == 4


def test_each_target_starts_from_the_same_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two targets the first spoils every output: the second is judged by what it wrote itself."""
    from tilefw.testing import programs as module

    real, seen = module._launch, []

    def spoiled(program: RandomProgram, code: ModuleOp, target: Target, resolved: Resolved, values: Mapping[str, Any]) -> None:
        seen.append([values[name].array.copy() for name in program.outputs])
        real(program, code, target, resolved, values)
        if len(seen) == 1:
            for name in program.outputs:
                values[name].array.view("uint8")[...] ^= 0x7F

    program = next(p for p in (numbered(9, i) for i in range(200)) if run(p, "reference").free == 0)
    monkeypatch.setattr(module, "_launch", spoiled)
    monkeypatch.setattr(module, "find_target", lambda _: find_target("reference"))
    found = run_on(program, ("spoiled", "second"))
    assert [outcome.status for outcome in found.values()] == ["differs", "pass"], found
    assert all(map(np.array_equal, *seen))
