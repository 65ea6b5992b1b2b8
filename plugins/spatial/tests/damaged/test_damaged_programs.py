"""Damaged programs give a result or an error of ours, in bounded time, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from damaged.attempts import subjects, whole
from damaged.campaign import CAMPAIGN
from tilefw.testing.damaged import failures, outcome


def test_a_fixed_sample_never_escapes() -> None:
    found = CAMPAIGN.run(400, seed=20261121)
    assert failures(found) == []
    words = sum((kind.words for kind in found.values()), start=Counter())
    assert words["ran"] and words["findings"], "some are whole enough"
    assert {"TFW0730", "TFW0731", "TFW0733", "TFW0734", "TFW0735", "TFW0736"} <= set(words)


@pytest.mark.campaign
def test_ten_thousand_of_another_seed() -> None:
    assert failures(CAMPAIGN.run(10_000, seed=7)) == []


def test_whole_programs_run_clean() -> None:
    """What is damaged is right to begin with, so that a refusal says something."""
    assert [outcome(lambda data=data: whole(data)).word for data in subjects()[:4]] == ["ran"] * 4
