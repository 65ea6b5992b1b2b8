"""Reading and rounding every element type with NumPy and ml_dtypes alone: what expected results are written in.

Nothing of tilefw's own numerics is used here. A rounding to a format of at most 16 bits looks its two neighbours up in the
list of all the values that ml_dtypes decodes, so it cannot share a mistake with code that shifts mantissas.
"""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from tilefw.api.dtypes import DType, dtype

# Formats whose overflow gives the largest finite value, as Triton's fp8 conversions (`cvt.satfinite`) and OCP MX 1.0 do.
# TILE's row `castf` is the definition; a test compares this list with it.
_HAS_INFINITY = ("fp64", "fp32", "bf16", "fp16")


def array_dtype(name: str) -> np.dtype:
    """The NumPy dtype of an array that holds elements of type `name` in storage form."""
    numpy_name = dtype(name).numpy
    if numpy_name is None:
        return np.dtype(np.uint8)
    return np.dtype(getattr(ml_dtypes, numpy_name, None) or numpy_name)


def decode(array: np.ndarray, name: str) -> np.ndarray:
    """The values in `array`: float64 for a float type, int64 or uint64 for an integer type; all exact. Every NaN is quiet."""
    kind = dtype(name)
    if name == "fp8e4b15":
        return _b15_values()[array]
    if kind.is_float:
        with np.errstate(invalid="ignore"):
            values = array.astype(np.float64)
        return np.where(np.isnan(values), np.nan, values)
    return array.astype(np.int64 if kind.is_signed else np.uint64)


def encode(values: np.ndarray, name: str, rounding: str = "rtne") -> np.ndarray:
    """Float64 `values` rounded once to the float type `name`, in storage form; NaN stays NaN where the format has one."""
    kind = dtype(name)
    if values.size > 1 and not any(values.strides):  # one value, repeated
        return np.full(values.shape, encode(values.reshape(-1)[:1], name, rounding)[0])
    if kind.bits == 64:
        return values.astype(np.float64)
    if kind.bits == 32:
        return _to_fp32(values, rounding)
    if kind.name == "fp16" and rounding == "rtne":
        with np.errstate(over="ignore"):  # NumPy rounds a double to half precision once
            return np.where(np.isnan(values), np.float16(np.nan), values.astype(np.float16))
    return _by_neighbours(values, kind, rounding)


def from_integers(values: np.ndarray, name: str, rounding: str = "rtne") -> np.ndarray:
    """Integer `values` (int64 or uint64) rounded once to the float type `name`."""
    if name == "fp64":
        return values.astype(np.float64)
    return encode(_odd_float64(values), name, rounding)


def to_integers(values: np.ndarray, name: str) -> np.ndarray:
    """Float64 `values` truncated toward zero into the integer type `name`: out of range saturates, NaN gives zero."""
    kind = dtype(name)
    least = -(2.0 ** (kind.bits - 1)) if kind.is_signed else 0.0
    limit = 2.0 ** (kind.bits - kind.is_signed)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(np.nan_to_num(values, nan=0.0, posinf=limit, neginf=least))
        inside = np.where((whole >= least) & (whole < limit), whole, 0.0)
    wide = inside.astype(np.int64 if kind.is_signed else np.uint64)
    low, high = (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1) if kind.is_signed else (0, (1 << kind.bits) - 1)
    return np.where(whole < least, wide.dtype.type(low), np.where(whole >= limit, wide.dtype.type(high), wide))


def wrap(values: np.ndarray, name: str) -> np.ndarray:
    """Computed `values` as far as element type `name` can hold them exactly: integers modulo 2^bits, as int64 or uint64.

    Floats stay as they are: how they may be rounded is for their bound to say.
    """
    kind = dtype(name)
    if kind.is_float:
        return values
    low = values.astype(np.uint64) & np.uint64((1 << kind.bits) - 1)
    if not kind.is_signed:
        return low
    sign = np.uint64(1 << (kind.bits - 1))
    # Sign extension of a `bits` wide field: (low ^ sign) - sign, modulo 2^64.
    with np.errstate(over="ignore"):  # NumPy tells of it where the array has no dims
        return ((low ^ sign) - sign).view(np.int64)


def store(values: np.ndarray, name: str) -> np.ndarray:
    """Exact integer `values` or float64 `values` as an array of `name` in storage form (rounded to nearest even)."""
    if dtype(name).is_float:
        return encode(values, name)
    return wrap(values, name).astype(array_dtype(name))


