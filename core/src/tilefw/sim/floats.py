"""Float formats as bits: decoding to f64, correctly rounded encoding from f64, flushing, and sums that are rounded once.

Every format here embeds exactly in f64. An operation is computed in f64 rounded to odd, then encoded: by Boldo and Melquiond
("Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE TC 2008) the result is the
single rounding of the exact value as long as f64 has two bits more than the target, which holds for all of them but f64.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """`bits` of storage used, exponent and mantissa widths, bias; `specials` as in `tilefw.api.dtypes`."""

    bits: int
    exponent: int
    mantissa: int
    bias: int
    specials: Literal["ieee", "fn", "fnuz", "finite"]
    numpy: type | None

    @property
    def storage(self) -> int:
        return max(8, self.bits)

    @property
    def maximum(self) -> float:
        """The largest finite value."""
        top = (1 << self.exponent) - 1
        if self.specials == "ieee":
            return (2.0 - 2.0**-self.mantissa) * 2.0 ** (top - 1 - self.bias)
        fraction = 2.0 - 2.0 ** (1 - self.mantissa) if self.specials == "fn" else 2.0 - 2.0**-self.mantissa
        return fraction * 2.0 ** (top - self.bias)

    @property
    def maximum_code(self) -> int:
        """Its bit pattern, without the sign."""
        if self.specials == "ieee":
            return (((1 << self.exponent) - 1) << self.mantissa) - 1
        return (1 << (self.exponent + self.mantissa)) - (2 if self.specials == "fn" else 1)


# Sources: IEEE 754-2019; OCP OFP8 1.0 and MX 1.0; the fnuz forms from LLVM's APFloat.h; tf32 is f32 with 10 mantissa bits.
FORMATS = {
    "f64": FloatFormat(64, 11, 52, 1023, "ieee", np.float64),
    "f32": FloatFormat(32, 8, 23, 127, "ieee", np.float32),
    "tf32": FloatFormat(32, 8, 23, 127, "ieee", None),
    "bf16": FloatFormat(16, 8, 7, 127, "ieee", ml_dtypes.bfloat16),
    "f16": FloatFormat(16, 5, 10, 15, "ieee", np.float16),
    "f8E5M2": FloatFormat(8, 5, 2, 15, "ieee", ml_dtypes.float8_e5m2),
    "f8E4M3FN": FloatFormat(8, 4, 3, 7, "fn", ml_dtypes.float8_e4m3fn),
    "f8E5M2FNUZ": FloatFormat(8, 5, 2, 16, "fnuz", ml_dtypes.float8_e5m2fnuz),
    "f8E4M3FNUZ": FloatFormat(8, 4, 3, 8, "fnuz", ml_dtypes.float8_e4m3fnuz),
    "f6E3M2FN": FloatFormat(6, 3, 2, 3, "finite", ml_dtypes.float6_e3m2fn),
    "f6E2M3FN": FloatFormat(6, 2, 3, 1, "finite", ml_dtypes.float6_e2m3fn),
    "f4E2M1FN": FloatFormat(4, 2, 1, 1, "finite", ml_dtypes.float4_e2m1fn),
    "f8E8M0FNU": FloatFormat(8, 8, 0, 127, "fn", ml_dtypes.float8_e8m0fnu),
}


@cache
def _table(name: str) -> Array:
    """All codes of a format of at most 8 bits, as f32 (each is exact there)."""
    form = FORMATS[name]
    assert form.numpy is not None
    codes = np.arange(1 << form.bits, dtype=np.uint8)
    return codes.view(form.numpy).astype(np.float32)


@cache
def _halves() -> Array:
    """All codes of f16, as f32: looking up takes half of the time of NumPy's conversion."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def decode(bits: Array, name: str) -> Array:
    """The values of bit patterns: f64 for f64, else f32; exact."""
    if name == "f32":
        return bits.view(np.float32)
    if name == "f64":
        return bits.view(np.float64)
    if name == "f16":
        return np.take(_halves(), bits)
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)
    return np.take(_table(name), bits if FORMATS[name].bits == 8 else bits & np.uint8((1 << FORMATS[name].bits) - 1))


