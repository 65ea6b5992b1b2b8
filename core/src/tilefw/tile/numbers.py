"""Number formats in NumPy, bit for bit: rounding of f64 to any float format, codes and values, integer wrapping.

Values of every float format are held in float64, which holds all of them exactly. Rounding goes from the f64 straight to
the target format: a step through f32 would round twice. Formats and their special codes are `tilefw.api.dtypes`'s.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from tilefw.api.dtypes import DTYPES, DType

Rounding = Literal["rtne", "rtz"]
Array = np.ndarray[Any, np.dtype[Any]]

_NATIVE: dict[str, type[np.floating[Any]]] = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def saturates(dtype: DType) -> bool:
    """Whether conversions to `dtype` clamp to its largest finite value: all formats of 8 bits and less.

    The saturating mode of OCP OFP8 1.0, which turns infinity into the largest finite value too, is the one that chips have for
    e4m3, e5m2, e2m3, e3m2 and e2m1 destinations. Wider formats overflow to infinity as IEEE 754 says.
    """
    return dtype.bits <= 8


@cache
def largest(dtype: DType) -> float:
    """The largest finite value."""
    top = (1 << dtype.exponent_bits) - 1
    mantissa = (1 << dtype.mantissa_bits) - 1
    if dtype.specials == "ieee":
        top -= 1
    elif dtype.specials == "fn":
        mantissa -= 1
    return float(np.ldexp(1.0 + mantissa / (1 << dtype.mantissa_bits), top - dtype.bias))


@cache
def smallest_normal(dtype: DType) -> float:
    """The smallest normal value."""
    return float(np.ldexp(1.0, 1 - dtype.bias))


def apart(x: Array, y: Array) -> Array:
    """How far two numbers are apart: 0 for one infinity twice and for two NaN, infinity for a NaN and a number."""
    with np.errstate(invalid="ignore"):
        distance = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return np.where(np.isnan(distance), np.inf, distance)


def ulp(x: Array, dtype: DType) -> Array:
    """The distance of neighbouring values of the format around |x|, f64; that of the subnormals below the normals.

    The Vulkan specification's ulp(x): the gap of the two values that enclose x, taken in x's binade.
    """
    magnitude = np.minimum(np.abs(x), largest(dtype))
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, 1 - dtype.bias, exponent - 1)
    return np.ldexp(1.0, np.maximum(exponent, 1 - dtype.bias) - dtype.mantissa_bits)


def round_to(x: Array, dtype: DType, rounding: Rounding = "rtne", saturate: bool | None = None) -> Array:
    """f64 values rounded to values of `dtype`, in f64.

    What does not fit becomes the largest finite value when `saturate` (default: as `saturates` says) or the format is
    all finite, else infinity or, in formats without infinity, NaN. NaN stays NaN; all-finite formats have none and take
    the largest positive value (OCP MX 1.0 leaves it open; chips that convert to e2m1, e2m3 and e3m2 do so).
    """
    if dtype.name == "fp64":
        return x
    if rounding == "rtne" and dtype.name in _NATIVE:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return x.astype(_NATIVE[dtype.name]).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        rounded = _round_magnitude(np.abs(x), dtype, rounding)
        rounded = _overflow(rounded, np.abs(x), dtype, rounding, saturates(dtype) if saturate is None else saturate)
        result = np.copysign(rounded, x)
    if dtype.specials == "finite":
        result = np.where(np.isnan(x), largest(dtype), result)
    elif dtype.specials == "fnuz":
        result = np.where(result == 0, 0.0, result)  # there is no minus zero: its code is NaN
    return result


def in_format(x: Array, dtype: DType) -> Array:
    """What values of `dtype`, or exact results for it, are in it: `round_to`, but an infinity stays where the format has one.

    A conversion of infinity clamps; moving, reinterpreting or writing down an infinity of the format itself does not.
    """
    rounded = round_to(x, dtype)
    return np.where(np.isinf(x), x, rounded) if dtype.specials == "ieee" and saturates(dtype) else rounded


def _round_magnitude(magnitude: Array, dtype: DType, rounding: Rounding) -> Array:
    _, exponent = np.frexp(magnitude)
    exponent = np.maximum(exponent - 1, 1 - dtype.bias) - dtype.mantissa_bits
    scaled = np.ldexp(magnitude, -exponent)  # exact: a power of two, and it can only leave the subnormals
    return np.ldexp(np.rint(scaled) if rounding == "rtne" else np.floor(scaled), exponent)


def _overflow(rounded: Array, magnitude: Array, dtype: DType, rounding: Rounding, saturate: bool) -> Array:
    top = largest(dtype)
    if saturate or dtype.specials == "finite":
        return np.where(rounded > top, top, rounded)
    beyond = np.inf if dtype.specials == "ieee" else np.nan
    if rounding == "rtz":  # IEEE 754 §7.4: towards zero, overflow gives the largest finite value
        return np.where(np.isinf(magnitude), beyond, np.where(rounded > top, top, rounded))
    return np.where(rounded > top, beyond, rounded)


def encode(x: Array, dtype: DType) -> Array:
    """Codes (unsigned integers of the storage width) of values of `dtype` in f64; NaN gets the canonical positive code."""
    if dtype.name in _NATIVE:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            native = np.where(np.isnan(x), np.nan, x).astype(_NATIVE[dtype.name])
        return native.view(_UNSIGNED[dtype.bits])
    mantissa_bits = dtype.mantissa_bits
    nan = np.isnan(x)
    with np.errstate(invalid="ignore"):
        magnitude = np.where(nan, 0.0, np.abs(x))
    infinite = np.isinf(magnitude)
    magnitude = np.where(infinite, 1.0, magnitude)
    _, exponent = np.frexp(magnitude)
    biased = np.maximum(exponent - 1 + dtype.bias, 1)
    steps = np.ldexp(magnitude, mantissa_bits - (biased - dtype.bias)).astype(np.int64)
    # A normal's leading one carries into the exponent field; a subnormal has none, and its field stays 0.
    code = ((biased - 1).astype(np.int64) << mantissa_bits) + steps
    code = np.where(magnitude == 0, 0, code)
    code = np.where(infinite, ((1 << dtype.exponent_bits) - 1) << mantissa_bits, code)
    code |= np.signbit(x).astype(np.int64) << (dtype.bits - 1)
    return np.where(nan, _nan_code(dtype), code).astype(_UNSIGNED[dtype.storage_bits])


def _nan_code(dtype: DType) -> int:
    exponent = ((1 << dtype.exponent_bits) - 1) << dtype.mantissa_bits
    match dtype.specials:
        case "ieee":
            return exponent | (1 << (dtype.mantissa_bits - 1))
        case "fn":
            return exponent | ((1 << dtype.mantissa_bits) - 1)
        case "fnuz":
            return 1 << (dtype.bits - 1)
        case "finite":
            return exponent | ((1 << dtype.mantissa_bits) - 1)  # never asked for: `round_to` leaves no NaN


def decode(codes: Array, dtype: DType) -> Array:
    """Values in f64 of unsigned codes of the storage width; bits above the format's width are ignored.

    Every NaN becomes the one NaN of `_one_nan`: what is computed never depends on the sign, the payload or the signalling bit
    of a NaN in storage.
    """
    if dtype.name in _NATIVE:
        with np.errstate(invalid="ignore"):
            return _one_nan(codes.astype(_UNSIGNED[dtype.bits], copy=False).view(_NATIVE[dtype.name]).astype(np.float64))
    if dtype.name == "bf16":
        with np.errstate(invalid="ignore"):
            return _one_nan((codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64))
    return _decode_table(dtype)[codes & ((1 << dtype.bits) - 1)]


def _one_nan(values: Array) -> Array:
    """`values`, with every NaN in them replaced, in place, by the positive quiet NaN without payload.

    A NaN in storage may be signalling. Whether NumPy's conversions and functions quiet it depends on the processor, and so would
    results: C's pow(1, x) is 1 for a quiet NaN and NaN for a signalling one.
    """
    if values.size and np.isnan(values.max()):
        values[np.isnan(values)] = np.nan
    return values


@cache
def _decode_table(dtype: DType) -> Array:
    codes = np.arange(1 << dtype.bits)
    mantissa = codes & ((1 << dtype.mantissa_bits) - 1)
    field = (codes >> dtype.mantissa_bits) & ((1 << dtype.exponent_bits) - 1)
    fraction = np.where(field == 0, 0.0, 1.0) + mantissa / (1 << dtype.mantissa_bits)
    values = np.ldexp(fraction, np.maximum(field, 1) - dtype.bias)
    ones = field == (1 << dtype.exponent_bits) - 1
    if dtype.specials == "ieee":
        values = np.where(ones, np.where(mantissa == 0, np.inf, np.nan), values)
    elif dtype.specials == "fn":
        values = np.where(ones & (mantissa == (1 << dtype.mantissa_bits) - 1), np.nan, values)
    values = np.where(codes >> (dtype.bits - 1) == 1, -values, values)
    if dtype.specials == "fnuz":
        values[1 << (dtype.bits - 1)] = np.nan
    values = _one_nan(values)
    values.flags.writeable = False
    return values


def int_type(bits: int) -> type[Any]:
    """The NumPy type that holds an integer of `bits`: bool for 1, int8 for 4, the signed type of the width else."""
    return np.bool_ if bits == 1 else _SIGNED[max(8, bits)]


def unsigned_type(bits: int) -> type[Any]:
    """The unsigned NumPy type of the storage width."""
    return _UNSIGNED[max(8, bits)]


def wrap(x: Array, bits: int) -> Array:
    """Integers (of NumPy's integer types) modulo 2^bits as the type of `int_type`: signed, or bool for 1 bit."""
    if bits == 1:
        return (x & 1).astype(np.bool_)
    if bits == 4:
        low = (x & 15).astype(np.int8)
        return np.where(low >= 8, low - 16, low).astype(np.int8)
    return x.astype(_SIGNED[bits])


def as_unsigned(x: Array, bits: int) -> Array:
    """The unsigned reading of canonical integers, in the unsigned type of the storage width."""
    if bits == 1:
        return x.astype(np.uint8)
    return x.view(_UNSIGNED[8]) & 15 if bits == 4 else np.ascontiguousarray(x).view(_UNSIGNED[bits])


def from_bytes(data: Array, dtype: DType, *, copy: bool = True) -> Array:
    """Elements of raw bytes (uint8): f64 for floats, canonical integers else; without `copy`, those of whole bytes are a view."""
    if not copy and dtype.is_int and dtype.bits >= 8:
        return data.view(_SIGNED[dtype.bits])
    codes = data.view(_UNSIGNED[dtype.storage_bits])
    if dtype.is_float:
        return decode(codes, dtype)
    return codes != 0 if dtype.bits == 1 else wrap(codes, dtype.bits)


def to_bytes(x: Array, dtype: DType) -> Array:
    """The reverse of `from_bytes`; floats are brought into the format first."""
    if dtype.is_float:
        return encode(in_format(x, dtype), dtype).view(np.uint8)
    if dtype.bits in (1, 4):
        return (x.astype(np.uint8) & ((1 << dtype.bits) - 1)).view(np.uint8)
    return np.ascontiguousarray(x.astype(_SIGNED[dtype.bits], copy=False)).view(np.uint8)


FLOATS = tuple(d for d in DTYPES.values() if d.is_float)
