"""Random tile programs mean on the simulated chip what they mean on the reference: a fixed sample of the campaign."""

from __future__ import annotations

import pytest
from chips_here import CHIPS

from tilefw.testing.programs import numbered, run
from tilefw_nvidia.chips import Chip


@pytest.mark.parametrize("index", range(60))
def test_a_random_program_agrees_with_the_reference(index: int, chip: Chip) -> None:
    outcome = run(numbered(7 + CHIPS.index(chip), 5 * index), chip.target)  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()
