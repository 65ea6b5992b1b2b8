"""Random tile programs mean on the simulated chip what they mean on the reference: a fixed sample of the campaign."""

from __future__ import annotations

import pytest

from tilefw.testing.programs import numbered, run


@pytest.mark.parametrize("index", range(60))
def test_a_random_program_agrees_with_the_reference(index: int) -> None:
    outcome = run(numbered(7, 5 * index), "amd-cdna3")  # every fifth: rows and tile operations take turns
    assert outcome.status == "pass", outcome.message()
