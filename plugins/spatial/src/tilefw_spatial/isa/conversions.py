"""CVT: every element type to every other, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa.floats import quiet
from tilefw_spatial.isa.types import TYPES

Array = NDArray[Any]

# Floats of 8 bits saturate: OFP8, section "Saturation"; their largest numbers.
_LARGEST = {"fp8e4nv": 448.0, "fp8e5": 57344.0}

ROUNDED = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "even": np.rint}
"""The integral fp32 by the name of its rounding."""


def convert(source: str, to: str, x: Array) -> Array:
    """x, of `source`, as elements of `to`: to nearest even, fp8 saturating; to integers towards zero, ended at the type's ends, NaN
    to 0; between integers the low bits; to int1 whether it is not zero."""
    if to == "int1":
        return x != 0
    if TYPES[to].is_float:
        return quiet(to, _to_float(to, x))
    return _to_integer(to, x) if TYPES[source].is_float else x.astype(TYPES[to].numpy)


def lane_numbers(dtype: str, lanes: int) -> Array:
    """Each lane's number as an element of `dtype`: [lanes]."""
    return convert("int32", dtype, np.arange(lanes, dtype=np.int32))


def _to_integer(to: str, x: Array) -> Array:
    ends = np.iinfo(TYPES[to].numpy)
    whole = np.trunc(x.astype(np.float64))
    return np.where(np.isnan(whole), 0.0, np.clip(whole, ends.min, ends.max)).astype(np.int64).astype(TYPES[to].numpy)


def _to_float(to: str, x: Array) -> Array:
    exact = x.astype(np.float64)  # every type's values are doubles
    if to in ("fp32", "fp16"):
        return exact.astype(TYPES[to].numpy)
    if to in _LARGEST:
        exact = np.clip(exact, -_LARGEST[to], _LARGEST[to])
    # ml_dtypes rounds doubles by way of fp32: made odd there, the value is rounded once.
    near = exact.astype(np.float32).astype(np.float64)
    odd = _odd_single(near, exact)
    return odd.astype(TYPES[to].numpy)


def _odd_single(near: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.float32]:
    """`exact`, of which `near` is the nearest fp32, rounded to odd in fp32."""
    rest = np.where(np.isfinite(near), exact - near, 0.0)
    single = near.astype(np.float32)
    bits = single.view(np.int32)
    inexact = (rest != 0) & (bits & 1 == 0)
    inward = np.signbit(rest) != np.signbit(near)
    return np.where(inexact, np.where(inward, bits - 1, bits + 1), bits).astype(np.int32).view(np.float32)
