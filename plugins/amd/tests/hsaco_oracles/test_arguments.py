"""Which changes a written argument covers: those that its patterns match, of the kernels that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hsaco_oracles.sites import sites
from oracles import mutations, verdict_log
from oracles.site import Site
from oracles.subject import Run

_TEXT = "s_waitcnt vmcnt(0)\nloop:\ns_barrier ; all waves\n\tds_read_b32  v0, v1\n.loc 1 2 3\ns_endpgm"
_ENTRY = {"corpus": "made up", "kernels": ["kernel"], "kind": "weaken", "pattern": r"s_waitcnt vmcnt\(0\)", "argument": "because"}


class _Unbreakable:
    """A subject that no change shows in."""

    corpus, name, text, launches = "made up", "kernel", _TEXT, 1

    def sites(self) -> list[Site]:
        return list(sites(_TEXT))

    def proof(self, site: Site) -> str:
        return ""

    def parse(self, text: str) -> str:
        return text

    def run(self, launch: int, code: Any, seed: int, budget: int | None) -> Run:
        return Run()


def _outcomes(monkeypatch: pytest.MonkeyPatch, **over: object) -> dict[str, str]:
    monkeypatch.setattr(mutations, "_arguments", lambda: [{**_ENTRY, **over}])
    return {v.site.kind: v.outcome for v in mutations.verdicts(_Unbreakable(), orders=0)}


@pytest.mark.parametrize("over", [
    {}, {"after": r"s_waitcnt vmcnt\(1\)"}, {"following": "s_barrier ; all waves"},
    {"behind": "s_barrier ; all waves; ds_read_b32 v0, v1; s_endpgm"}, {"behind": "[^;]*; [^;]*; ds_read"},
])
def test_an_argument_covers_what_its_patterns_match(over: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    assert _outcomes(monkeypatch, **over) == {"weaken": "equivalent", "barrier": "survived"}


@pytest.mark.parametrize("over", [
    {"corpus": "another"}, {"kernels": ["another"]}, {"pattern": r"s_waitcnt vmcnt\(1\)"}, {"after": "s_nop 0"},
    {"following": "ds_read_b32 v0, v1"}, {"behind": "ds_read"},
])
def test_and_nothing_else(over: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    assert _outcomes(monkeypatch, **over) == {"weaken": "survived", "barrier": "survived"}


def test_a_pattern_by_another_name_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "equivalents.yaml").write_text("- {corpus: triton, kind: nop, behnd: s_barrier}")
    monkeypatch.setattr(mutations, "BENCH", tmp_path)
    with pytest.raises(AssertionError, match="behnd"):
        mutations._arguments.__wrapped__()


def _unbreakable(_: str) -> _Unbreakable:
    return _Unbreakable()


def test_a_log_is_gone_on_with_and_its_survivors_alone_are_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    campaign = mutations.Campaign(("kernel", "another"), _unbreakable, 0, "", "a campaign", bool)
    words = ["--jobs", "1", "--log", str(tmp_path / "log.jsonl"), "--report", str(tmp_path / "page.md")]

    def kinds(*more: str) -> dict[str, str]:
        assert mutations.main({"of": campaign}, [*words, *more]) == 0
        told = verdict_log.read(tmp_path / "log.jsonl", campaign.kernels)
        return {v.site.kind: v.outcome for v in told["kernel"].verdicts}

    monkeypatch.setattr(mutations, "_arguments", lambda: [_ENTRY])
    assert kinds("--kernels", "kernel") == {"weaken": "equivalent", "barrier": "survived"}
    monkeypatch.setattr(mutations, "_arguments", lambda: [{**_ENTRY, "kind": "barrier", "pattern": ".*"}])
    assert kinds("--page-alone") == {"weaken": "equivalent", "barrier": "survived"}
    assert "Not tried yet: another." in (tmp_path / "page.md").read_text("utf-8")
    assert kinds("--kernels", "kernel") == {"weaken": "equivalent", "barrier": "equivalent"}


def test_verdicts_of_a_log_do_not_stand_once_anything_of_the_kernel_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sites' own lines are as they were."""
    subject = _Unbreakable()
    campaign = mutations.Campaign(("kernel",), lambda _: subject, 0, "", "a campaign", bool)
    monkeypatch.setattr(mutations, "_arguments", lambda: [])
    first = mutations._tried(campaign, "kernel", None, None)
    killed = replace(first, verdicts=tuple(replace(verdict, outcome="killed") for verdict in first.verdicts))
    assert mutations._tried(campaign, "kernel", None, killed) is killed
    monkeypatch.setattr(subject, "sites", lambda: [replace(site, code=site.code + "\ns_nop 1") for site in _Unbreakable().sites()])
    assert {verdict.outcome for verdict in mutations._tried(campaign, "kernel", None, killed).verdicts} == {"survived"}


def test_a_log_whose_last_line_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    log, one = tmp_path / "log.jsonl", verdict_log.KernelVerdicts("kernel", (), 1.0)
    verdict_log.append(log, one)
    log.write_text(log.read_text("utf-8") + '{"kernel": "another", "sec', "utf-8")
    verdict_log.append(log, replace(one, kernel="third"))
    assert [*verdict_log.read(log, ("kernel", "another", "third"))] == ["kernel", "third"]
