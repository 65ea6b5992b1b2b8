"""`tl.target_info` answers in Triton's words for the target that is chosen, inside of kernels and outside."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def asked(out_ptr):
    first: tl.constexpr = tl.target_info.is_cuda()
    second: tl.constexpr = tl.target_info.is_hip()
    third: tl.constexpr = tl.target_info.cuda_capability_geq(8, 0)
    fourth: tl.constexpr = tl.target_info.cuda_capability_geq(9)
    fifth: tl.constexpr = tl.target_info.is_hip_cdna3()
    sixth: tl.constexpr = tl.target_info.is_hip_cdna4()
    tl.store(out_ptr, first + 2 * second + 4 * third + 8 * fourth + 16 * fifth + 32 * sixth)


@pytest.mark.parametrize(("target", "answers", "backend"), [
    ("reference", 1 + 4, "cuda"), ("nvidia-sm80", 1 + 4, "cuda"), ("amd-cdna3", 2 + 16, "hip"), ("amd-cdna4", 2 + 32, "hip"),
])
def test_kernels_ask_for_their_chip(target: str, answers: int, backend: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    found = np.zeros(1, np.int32)
    with tilefw.target(target):
        asked[(1,)](found)
        assert tl.target_info.current_target().backend == backend
    assert found[0] == answers


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="target_info has no name 'arch'"):
        _ = tl.target_info.arch