def encode(values: Array, name: str, rounding: str = "rn", saturate: bool = False) -> Array:
    """f64 values to bit patterns, rounded once. `saturate` clamps overflow and infinities to the largest finite value."""
    if not saturate and rounding == "rn" and name in ("f64", "f32", "f16"):
        return values.astype(FORMATS[name].numpy).view(UNSIGNED[FORMATS[name].bits])
    form = FORMATS["f32" if name == "tf32" else name]
    mantissa = 10 if name == "tf32" else form.mantissa
    if name == "f8E8M0FNU":
        return _encode_exponent(values, rounding, saturate)
    magnitude = np.abs(values)
    negative = np.signbit(values)
    rounded = _round_magnitude(magnitude, negative, mantissa, 1 - form.bias, rounding)
    codes = _pack(rounded, form, mantissa)
    maximum = form.maximum if name != "tf32" else (2.0 - 2.0**-10) * 2.0**127
    codes = _overflow(codes, rounded, magnitude, negative, form, maximum, rounding, saturate, mantissa)
    sign = np.where(negative & ~((form.specials == "fnuz") & (codes == 0)), np.uint64(1 << (form.bits - 1)), np.uint64(0))
    nan = np.isnan(values)
    if form.specials == "fnuz":
        codes = np.where(nan, np.uint64(1 << (form.bits - 1)), codes | sign)
    elif form.specials == "finite":
        # MX formats have no NaN; OCP MX 1.0 leaves the conversion open, and hardware gives the largest positive value.
        codes = np.where(nan, np.uint64(form.maximum_code), codes | sign)
    else:
        codes = np.where(nan, np.uint64((1 << (form.bits - 1)) - 1), codes | sign)
    return codes.astype(UNSIGNED[form.storage])


def _round_magnitude(magnitude: Array, negative: Array, mantissa: int, least_exponent: int, rounding: str) -> Array:
    """|x| rounded to a multiple of its unit in the last place (subnormal below 2**least_exponent), still f64; exact scaling."""
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
    _, exponent = np.frexp(finite)
    unit = np.maximum(exponent - 1, least_exponent) - mantissa
    scaled = np.ldexp(finite, -unit)
    whole = np.floor(scaled)
    rest = scaled - whole
    if rounding == "rn":
        up = (rest > 0.5) | ((rest == 0.5) & (np.remainder(whole, 2.0) == 1.0))
    elif rounding == "rna":
        up = rest >= 0.5
    elif rounding == "rz":
        up = np.zeros_like(rest, dtype=bool)
    else:
        up = (rest > 0) & (negative == (rounding == "rm"))
    return np.where(np.isfinite(magnitude), np.ldexp(whole + up, unit), magnitude)


def _pack(rounded: Array, form: FloatFormat, mantissa: int) -> Array:
    """Exponent and mantissa fields of magnitudes that the format (with that many mantissa bits) holds exactly."""
    finite = np.where(np.isfinite(rounded), rounded, 0.0)
    _, exponent = np.frexp(finite)
    exponent = np.maximum(exponent - 1, 1 - form.bias)
    whole = np.ldexp(finite, form.mantissa - exponent).astype(np.uint64)
    biased = np.where(whole >> np.uint64(form.mantissa) != 0, exponent + form.bias, 0).astype(np.uint64)
    return (biased << np.uint64(form.mantissa)) | (whole & np.uint64((1 << form.mantissa) - 1))


def _overflow(
    codes: Array, rounded: Array, magnitude: Array, negative: Array, form: FloatFormat, maximum: float, rounding: str,
    saturate: bool, mantissa: int,
) -> Array:
    over = rounded > maximum
    if not over.any():
        return codes
    top = np.uint64(form.maximum_code & ~((1 << (form.mantissa - mantissa)) - 1))
    if saturate or form.specials == "finite":
        return np.where(over, top, codes)
    if form.specials == "ieee":
        special = np.uint64(((1 << form.exponent) - 1) << form.mantissa)
    elif form.specials == "fn":
        special = np.uint64((1 << (form.bits - 1)) - 1)
    else:
        special = np.uint64(1 << (form.bits - 1))
    stays = (rounding == "rz") | (((rounding == "rm") & ~negative) | ((rounding == "rp") & negative))
    return np.where(over, np.where(stays & np.isfinite(magnitude), top, special), codes)