def largest(name: str) -> float:
    """The largest finite value of the float type `name`."""
    if dtype(name).bits >= 32:
        return float(np.finfo(array_dtype(name)).max)
    return float(_finite(name)[0][-1])


@cache
def _b15_values() -> np.ndarray:
    """The 256 values of fp8e4b15: sign, 4 exponent bits of bias 15, 3 mantissa bits, every code finite (Triton's custom format)."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    magnitude = np.where(exponent > 0, (1 + mantissa / 8) * 2.0 ** (exponent - 15), mantissa / 8 * 2.0**-14)
    return np.where(codes < 128, magnitude, -magnitude)


@cache
def _finite(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The finite non-negative values of a format in rising order, and their codes."""
    bits = dtype(name).bits
    codes = np.arange(2 ** (bits - 1), dtype=np.uint16 if bits > 8 else np.uint8)
    values = decode(codes if name == "fp8e4b15" else codes.view(array_dtype(name)), name)
    keep = np.isfinite(values)
    return values[keep], codes[keep]


def _to_fp32(values: np.ndarray, rounding: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    if rounding == "rtne":
        return nearest
    outward = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(outward, np.nextafter(nearest, np.float32(0)), nearest).astype(np.float32)


def _by_neighbours(values: np.ndarray, kind: DType, rounding: str) -> np.ndarray:
    finite, codes = _finite(kind.name)
    magnitude = np.abs(values)
    below = np.searchsorted(finite, np.nan_to_num(magnitude, nan=0.0, posinf=np.inf), side="right") - 1
    above = np.minimum(below + 1, len(finite) - 1)
    with np.errstate(invalid="ignore"):
        down, up = magnitude - finite[below], finite[above] - magnitude
    tie_up = (down == up) & (codes[below] % 2 == 1)
    index = np.where((rounding == "rtne") & ((up < down) | tie_up), above, below)
    # Past the largest value, the rounding is as if the next binade were there: overflow from half a unit above on.
    half_unit = (finite[-1] - finite[-2]) / 2
    over = magnitude >= finite[-1] + half_unit if rounding == "rtne" else np.isinf(magnitude)
    return _assemble(values, codes[np.where(magnitude > finite[-1], len(finite) - 1, index)], over, kind)


def _assemble(values: np.ndarray, magnitude_codes: np.ndarray, over: np.ndarray, kind: DType) -> np.ndarray:
    """Codes with sign, infinities where the format has them, and NaNs."""
    sign_bit = 1 << (kind.bits - 1)
    codes = magnitude_codes.astype(np.uint32)
    if kind.name in _HAS_INFINITY:
        infinity = ((1 << kind.exponent_bits) - 1) << kind.mantissa_bits
        codes = np.where(over, infinity, codes)
    negative = np.signbit(values)
    if kind.specials == "fnuz":
        negative &= codes != 0  # minus zero's code is the NaN
    codes = np.where(negative, codes | sign_bit, codes)
    codes = np.where(np.isnan(values), _nan_code(kind), codes)
    storage = codes.astype(np.uint16 if kind.bits > 8 else np.uint8)
    return storage if kind.numpy is None else storage.view(array_dtype(kind.name))


def _nan_code(kind: DType) -> int:
    """The code that a NaN becomes; formats without NaN give their largest value (OCP MX leaves it open)."""
    if kind.specials == "finite":
        return (1 << (kind.bits - 1)) - 1
    if kind.specials == "fnuz":
        return 1 << (kind.bits - 1)
    if kind.specials == "fn":
        return (1 << (kind.bits - 1)) - 1
    return (((1 << kind.exponent_bits) - 1) << kind.mantissa_bits) | (1 << (kind.mantissa_bits - 1))


def _odd_float64(values: np.ndarray) -> np.ndarray:
    """Integers as float64 rounded to odd, so that a second rounding to at most 40 bits is as if done once.

    Above 2^53 the low 11 bits fold into bit 11 (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    low = values & values.dtype.type(2**11 - 1)
    sticky = np.where(low != 0, (values - low) | values.dtype.type(2**11), values)
    exact = (values < 2**53) & (values > -(2**53)) if values.dtype == np.int64 else values < 2**53
    return np.where(exact, values, sticky).astype(np.float64)
