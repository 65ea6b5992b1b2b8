"""Offsets that leave 32 bits are found on every chip: out of bounds in 64 bits, or where the kernel's own arithmetic wraps."""

from __future__ import annotations

import pytest
from chips_here import CHIPS

from tilefw.testing import wrapped_offsets as cases

TARGETS = [chip.target for chip in CHIPS]


@pytest.mark.parametrize("name", cases.WRONG)
@pytest.mark.parametrize("target", TARGETS)
def test_addresses_of_64_bits_are_out_of_bounds(target: str, name: str) -> None:
    assert cases.codes(cases.WRONG[name], target) == {"TFW0801"}


@pytest.mark.parametrize("name", cases.WRONG_IN_ELEMENTS)
@pytest.mark.parametrize("target", TARGETS)
def test_arithmetic_of_32_bits_that_wraps_is_found_where_it_is_used(target: str, name: str) -> None:
    (finding,) = cases.findings(cases.WRONG_IN_ELEMENTS[name], target)
    assert (finding.check, finding.code) == ("bounds", "TFW0817")
    assert "tl.load(index + r) * stride" in cases.written(finding)


@pytest.mark.parametrize("name", [*cases.RIGHT, *cases.RIGHT_IN_64_BITS])
@pytest.mark.parametrize("target", TARGETS)
def test_offsets_that_are_right_where_they_are_used_are_no_finding(target: str, name: str) -> None:
    case = {**cases.RIGHT, **cases.RIGHT_IN_64_BITS}[name]
    assert cases.codes(case, target) == set()
    assert cases.codes(case, target, "all") == set()
