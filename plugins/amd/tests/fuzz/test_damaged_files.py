"""Damaged files, random code and mutated text give a result or an error of ours, in bounded time and memory, and nothing else."""

from __future__ import annotations

import pytest

from fuzz import campaign
from fuzz.attempts import outcome


def test_a_fixed_sample_never_escapes() -> None:
    found = campaign.run(600, seed=20261121)
    assert campaign.failures(found) == []
    words = sum((kind.words for kind in found.values()), start=campaign.Counter())
    assert words["ran"] and words["findings"] and words["assembled"], "some are whole enough"
    assert {"TFW0724", "TFW0720", "TFW0721", "TFW0725", "TFW0726"} <= set(words)


@pytest.mark.campaign
def test_ten_thousand_of_another_seed() -> None:
    assert campaign.failures(campaign.run(10_000, seed=7)) == []


def test_whole_files_run_clean() -> None:
    """What is damaged is right to begin with, so that a refusal says something."""
    ours = campaign.subjects().binaries[:2]
    assert [outcome(lambda data=data: campaign.attempts.whole(data)).word for data in ours] == ["ran", "ran"]


def test_a_traceback_is_a_failure() -> None:
    """The campaign's own alarm."""

    def broken() -> str:
        raise KeyError("a bug")

    assert outcome(broken).word == "traceback" and outcome(broken).word in campaign.FAILURES
