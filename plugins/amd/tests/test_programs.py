"""Random tile programs mean on the simulated chip what they mean on the reference: a fixed sample of the campaign, smaller for the
chips after the oldest, which share most of its code."""

from __future__ import annotations

import pytest
from served import CHIPS

from tilefw.testing.programs import numbered, run

SAMPLE = [(chip.target, index) for chip in CHIPS for index in range(40 if chip is CHIPS[0] else 20)]


@pytest.mark.parametrize(("target", "index"), SAMPLE)
def test_a_random_program_agrees_with_the_reference(target: str, index: int) -> None:
    outcome = run(numbered(7, 5 * index), target)  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()