def _encode_exponent(values: Array, rounding: str, saturate: bool) -> Array:
    """f8E8M0FNU: a power of two, 255 for NaN; rounds up ("rp") or toward zero; negatives take |x|."""
    magnitude = np.abs(values)
    fraction, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
    code = exponent - 1 + 127 + ((fraction > 0.5) & (rounding == "rp"))
    code = np.where(magnitude == 0, 0, np.clip(code, 0, 254))
    code = np.where(np.isinf(magnitude), 254 if saturate else 255, code)
    return np.where(np.isnan(values), 255, code).astype(np.uint8)


def flush(bits: Array, name: str) -> Array:
    """Subnormals to zero of their sign (f32, f16, bf16, f64)."""
    form = FORMATS[name]
    unsigned = UNSIGNED[form.bits]
    # Twice the pattern drops the sign; minus one makes zero the largest, so that one comparison finds subnormals.
    tiny = (bits + bits) - unsigned(1) < unsigned((1 << (form.mantissa + 1)) - 1)
    if not tiny.any():
        return bits
    return np.where(tiny, bits & unsigned(1 << (form.bits - 1)), bits)


def to_odd(total: Array, error: Array) -> Array:
    """f64 sums rounded to nearest, with their exact errors, made rounded to odd."""
    bits = total.view(np.uint64) if total.ndim else np.asarray(total).view(np.uint64)
    fix = (error != 0) & (bits & np.uint64(1) == 0) & np.isfinite(total)
    if not fix.any():
        return total
    away = (error > 0) == (total > 0)
    step = np.where(away, np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF))
    return np.where(fix, bits + step, bits).view(np.float64)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """(rounded sum, exact error), Knuth's six operations; the error is NaN or 0 where the sum is not finite."""
    total = a + b
    other = total - a
    error = (a - (total - other)) + (b - other)
    return total, error


def add_odd(a: Array, b: Array) -> Array:
    """a + b of f64 values, rounded to odd."""
    total, error = two_sum(a, b)
    return to_odd(total, np.where(np.isfinite(total), error, 0.0))


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """a*b + c of f32, rounded once to nearest even.

    The product is exact in f64. Rounding the f64 sum to f32 can go wrong only where the f64 sum lies on a tie of f32: its low
    29 bits are 1 followed by zeros, or the result is subnormal in f32. Only there the error of the sum is looked at.
    """
    product = a.astype(np.float64) * b
    total = product + c
    if total.ndim == 0:
        total = total.reshape(1)
    doubtful = (total.view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    doubtful |= np.abs(total) < 2.0**-126
    if not doubtful.any():
        return total.astype(np.float32)
    return add_odd(product, c.astype(np.float64)).astype(np.float32)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """(rounded product, exact error) by Dekker's splitting; exact while nothing over- or underflows."""
    product = a * b
    parts = []
    for x in (a, b):
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        parts.append((high, x - high))
    (ah, al), (bh, bl) = parts
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """a*b + c of f64, rounded once to nearest even (Boldo and Melquiond's algorithm; exact fractions near the range's ends)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product, low = _two_product(a, b)
    high, rest = two_sum(c, low)
    top, bottom = two_sum(product, high)
    result = top + add_odd(rest, bottom)
    # The product may overflow where the infinite addend decides.
    simple = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    sizes = [np.abs(x) for x in (a, b, product, c, simple)]
    usual = np.ones(a.shape, dtype=bool)
    for size in sizes:
        usual &= ((size > 2.0**-900) & (size < 2.0**900)) | (size == 0)
    # An exact zero product, NaN and infinities come out right from the plain expression.
    plain = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c) | (a == 0) | (b == 0)
    result = np.where(plain, simple, result)
    for index in zip(*np.nonzero(~plain & ~usual | (~plain & (simple == 0))), strict=True):
        result[index] = _exact_fma(float(a[index]), float(b[index]), float(c[index]))
    return result


def _exact_fma(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a * b != 0 and c != 0 and a * b == -c else (a * b) * 0.0 + c * 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
