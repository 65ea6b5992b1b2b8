"""Numbers written as runs are the numbers, the long ones in time that does not depend on their length in Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.text.runs import numbers_text, read_numbers
from tilefw_spatial.text.source import TextSpan

_NUMBERS = st.lists(st.one_of(st.integers(0, 4), st.sampled_from([-(2**63), 2**63 - 1])), max_size=12)


@given(_NUMBERS)
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_again(numbers: list[int]) -> None:
    assert read_numbers(TextSpan(numbers_text(numbers), 0), len(numbers)) == numbers if numbers else numbers_text(numbers) == ""


def test_regular_stretches_are_one_run_each() -> None:
    numbers = np.concatenate([np.arange(1_000_000), [7], np.full(1_000_000, 3), np.arange(0, -8, -2)])
    assert numbers_text(numbers) == "0+1*1000000,7,3+0*1000000,0-2*4"
