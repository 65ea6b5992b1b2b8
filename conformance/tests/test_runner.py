"""Outcomes: a pass is a pass on every stage, what is not claimed is unsupported, what is claimed and refused is overclaimed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilefw.api.errors import CapacityError, InternalError, UnsupportedError, UsageError
from tilefw.cli.main import main
from tilefw.kernels.spec import load
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw_conformance import runner
from tilefw_conformance.case import Case
from tilefw_conformance.case_files import bundled
from tilefw_conformance.expectations import Expectation, expected
from tilefw_conformance.selection import select
from tilefw_conformance.summary import underclaimed


def case(name: str = "vector_add/ragged/n=33") -> Case:
    return next(c for c in bundled() if c.id == name)


def claiming(*capabilities: str) -> Target:
    """The reference with other claims; a target of its own, so that nothing is shared."""
    info = find_target("reference").info
    return Target(replace(info, capabilities=frozenset(capabilities)), None)


def test_a_right_result_passes() -> None:
    result = runner.run(case(), find_target("reference"))
    assert result.outcome == "pass", result.message()
    assert result.verdict is not None and result.verdict.comparisons["out_ptr"].elements == 33
    assert [s.outcome for s in result.verdict.stages] == ["pass", "pass", "pass", "skipped", "pass", "pass"]


def test_a_wrong_result_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load("vector_add")
    expected = spec.expected

    def wrong(parameters: Any, launch: Any) -> dict[str, np.ndarray]:
        values = dict(expected(parameters, launch))
        values["out_ptr"] = values["out_ptr"] + np.eye(1, values["out_ptr"].size, 7)[0]
        return values

    monkeypatch.setattr(runner, "spec_of", lambda case: replace(spec, expected=wrong))
    result = runner.run(case(), find_target("reference"))
    assert result.outcome == "fail"
    assert result.verdict is not None and result.verdict.worst == ("out_ptr (NumPy)", (7,))
    assert "tilefw run vector_add --target reference" in result.message()


@pytest.mark.parametrize(("claims", "error", "outcome"), [
    (("*",), UnsupportedError("no addition here"), "overclaimed"),
    (("memory.*",), UnsupportedError("no addition here"), "unsupported"),
    (("*",), CapacityError("no room", resource="registers", needed=9, available=8), "over-capacity"),
    (("*",), InternalError("broken"), "error"),
    (("*",), ValueError("a bug of the plugin"), "error"),
    ((), InternalError("never reached"), "unsupported"),
])
def test_a_refusal_is_judged_by_the_claims(
    claims: tuple[str, ...], error: Exception, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("tilefw.runtime.compilation.compiler.Compilation.finish", refuse)
    result = runner.run(case(), claiming(*claims))
    assert result.outcome == outcome
    assert result.good == (outcome in ("unsupported", "over-capacity"))
    if outcome == "unsupported":
        assert "float.add.fp32" in result.missing


def test_an_audit_runs_what_is_not_claimed() -> None:
    asked = runner.run(case(), claiming("memory.*"))
    audited = runner.run(case(), claiming("memory.*"), audit=True)
    assert (asked.outcome, audited.outcome) == ("unsupported", "pass")
    assert asked.verdict is not None and [s.name for s in asked.verdict.stages] == ["verify"]
    assert underclaimed([audited.record()]) == sorted(audited.missing) != []


@pytest.mark.parametrize(("stage", "steps"), [
    ("verify", {"front end", "passes", "requirements"}), ("lower", {"front end", "passes", "requirements", "lowering"}),
    ("emit", {"front end", "passes", "requirements", "cache", "lowering", "emit"}),
])
def test_a_run_stops_after_its_stage(stage: str, steps: set[str]) -> None:
    verdict = runner.run(case(), find_target("reference"), stage=stage).verdict
    assert verdict is not None and verdict.ok and [s.name for s in verdict.stages][-1] == stage
    assert set(verdict.times) == steps


@pytest.mark.parametrize(("raw", "judged"), [
    ("pass", "xpass"), ("fail", "xfail"), ("error", "xfail"), ("timeout", "xfail"), ("overclaimed", "xfail"),
    ("unsupported", "unsupported"), ("over-capacity", "over-capacity"),
])
def test_an_expected_failure_is_strict(raw: str, judged: str) -> None:
    known = Expectation("vector_add/*", "*", "known", "https://example.org/1", "9.9")
    record = {**runner.run(case(), find_target("reference")).record(), "outcome": raw}
    found = expected(record, [known])
    assert found["outcome"] == judged and ("known" in found["reason"]) == (raw != judged)
    assert expected(record, [replace(known, targets="other-*")]) == record


def test_a_spent_budget_ends_a_case() -> None:
    result = runner.run(replace(case(), budget=1), find_target("reference"))
    assert result.outcome == "timeout", result.message()


@pytest.mark.parametrize(("expression", "fits", "fails"), [
    ("ragged", "vector_add/ragged/n=1", "vector_add/types/dtype=fp32"),
    ("vector_add and not fp16", "vector_add/types/dtype=fp32", "vector_add/types/dtype=fp16"),
    ("cast/* or rope/*", "rope/heads/heads=1,interleaved=false", "vector_add/ragged/n=1"),
])
def test_an_expression_selects(expression: str, fits: str, fails: str) -> None:
    chosen = {c.id for c in select(bundled(), "core", expression)}
    assert fits in chosen and fails not in chosen


@pytest.mark.parametrize("expression", ["and a", "a b", "a or", "not"])
def test_a_bad_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(bundled(), "core", expression)
    assert caught.value.code == "TFW0955"


def test_parts_are_the_whole_and_have_their_share_of_each_kernel() -> None:
    whole = select(bundled(), "core", None)
    parts = [select(bundled(), "core", None, part=(one, 4)) for one in (1, 2, 3, 4)]
    assert sorted(c.id for part in parts for c in part) == sorted(c.id for c in whole)
    assert select(bundled()[::-1], "core", None, part=(1, 4)) == parts[0][::-1]
    for kernel, count in Counter(c.kernel for c in whole).items():
        shares = [sum(c.kernel == kernel for c in part) for part in parts]
        assert max(shares) - min(shares) <= 1 and sum(shares) == count, kernel
    assert max(map(len, parts)) < 1.2 * min(map(len, parts))


def test_a_report_says_which_part_it_is_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", "reference", "-k", "vector_add/ragged", "--part", "1/2", "--json", "--jobs", "1"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["runs"]
    assert shown["header"]["options"]["part"] == "1/2"
    assert 0 < len(shown["results"]) < len(select(bundled(), "core", "vector_add/ragged"))


def test_the_command_writes_a_whole_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", "reference", "-k", "swiglu/trips", "--report", str(tmp_path)]) == 0
    records = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [r["kind"] for r in records] == ["header", *["case"] * 7, *["result"] * 7, "footer"]
    assert records[0]["schema"] == "tilefw.report/1" and records[0]["targets"][0]["executor"] == "ref"
    assert records[-1]["counts"] == {"core": {"pass": 7}} and records[-1]["cases"] == 7
    assert "7 pass" in capsys.readouterr().out


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", "reference", "-k", "vector_add/ragged/n=31", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["schema"] == "tilefw.conformance/1"
    assert shown["runs"][0]["results"][0]["outcome"] == "pass"


@pytest.mark.parametrize(("argv", "code"), [
    (["--target", "reference", "-k", "nothing_like_it"], 5),
    (["--target", "referense"], 2),
    (["--target", "reference", "--resume"], 2),
    (["--target", "reference", "--edition", "9.9"], 2),
    (["--target", "reference", "--edition", "0.0"], 5),
    (["--target", "reference", "-k", "nothing_like_it", "--list"], 5),
    (["--target", "reference", "--pack", "onyx"], 2),
    (["--target", "reference", "--time-limit", "0"], 2),
    (["--target", "reference", "--memory-limit", "much"], 2),
    (["--target", "reference", "--jobs", "0"], 2),
    (["--target", "reference", "--part", "5/4"], 2),
    (["--target", "reference", "--part", "0/4"], 2),
    (["verify", "report.jsonl"], 2),
    (["--target", "reference", "--level", "hard"], 2),
    ([], 2),
])
def test_exit_codes(argv: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", *argv]) == code
    assert "Traceback" not in capsys.readouterr().err
