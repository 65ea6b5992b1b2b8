"""Damaged programs give a result or an error of ours, in bounded time, and nothing else."""

from __future__ import annotations

import pytest

from damaged import campaign
from damaged.attempts import FAILURES, outcome, subjects, whole


def test_a_fixed_sample_never_escapes() -> None:
    found = campaign.run(400, seed=20261121)
    assert campaign.failures(found) == []
    words = sum((kind.words for kind in found.values()), start=campaign.Counter())
    assert words["ran"] and words["findings"], "some are whole enough"
    assert {"TFW0730", "TFW0731", "TFW0733", "TFW0734", "TFW0735", "TFW0736"} <= set(words)


@pytest.mark.campaign
def test_ten_thousand_of_another_seed() -> None:
    assert campaign.failures(campaign.run(10_000, seed=7)) == []


def test_whole_programs_run_clean() -> None:
    """What is damaged is right to begin with, so that a refusal says something."""
    assert [outcome(lambda data=data: whole(data)).word for data in subjects()[:4]] == ["ran"] * 4


def test_a_traceback_is_a_failure() -> None:
    """The campaign's own alarm."""

    def broken() -> str:
        raise KeyError("a bug")

    assert outcome(broken).word == "traceback" and outcome(broken).word in FAILURES
