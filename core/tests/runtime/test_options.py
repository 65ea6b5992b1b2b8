"""Launch keywords: NumPy's numbers are numbers, and what a chip cannot do is refused rather than left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilefw.api import LaunchError, TargetInfo
from tilefw.runtime.compilation import options


def target(**limits: int) -> TargetInfo:
    return TargetInfo("acme-x1", "acme", "x1", "", "acme:Backend", frozenset(), limits=limits)


@pytest.mark.parametrize("value", [np.int64(8), np.uint8(8), 8])
def test_whole_numbers_of_numpy_are_whole_numbers(value: Any) -> None:
    found = options.resolve({"num_warps": value, "enable_fp_fusion": np.False_}, target())
    assert type(found.num_warps) is int and found.num_warps == 8
    assert found.enable_fp_fusion is False


@pytest.mark.parametrize("value", [np.float64(8), "8", None, np.True_, np.zeros(2, np.int32)])
def test_others_are_refused(value: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        options.resolve({"num_warps": value}, target())
    assert caught.value.code == "TFW0321"


def test_clusters_of_workgroups_are_refused_by_a_chip_without_them() -> None:
    assert options.resolve({"num_ctas": 2}, target()).num_ctas == 2
    assert options.resolve({"num_ctas": 2}, target(lanes=32, workgroups_per_cluster=8)).num_ctas == 2
    assert options.resolve({"num_ctas": 1}, target(lanes=32)).num_ctas == 1
    with pytest.raises(LaunchError, match="num_ctas=2 is too much for acme-x1") as caught:
        options.resolve({"num_ctas": 2}, target(lanes=32))
    assert caught.value.code == "TFW0321" and "clusters" in (caught.value.note or "")
