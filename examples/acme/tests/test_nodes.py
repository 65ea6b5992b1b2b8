"""The chips are devices of nodes by their description and rules alone: the level `distributed` passes, and needs each rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tilefw.cli.main import main
from tilefw_acme.lower import AcmeLanes

LITMUS = "litmus/put_signal/* or litmus/fences/order=needed"
COLLECTIVES = "all_gather/order/form=push*seed=1 or all_reduce/ranks/form=ring,ranks=3*"


def ran(target: str, expression: str, tmp_path: Any) -> list[str]:
    """The outcomes of a run of the suite, sorted."""
    words = ["conformance", "--target", target, "--level", "distributed", "-k", expression, "--jobs", "1"]
    main([*words, "--report", str(tmp_path)])
    lines = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()]
    return sorted(line["outcome"] for line in lines if line["kind"] == "result")


@pytest.mark.parametrize(("target", "expression", "cases"), [("acme-x1", LITMUS, 6), ("acme-x2", COLLECTIVES, 2)])
def test_litmus_tests_and_collectives_pass(target: str, expression: str, cases: int, tmp_path: Any) -> None:
    assert ran(target, expression, tmp_path) == ["pass"] * cases


def test_without_its_cache_actions_a_chip_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, whose chip can be changed."""
    from tilefw.runtime.plugins.loader import find_target
    from tilefw_conformance import runner
    from tilefw_conformance.nodes.cases import cases

    monkeypatch.setattr(AcmeLanes, "fence", lambda *said: None)
    monkeypatch.setenv("TILEFW_CACHE", "off")
    case = next(one for one in cases() if one.id == "litmus/fences/order=needed")
    assert runner.run(case, find_target("acme-x1")).outcome == "fail"
