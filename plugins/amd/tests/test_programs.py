"""Random tile programs mean on the simulated chip what they mean on the reference: a fixed sample of the campaign."""

from __future__ import annotations

import pytest
from served import CHIPS

from tilefw.testing.programs import numbered, run


@pytest.mark.parametrize("index", range(60))
@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
def test_a_random_program_agrees_with_the_reference(target: str, index: int) -> None:
    outcome = run(numbered(7, 5 * index), target)  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()
