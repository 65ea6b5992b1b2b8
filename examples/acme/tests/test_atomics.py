"""All atomics of core are made of the chips' compare-and-swap, and are right in any order of programs and lanes."""

from __future__ import annotations

import pytest

import tilefw
from tilefw.testing import contention

FORMATS = [name for name in contention.FORMATS if name != "fp64"]  # which the chips do not add


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("name", FORMATS)
def test_sums_and_maxima_at_few_addresses(name: str, seed: int) -> None:
    with tilefw.target("acme-x1", checks="all", seed=seed):
        contention.check_sums(name, "acq_rel" if seed else "relaxed", warps=2)


@pytest.mark.parametrize("target", ["acme-x1", "acme-x2"])
def test_rows_tickets_and_swaps(target: str) -> None:
    with tilefw.target(target, checks="all", seed=2):
        contention.check_rows("fp16", 1)
        contention.check_rows("bf16", 16)
        contention.check_tickets(4)
        contention.check_swaps("int16")
        contention.check_swaps("int64")
