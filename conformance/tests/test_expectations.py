"""Expectations are strict, end, and are written anew from what a run found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilefw.api.errors import CodeError, UsageError
from tilefw_conformance import EDITION
from tilefw_conformance.expectations import Expectation, faults, read, source_of
from tilefw_conformance.updating import renewed, update
from tilefw_conformance.workers.protocol import Ready

ISSUE = "https://example.org/1"


def result(case: str, outcome: str) -> dict[str, Any]:
    message = f"error[TFW0630]: {case} differs\nat element 3"
    return {"case": case, "outcome": outcome, "error": None if outcome == "pass" else {"code": "TFW0630", "message": message}}


def known(case: str, targets: str = "*", until: str = EDITION) -> Expectation:
    return Expectation(case, targets, "flushes subnormals", ISSUE, until)


def cases(*expectations: Expectation) -> list[str]:
    return [one.case for one in expectations]


def test_a_new_failure_comes_in_and_waits_for_its_issue() -> None:
    (new,) = renewed((), [result("a/x/n=1", "fail"), result("a/x/n=2", "pass"), result("a/y", "unsupported")], "t-1")
    assert new == Expectation("a/x/n=1", "t-1", "a/x/n=1 differs", "TODO", EDITION)


def test_what_passes_goes_out() -> None:
    assert renewed((known("a/*"),), [result("a/x", "xpass"), result("a/y", "xpass")], "t-1") == ()


def test_of_a_glob_what_still_fails_stays_by_its_ids() -> None:
    kept = renewed((known("a/*"),), [result("a/x", "xfail"), result("a/[y]", "xfail"), result("a/z", "xpass")], "t-1")
    assert cases(*kept) == ["a/x", "a/[[]y]"] and {one.issue for one in kept} == {ISSUE}
    assert kept[1].covers("a/[y]", "t-1")


def test_what_did_not_run_stays_as_it_is() -> None:
    old = (known("b/*", until="0.0"), known("a/x", targets="other-*"))
    assert renewed(old, [result("a/x", "pass")], "t-1") == old


def test_an_ended_expectation_that_still_fails_is_good_for_this_edition() -> None:
    (kept,) = renewed((known("a/*", until="0.0"),), [result("a/x", "xfail")], "t-1")
    assert kept == known("a/*")


def test_the_file_keeps_its_first_comments_and_is_refused_until_each_entry_has_its_issue(tmp_path: Path) -> None:
    file = tmp_path / "conformance.yaml"
    file.write_text("# Known failures.\n# Ask Ada.\n\nexpectations: []\n")
    ready = Ready({"name": "t-1"}, "compare", (), str(file), ())
    said = update(ready, [result("a/x", "fail")], None)
    assert "1 new, 0 gone" in said and "TODO" in said
    text = file.read_text()
    assert text.startswith("# Known failures.\n# Ask Ada.\n\nexpectations:\n")
    with pytest.raises(CodeError, match="issue") as caught:
        read(text, "conformance.yaml")
    assert caught.value.place is not None and "TODO" in caught.value.place.text
    (entry,) = read(text.replace("TODO", ISSUE), "conformance.yaml")
    assert entry == Expectation("a/x", "t-1", "a/x differs", ISSUE, EDITION)


@pytest.mark.parametrize("file", [None, "/nowhere/at/all.yaml"])
def test_a_file_that_cannot_be_written_is_told(file: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        update(Ready({"name": "t-1"}, "compare", (), None, ()), [], file)
    assert caught.value.code == "TFW0970"


def test_an_installed_copy_is_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("src", "site-packages"):
        package = tmp_path / folder / f"of_{folder.replace('-', '_')}"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert source_of({"expectations": "of_src:known.yaml"}) == str(tmp_path / "src" / "of_src" / "known.yaml")
    assert source_of({"expectations": "of_site_packages:known.yaml"}) is None
    assert source_of({}) is None


def test_expectations_end_and_must_name_a_case() -> None:
    assert "ended" in faults([known("a/*", until="0.0")], ["a/b"], "t-1")[0].message
    assert "names no case" in faults([known("a/*")], ["b"], "t-1")[0].message
    assert faults([known("a/*"), known("b", targets="other-*")], ["a/b"], "t-1") == ()


def test_an_issue_is_an_address() -> None:
    with pytest.raises(CodeError) as caught:
        read("expectations:\n  - {case: a, reason: r, issue: soon, until: '1.0'}\n", "e.yaml")
    assert caught.value.place is not None and caught.value.place.line == 2
