"""`tl.histogram` counts as NumPy does, by comparisons and by sorting alike, and leaves out what is masked or no bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def counted(x_ptr, out_ptr, n, SIZE: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    places = tl.arange(0, SIZE)
    x = tl.load(x_ptr + places)
    found = tl.histogram(x, BINS, mask=places < n) if MASKED else x.histogram(BINS)
    tl.static_assert(found.dtype == tl.int32 and found.shape == (BINS,))
    tl.store(out_ptr + tl.arange(0, BINS), found)


def check(x: np.ndarray, bins: int, n: int | None = None) -> None:
    found = np.full(bins, -1, np.int32)
    counted[(1,)](x, found, x.size if n is None else n, SIZE=x.size, BINS=bins, MASKED=n is not None)
    kept = x[: n if n is not None else None].astype(np.int64)
    np.testing.assert_array_equal(found, np.bincount(kept[(kept >= 0) & (kept < bins)], minlength=bins))


# Few pairs of elements and bins are compared, many are sorted.
@pytest.mark.parametrize(("size", "bins"), [(1, 1), (64, 2), (8, 512), (128, 128), (128, 256), (1, 32768), (2048, 32), (8192, 1)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bins_are_counted(size: int, bins: int, dtype: Any) -> None:
    rng = np.random.default_rng(size)
    check(rng.integers(0, bins, size).astype(dtype), bins)
    check(rng.integers(0, 2 * bins, size).astype(dtype), bins, size // 2 + 1)


@pytest.mark.parametrize("size", [16, 512])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_what_is_no_bin_is_not_counted(size: int, dtype: Any) -> None:
    ends = np.array([0, 1, 63, 64, -1, -64, 2**31 - 1, -(2**31)], np.int64).astype(np.uint32).astype(dtype)
    check(np.resize(ends, size), 64)
    check(np.resize(ends, size), 64, 0)


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_targets_count_alike(target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    x = np.random.default_rng(0).integers(-4, 200, 64).astype(np.int32)
    with tilefw.target(target):
        check(x, 32, 50)
        check(x, 512, 50)


def test_few_bins_are_counted_without_a_gather() -> None:
    try:
        find_target("spatial-sdm1")
    except KernelError:
        pytest.skip("spatial-sdm1 is not installed")
    with tilefw.target("spatial-sdm1"):
        check(np.random.default_rng(0).integers(-4, 20, 128).astype(np.int32), 16, 100)


@tilefw.jit
def mistaken(out_ptr, MISTAKE: tl.constexpr):
    x = tl.arange(0, 8)
    if MISTAKE == "axes":
        tl.store(out_ptr, tl.histogram(x[:, None], 8))
    elif MISTAKE == "type":
        tl.store(out_ptr, tl.histogram(x.to(tl.int64), 8))
    elif MISTAKE == "bins":
        tl.store(out_ptr, tl.histogram(x, 10))
    elif MISTAKE == "mask":
        tl.store(out_ptr, tl.histogram(x, 8, mask=x))
    else:
        tl.store(out_ptr, tl.histogram(x, 8, mask=tl.arange(0, 4) > 2))


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("axes", "TFW0202", r"takes a tile of one axis, not an int32 tile of shape \[8, 1\]"), ("type", "TFW0209", "not int64"),
    ("bins", "TFW0203", "10, which is not a power of two"), ("mask", "TFW0209", "the mask of tl.histogram is int1, not int32"),
    ("shape", "TFW0202", "do not broadcast"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.int32), MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
