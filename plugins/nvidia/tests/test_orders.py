"""The library's kernels are right and clean in any order of waves and workgroups, not only in the plain one.

An ordinary run takes one of the orders with each kernel, in turn; both with each are a campaign.
"""

from __future__ import annotations

import pytest
from chips_here import CHIPS, OLDEST, body

from tilefw.kernels import spec
from tilefw.kernels.index import KERNELS
from tilefw.kernels.verify import verify

SEEDS = (1, 6)
RUNS = [
    pytest.param(name, seed, marks=() if (number + place) % len(SEEDS) == 0 else pytest.mark.campaign)
    for number, name in enumerate(sorted(KERNELS)) for place, seed in enumerate(SEEDS)
]


@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_a_kernel_is_right_and_clean_in_other_orders(name: str, seed: int) -> None:
    """A chip runs it where its code is not the oldest chip's."""
    kernel = spec.load(name)
    verdicts = [verify(kernel, {}, OLDEST.target, assemble=False, checks="all", seed=seed)]
    first = verdicts[0].artifact
    assert first is not None, verdicts[0].stages
    for chip in (chip for chip in CHIPS if chip is not OLDEST):
        compiled = verify(kernel, {}, chip.target, stop_after="emit")
        assert compiled.artifact is not None, compiled.stages
        if body(compiled.artifact) != body(first):
            verdicts.append(verify(kernel, {}, chip.target, assemble=False, checks="all", seed=seed))
    for verdict in verdicts:
        assert verdict.ok, (verdict.target, verdict.seed, verdict.stages)
