"""What is made of a report says what it says: JUnit, Markdown, badges, differences, and the commands over reports."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import made
import pytest

from tilefw.cli.main import main
from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.report.badge import badges
from tilefw_conformance.report.derived import derive
from tilefw_conformance.report.difference import difference
from tilefw_conformance.report.headroom import is_rounding, is_tight
from tilefw_conformance.report.junit import junit
from tilefw_conformance.report.markdown import markdown
from tilefw_conformance.report.page.summary import facts
from tilefw_conformance.report.reading import Report, read


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read(str(made.report(tmp_path_factory.mktemp("report"), cases=150)))


def test_junit_has_a_suite_a_target_and_never_a_pass_that_is_none(report: Report) -> None:
    suites = list(ElementTree.fromstring(junit(report)))
    assert [suite.get("name") for suite in suites] == [f"tilefw.{name}" for name in report.targets]
    for suite, target in zip(suites, report.targets, strict=True):
        counted = Counter(one["outcome"] for one in report.of(target))
        tests = suite.findall("testcase")
        plain = [test for test in tests if not list(test)]
        assert len(tests) == int(suite.get("tests", "")) == 150 and len(plain) == counted["pass"]
        assert int(suite.get("skipped", "")) == sum(counted[name] for name in ("xfail", "unsupported", "over-capacity"))
        assert int(suite.get("errors", "")) == counted["error"] + counted["timeout"]
        assert int(suite.get("failures", "")) == counted["fail"] + counted["xpass"] + counted["overclaimed"]
    failed = next(test for test in suites[1].iter("failure"))
    assert "run it again: tilefw run" in (failed.text or "")


def test_junit_stays_xml_whatever_a_plugin_says(tmp_path: Path) -> None:
    report = read(str(made.report(tmp_path, cases=30)))
    for one in report.results.values():
        one["error"] = {"code": None, "message": "\x00\x1b[31m]]> <&\ud800 \ufffe"}
    messages = [bad.get("message", "") for bad in ElementTree.fromstring(junit(report)).iter("error")]
    assert messages and all("]]> <&" in message for message in messages)


def test_markdown_counts_what_the_report_counts_and_names_what_is_not_well(report: Report) -> None:
    text = markdown(report)
    bad = [one for one in report.results.values() if one["outcome"] not in GOOD]
    assert f"## Not well: {len(bad)}" in text
    assert all(f"### {one['outcome']}: `{one['case']}` on {one['target']}" in text for one in bad[:20])
    core = report.footer["targets"]["nvidia-sm80"]["core"]
    every = sum(core.values())
    assert f"| nvidia-sm80 | simulated | core | {core['pass']} / {every - core.get('unsupported', 0)} / {every} |" in text


def test_a_long_text_cannot_leave_its_fence(report: Report) -> None:
    key, one = next((key, one) for key, one in report.results.items() if one["outcome"] == "error")
    told = {**one, "error": {"code": None, "message": "```\n# not a title"}, "reproduce": "```"}
    changed = Report(report.file, report.header, report.cases, {**report.results, key: told}, report.footer)
    assert "````text\n```\n````" in markdown(changed)


def test_a_badge_is_of_core_and_says_simulated(tmp_path: Path) -> None:
    one = read(str(made.report(tmp_path, cases=40, targets=["reference"])))
    badge = badges(one)["badge.json"]
    core = sum(one.footer["targets"]["reference"]["core"].values())
    assert badge == {
        "schemaVersion": 1, "label": "tilefw core 0.1 reference", "message": f"{core}/{core} · base · half · mma · reference",
        "color": "brightgreen",
    }


def test_a_badge_hides_neither_failures_nor_a_part(report: Report) -> None:
    found = badges(report)
    assert set(found) == {f"badge-{name}.json" for name in report.targets}
    badge = found["badge-nvidia-sm80.json"]
    core = report.footer["targets"]["nvidia-sm80"]["core"]
    wrong = sum(n for outcome, n in core.items() if outcome not in GOOD)
    assert badge["color"] == "red" and badge["isError"] and f"{wrong} wrong" in badge["message"]
    assert badge["message"].endswith("simulated")
    for header in ({"expression": "softmax"}, {"options": {"part": "1/4"}}):
        part = Report(report.file, {**report.header, **header}, report.cases, report.results, report.footer)
        badge = badges(part)["badge-reference.json"]
        assert badge["color"] == "lightgrey" and "a part" in badge["message"]
    assert "`--part 1/4`" in markdown(part) and "--part 1/4" in facts([part])


def test_a_badge_counts_timeouts_apart_from_what_is_wrong(report: Report) -> None:
    targets = {"nvidia-sm80": {"core": {"pass": 5, "fail": 2, "timeout": 3}}}
    footer = {**report.footer, "targets": {**report.footer["targets"], **targets}}
    badge = badges(Report(report.file, report.header, report.cases, report.results, footer))["badge-nvidia-sm80.json"]
    assert badge["message"].startswith("5/10 · 2 wrong · 3 timed out · ") and badge["isError"]


def test_every_derived_file_is_written(tmp_path: Path) -> None:
    made.report(tmp_path, cases=5, targets=["reference"])
    assert {Path(path).name for path in derive(str(tmp_path))} == {"report.html", "report.md", "junit.xml", "badge.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"report.jsonl", "report.html", "report.md", "junit.xml", "badge.json"}


def test_several_targets_in_one_run_have_one_page_above_their_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--target", "reference", "--target", "nvidia-sm80", "-k", "vector_add/ragged/n=33", "--report", str(tmp_path)]
    code, out, err = told(argv, capsys)
    assert code == 0 and "1 pass" in out and f"all targets: {tmp_path / 'report.html'}" in err
    assert "tilefw conformance: reference, nvidia-sm80" in (tmp_path / "report.html").read_text("utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"reference", "nvidia-sm80", "report.html"}


def test_a_difference_is_of_each_result(tmp_path: Path) -> None:
    old = read(str(made.report(tmp_path / "old", cases=60)))
    new = read(str(made.report(tmp_path / "new", cases=80, changed=0.1)))
    found = difference(old, new)
    changed = {key for key in old.results if old.results[key]["outcome"] != new.results[key]["outcome"]}
    assert {(one.target, one.case) for one in found.of("C")} == changed != set()
    assert found.counts == {"A": 60, "D": 0, "C": len(changed), "U": 180 - len(changed)}
    for one in found.of("C"):
        assert one.worse == (one.old in GOOD and one.new not in GOOD)
    back = difference(new, old)
    assert back.counts["D"] == 60 and not any(one.worse for one in back.of("D"))
    assert difference(old, old).counts == {"A": 0, "D": 0, "C": 0, "U": 180}


def told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["conformance", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_verify_says_what_a_report_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made.report(tmp_path)
    code, out, _ = told(["verify", str(tmp_path)], capsys)
    assert code == 0 and "whole; edition 0.1, 120 results of 40 cases on reference (reference), nvidia-sm80 (simulated)" in out
    code, out, _ = told(["verify", str(path), "--json"], capsys)
    assert code == 0 and json.loads(out)["reports"][0]["footer"]["cases"] == 120


def test_verify_refuses_what_is_not_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made.report(tmp_path, cut=True)
    code, _, err = told(["verify", str(path)], capsys)
    assert code == 1 and "error[TFW0977]" in err and "report.jsonl:161" in err and "Traceback" not in err
    code, _, err = told(["verify", str(tmp_path / "other")], capsys)
    assert code == 2 and "error[TFW0976]" in err


def test_diff_is_1_where_something_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = str(made.report(tmp_path / "old", cases=60)), str(made.report(tmp_path / "new", cases=60, changed=0.1))
    code, out, _ = told(["diff", old, new], capsys)
    lines = out.splitlines()
    assert code == 1 and any(line.startswith("C ") and line.endswith("(worse)") for line in lines)
    assert lines[-1].startswith("0 added, 0 deleted, ")
    assert told(["diff", old, old], capsys)[0] == 0
    code, out, _ = told(["diff", old, new, "--filter", "U", "--json"], capsys)
    assert {one["kind"] for one in json.loads(out)["changes"]} == {"U"}
    assert told(["diff", old, new, "--filter", "X"], capsys)[0] == 2


def test_diff_refuses_runs_of_other_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(made.report(tmp_path / "one", targets=["reference"]))
    two = str(made.report(tmp_path / "two", targets=["acme-x1"]))
    code, _, err = told(["diff", one, two], capsys)
    assert code == 2 and "error[TFW0981]" in err and "acme-x1" in err


def test_page_merges_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(made.report(tmp_path / "one", targets=["reference"]))
    two = str(made.report(tmp_path / "two", targets=["acme-x1"]))
    code, out, _ = told(["page", one, two, "--against", one, "--out", str(tmp_path / "page.html")], capsys)
    assert code == 0 and "KB" in out
    assert "tilefw conformance: reference, acme-x1" in (tmp_path / "page.html").read_text("utf-8")
    code, _, err = told(["page", one, one, "--out", str(tmp_path / "page.html")], capsys)
    assert code == 2 and "error[TFW0981]" in err


@pytest.mark.parametrize(("value", "expected", "bound", "rounding"), [
    (4.015625, 4.01757825165987, 0.001953416, True),  # fp16 at 4: half a step is 2^-9 = 0.001953125
    (-0.958984375, -0.9587397128343582, 0.000245, True),  # fp16 at 1: 2^-12 = 0.000244140625
    (4.015625, 4.0178, 0.0025, False),  # further from what is expected than rounding brings it
    (4.015, 4.0169, 0.0019532, False),  # on no grid of such a step
    (0.5, 0.50000002, 1e-7, False),  # far below its bound
])
def test_rounding_of_the_output_is_not_tight(value: float, expected: float, bound: float, rounding: bool) -> None:
    worst = {"output": "c", "index": [0], "value": value, "expected": expected, "bound": bound}
    one = {"outcome": "pass", "error_over_bound": abs(value - expected) / bound, "worst": worst}
    assert is_rounding(one) == rounding
    assert is_tight(one) == (not rounding and one["error_over_bound"] > 0.7)
