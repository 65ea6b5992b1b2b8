"""tl.abs of floats of 8 bits: every code of every format, on each kind of target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.runtime.arguments.arrays import reinterpret

NUMPY = {
    "fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
    "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
}


@tilefw.jit
def absolute(x_ptr, out_ptr):
    codes = tl.arange(0, 256)
    tl.store(out_ptr + codes, tl.abs(tl.load(x_ptr + codes)))


@pytest.mark.parametrize("target", ["reference", "nvidia-sm80", "amd-cdna3"])
@pytest.mark.parametrize("format", [*NUMPY, "fp8e4b15"])
def test_the_sign_is_cleared_and_a_nan_stays_one(format: str, target: str) -> None:
    codes, out = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    with tilefw.target(target):
        absolute[(1,)](reinterpret(codes, format), reinterpret(out, format))
    if format in NUMPY:
        found, wanted = out.view(NUMPY[format]).astype(np.float32), np.abs(codes.view(NUMPY[format]).astype(np.float32))
        np.testing.assert_array_equal(found, wanted)
        assert not np.signbit(found[~np.isnan(found)]).any()
    else:
        np.testing.assert_array_equal(out, codes & 0x7F)
