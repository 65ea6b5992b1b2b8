"""The level of nodes: it has every collective of the index, right ones pass, wrong ones fail; who makes no node is told why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilefw.cli.main import main
from tilefw.kernels.distributed import index
from tilefw.runtime.plugins.loader import find_target
from tilefw_conformance import runner
from tilefw_conformance.case import Case
from tilefw_conformance.nodes import collectives
from tilefw_conformance.nodes.cases import cases
from tilefw_conformance.nodes.litmus import running
from tilefw_conformance.nodes.litmus.table import ORDERS, TESTS
from tilefw_conformance.report.reading import read
from tilefw_conformance.selection import select

SMALL = "all_gather/sizes/form=push,ranks=3,n=1,dtype=float32"


def case(name: str) -> Case:
    return next(one for one in cases() if one.id == name)


def test_every_form_and_type_of_the_index_is_in_the_level_on_one_to_eight_ranks() -> None:
    chosen = select(cases(), "distributed", None)
    assert chosen == cases() and not select(cases(), "stress", None) and not select(cases(), "preview", None)
    assert len({one.id for one in chosen}) == len(chosen)
    for name, one in index.COLLECTIVES.items():
        mine = [each.parameters for each in chosen if each.kernel == f"node:{name}"]
        assert {each["form"] for each in mine} == set(one.forms) and {each["dtype"] for each in mine} == set(one.dtypes)
        assert {each["ranks"] for each in mine} == set(range(1, 9)) and {each["memory"] for each in mine} == {"coherent", "weak"}


def test_a_collective_that_the_index_gets_later_has_cases_and_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(index.COLLECTIVES["all_gather"], name="gather_again")
    monkeypatch.setattr(collectives, "COLLECTIVES", {"gather_again": later})
    program = collectives.program("gather_again")
    assert program is not None and [one.name for one in program.info.parameters] == ["form", "ranks", "n", "dtype", "memory"]
    assert {sweep.name for sweep, _, _ in collectives.choices(later)} == {"ranks", "sizes", "types", "order"}


def test_a_right_collective_passes_stage_by_stage() -> None:
    result = runner.run(case(SMALL), find_target("reference"))
    assert result.outcome == "pass", result.message()
    assert result.verdict is not None and [one.name for one in result.verdict.stages] == ["lower", "simulate", "compare"]
    assert set(result.verdict.comparisons) == {"rank 0", "rank 1", "rank 2"} and result.verdict.required
    assert "--level distributed -k " in result.record()["reproduce"]


def test_a_rank_with_a_wrong_element_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    one = index.COLLECTIVES["all_gather"]

    def wrong(node: object, x: object, form: str, **said: object) -> list[np.ndarray]:
        found = one.run(node, x, form, **said)
        return [found[0], found[1] + np.array([0, 1, 0], np.float32), found[2]]

    monkeypatch.setattr(collectives, "COLLECTIVES", {"all_gather": replace(one, run=wrong)})
    result = runner.run(case(SMALL), find_target("reference"))
    assert result.outcome == "fail" and "rank 1 differs" in result.message()
    assert result.verdict is not None and result.verdict.worst == ("rank 1", (1,))


@pytest.mark.parametrize(("target", "name", "said"), [
    ("spatial-sdm1", SMALL, "does not run several launches at once"),
    ("reference", SMALL.replace("sizes", "order").replace("ranks=3,n=1", "ranks=2,n=777") + ",seed=1", "no check `weak_memory`"),
])
def test_who_makes_no_node_or_not_such_memory_is_unsupported_by_name(target: str, name: str, said: str) -> None:
    result = runner.run(case(name), find_target(target))
    assert result.outcome == "unsupported" and said in result.message(), result.message()


def test_a_stage_before_execution_compiles_every_launch_and_runs_none() -> None:
    result = runner.run(case(SMALL), find_target("amd-cdna3"), stage="emit")
    assert result.outcome == "pass", result.message()
    assert result.verdict is not None and [one.name for one in result.verdict.stages] == ["lower"]
    assert result.verdict.artifact is not None and not result.verdict.counters


def test_reports_of_one_worker_and_of_two_are_the_same(tmp_path: Path) -> None:
    def digest(jobs: str) -> str:
        said = ["--target", "nvidia-sm80", "--level", "distributed", "-k", "litmus/put_signal/order=device_*", "--jobs", jobs]
        assert main(["conformance", *said, "--report", str(tmp_path / jobs)]) == 0
        report = read(str(tmp_path / jobs))
        assert [one["level"] for one in report.of("nvidia-sm80")] == ["distributed"] * 2
        return report.footer["digest"]

    assert digest("1") == digest("2")


def test_nothing_is_forbidden_of_programs_whose_order_is_relaxed() -> None:
    """PTX's axioms and the memory model allow load buffering between relaxed accesses, as all other weak outcomes."""
    right = {(name, order) for name, test in TESTS.items() for order in test.right}
    assert right and not [one for one in right if "relaxed" in (ORDERS[one[1]].release, ORDERS[one[1]].acquire)]


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_a_litmus_test_passes_with_its_orders_and_is_found_without_one(target: str) -> None:
    for order in ("needed", "device_release", "relaxed_acquire"):
        result = runner.run(case(f"litmus/put_signal/order={order}"), find_target(target))
        assert result.outcome == "pass", result.message()


def test_a_forbidden_outcome_fails_and_a_wrong_program_that_nothing_shows_does_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way round: the orders of one case stand for those of the other."""
    monkeypatch.setattr(running, "ORDERS", {"needed": ORDERS["relaxed_acquire"], "relaxed_acquire": ORDERS["needed"]})
    test = replace(TESTS["put_signal"], ordered=False)  # by what is seen alone
    monkeypatch.setattr(running, "TESTS", {"put_signal": test})
    monkeypatch.setattr(running, "LONGEST_SEARCH", 4)  # all of it, where nothing is shown
    for order, said in (("needed", "forbidden outcomes differs"), ("relaxed_acquire", "reported or shown differs")):
        result = runner.run(case(f"litmus/put_signal/order={order}"), find_target("nvidia-sm80"))
        assert result.outcome == "fail" and said in result.message(), result.message()
