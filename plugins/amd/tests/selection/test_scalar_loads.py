"""Uniform loads go through the scalar cache where no store of the kernel can change what they read."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl


@tilefw.jit
def bump_and_look(x_ptr, y_ptr, seen_ptr, n):
    """What stands in x behind stores to y."""
    for i in range(n):
        value = tl.load(x_ptr + i)
        tl.store(y_ptr + i, value + 1.0)
        tl.debug_barrier()
        tl.store(seen_ptr + i, tl.load(x_ptr + i))


def scalar_loads(artifact: tilefw.Artifact) -> int:
    """Loads through the scalar cache but for the kernel's arguments, which come from where the launch says, by one load."""
    return sum(line.split()[0].startswith("s_load") for line in artifact.text.splitlines() if line.strip()) - 1


on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])


@on_each_chip
@pytest.mark.parametrize("overlapping", [False, True])
def test_stores_through_an_overlapping_argument_are_seen(overlapping: bool, target: str) -> None:
    x, seen = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    y = x if overlapping else np.zeros_like(x)
    result = bump_and_look[(1,)](x, y, seen, 8, target=target, checks="all", num_warps=1)
    assert np.array_equal(seen, np.arange(8) + overlapping)
    assert (scalar_loads(result.artifact) == 0) == overlapping


@on_each_chip
def test_nothing_is_taken_for_granted_without_a_launch(target: str) -> None:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "seen_ptr": "*fp32", "n": "i32"}
    assert scalar_loads(tilefw.compile(bump_and_look, target=target, signature=signature)) == 0
