"""Random tile programs mean on the simulated chip what they mean on the reference: a fixed sample of the campaign, smaller for the
chips after the oldest, which share most of its code."""

from __future__ import annotations

import pytest
from chips_here import CHIPS, OLDEST

from tilefw.testing.programs import numbered, run
from tilefw_nvidia.chips import Chip

SAMPLE = [(chip, index) for chip in CHIPS for index in range(40 if chip is OLDEST else 12)]


@pytest.mark.parametrize(("chip", "index"), SAMPLE, ids=str)
def test_a_random_program_agrees_with_the_reference(index: int, chip: Chip) -> None:
    outcome = run(numbered(7 + CHIPS.index(chip), 5 * index), chip.target)  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()
