"""Damaged files, random code and mutated text give a result or an error of ours, in bounded time and memory, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import attempts
from fuzz.campaign import CAMPAIGN, subjects
from tilefw.testing.damaged import failures, outcome


def test_a_fixed_sample_never_escapes() -> None:
    found = CAMPAIGN.run(600, seed=20261121)
    assert failures(found) == []
    words = sum((kind.words for kind in found.values()), start=Counter())
    assert words["ran"] and words["findings"] and words["assembled"], "some are whole enough"
    assert {"TFW0724", "TFW0720", "TFW0721", "TFW0725", "TFW0726"} <= set(words)


@pytest.mark.campaign
def test_ten_thousand_of_another_seed() -> None:
    assert failures(CAMPAIGN.run(10_000, seed=7)) == []


def test_whole_files_run_clean() -> None:
    """What is damaged is right to begin with, so that a refusal says something."""
    ours = subjects().binaries[:2]
    assert [outcome(lambda data=data: attempts.whole(data)).word for data in ours] == ["ran", "ran"]
