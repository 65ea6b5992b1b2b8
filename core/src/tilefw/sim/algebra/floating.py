"""Float primitives of the lane algebra: native NumPy where that is IEEE's single rounding, rounding to odd elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tilefw.sim.algebra.primitives import Algebra
from tilefw.sim.floats import FORMATS, SIGNED, UNSIGNED, Array, add_odd, decode, encode, flush, fma_f32, fma_f64

_NATIVE = {"f32": np.float32, "f64": np.float64}
_COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_ROUND = {"rm": np.floor, "rp": np.ceil, "rz": np.trunc, "rn": np.rint}
_APPROXIMATE: dict[str, Any] = {
    "rcp": lambda x: 1.0 / x, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sqrt": np.sqrt, "exp2": np.exp2, "log2": np.log2, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh,
}


def _unit(values: Array) -> Array:
    """Clamped to [0, 1], NaN and -0 to +0."""
    return np.where(values > 0, np.minimum(values, 1), 0).astype(values.dtype)


class FloatLanes(Algebra):
    """What `Algebra` says of floats. Everything runs under `np.errstate(all="ignore")`, which the engine sets once."""

    def _binary(self, op: Any, a: Array, b: Array, fmt: str, rounding: str, ftz: bool, saturate: bool) -> Array:
        if ftz:
            a, b = flush(a, fmt), flush(b, fmt)
        if rounding == "rn" and fmt in _NATIVE:
            result = op(a.view(_NATIVE[fmt]), b.view(_NATIVE[fmt]))
            bits = (_unit(result) if saturate else result).view(a.dtype)
        else:
            bits = self._rounded(op, a, b, fmt, rounding, saturate)
        return flush(bits, fmt) if ftz else bits

    def _rounded(self, op: Any, a: Array, b: Array, fmt: str, rounding: str, saturate: bool) -> Array:
        x, y = decode(a, fmt).astype(np.float64), decode(b, fmt).astype(np.float64)
        if fmt == "f64":
            return _directed_f64(op, x, y, rounding, saturate)
        # Products of two formats up to f32 are exact in f64; sums are rounded to odd there, and then only once.
        exact = x * y if op is np.multiply else add_odd(x, -y if op is np.subtract else y)
        exact = _zero_sign(exact, x, y, op, rounding)
        return encode(_unit(exact) if saturate else exact, fmt, rounding)

    def fadd(self, a: Array, b: Array, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False) -> Array:
        return self._binary(np.add, a, b, fmt, rounding, ftz, saturate)

    def fsub(self, a: Array, b: Array, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False) -> Array:
        return self._binary(np.subtract, a, b, fmt, rounding, ftz, saturate)

    def fmul(self, a: Array, b: Array, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False) -> Array:
        return self._binary(np.multiply, a, b, fmt, rounding, ftz, saturate)

    def ffma(
        self, a: Array, b: Array, c: Array, fmt: str, rounding: str = "rn", ftz: bool = False, saturate: bool = False
    ) -> Array:
        if ftz:
            a, b, c = flush(a, fmt), flush(b, fmt), flush(c, fmt)
        x, y, z = decode(a, fmt), decode(b, fmt), decode(c, fmt)
        if rounding == "rn" and fmt in _NATIVE:
            result = fma_f32(x, y, z) if fmt == "f32" else fma_f64(x, y, z)
            bits = (_unit(result) if saturate else result).view(a.dtype)
        elif fmt == "f64":
            bits = _directed_fma_f64(x, y, z, rounding, saturate)
        else:
            product = x.astype(np.float64) * y
            exact = _zero_sign(add_odd(product, z.astype(np.float64)), product, z, np.add, rounding)
            bits = encode(_unit(exact) if saturate else exact, fmt, rounding)
        return flush(bits, fmt) if ftz else bits

    def fdiv(self, a: Array, b: Array, fmt: str, rounding: str = "rn", ftz: bool = False) -> Array:
        if ftz:
            a, b = flush(a, fmt), flush(b, fmt)
        x, y = decode(a, fmt), decode(b, fmt)
        quotient = x / y
        if fmt in _NATIVE:
            # rest = a - q*b tells on which side of the exact quotient q lies; its sign is exact after one rounding.
            bits = _direct(quotient, lambda q: _exact_sign(x, q, y) * np.copysign(1, y), rounding).view(a.dtype)
        else:
            bits = encode((x.astype(np.float64) / y), fmt, rounding)
        return flush(bits, fmt) if ftz else bits

    def fsqrt(self, a: Array, fmt: str, rounding: str = "rn", ftz: bool = False) -> Array:
        if ftz:
            a = flush(a, fmt)
        x = decode(a, fmt)
        if fmt in _NATIVE:
            bits = _direct(np.sqrt(x), lambda q: _exact_sign(x, q, q), rounding).view(a.dtype)
        else:
            bits = encode(np.sqrt(x.astype(np.float64)), fmt, rounding)
        return flush(bits, fmt) if ftz else bits

    def fneg(self, a: Array, fmt: str, ftz: bool = False) -> Array:
        a = flush(a, fmt) if ftz else a
        return a ^ a.dtype.type(1 << (FORMATS[fmt].bits - 1))

    def fabs(self, a: Array, fmt: str, ftz: bool = False) -> Array:
        a = flush(a, fmt) if ftz else a
        return a & a.dtype.type((1 << (FORMATS[fmt].bits - 1)) - 1)

    def fmin(self, a: Array, b: Array, fmt: str, nan: bool = False, ftz: bool = False) -> Array:
        return self._extreme(a, b, fmt, nan, ftz, smaller=True)

    def fmax(self, a: Array, b: Array, fmt: str, nan: bool = False, ftz: bool = False) -> Array:
        return self._extreme(a, b, fmt, nan, ftz, smaller=False)

    def _extreme(self, a: Array, b: Array, fmt: str, nan: bool, ftz: bool, smaller: bool) -> Array:
        if ftz:
            a, b = flush(a, fmt), flush(b, fmt)
        x, y = decode(a, fmt), decode(b, fmt)
        if fmt in _NATIVE:
            return self._native_extreme(a, b, x, y, nan, smaller)
        # Where the values are equal they may differ in the sign of zero: `or` keeps a minus, `and` a plus.
        tie = (a | b) if smaller else (a & b)
        chosen = np.where((x < y) if smaller else (x > y), a, b)
        chosen = np.where(x == y, tie, chosen)
        first, second = np.isnan(x), np.isnan(y)
        quiet = a.dtype.type((1 << (FORMATS[fmt].bits - 1)) - 1)
        if nan:
            return np.where(first | second, quiet, chosen)
        return np.where(first, np.where(second, quiet, b), np.where(second, a, chosen))

    def _native_extreme(self, a: Array, b: Array, x: Array, y: Array, nan: bool, smaller: bool) -> Array:
        """NumPy's own, which leaves open which zero it gives, and which NaN."""
        function = (np.minimum if nan else np.fmin) if smaller else (np.maximum if nan else np.fmax)
        result = function(x, y)
        bits = result.view(a.dtype)
        zero = result == 0
        if zero.any():
            bits = np.where(zero & (x == y), (a | b) if smaller else (a & b), bits)
        lost = np.isnan(result)
        if lost.any():
            quiet = a.dtype.type((1 << (8 * a.dtype.itemsize - 1)) - 1)
            if not nan:  # fmin and fmax of a number and a signalling NaN are NaN on some processors: here the number wins
                first, second = np.isnan(x), np.isnan(y)
                quiet = np.where(first, np.where(second, quiet, b), a)
            bits = np.where(lost, quiet, bits)
        return bits

    def fcompare(self, a: Array, b: Array, op: str, fmt: str, unordered: bool = False, ftz: bool = False) -> Array:
        if ftz:
            a, b = flush(a, fmt), flush(b, fmt)
        x, y = decode(a, fmt), decode(b, fmt)
        if op == "num":
            return ~(np.isnan(x) | np.isnan(y))
        if op == "nan":
            return np.isnan(x) | np.isnan(y)
        result = _COMPARE[op](x, y)
        if op == "ne":
            return result if unordered else result & ~(np.isnan(x) | np.isnan(y))
        return result | np.isnan(x) | np.isnan(y) if unordered else result

    def fclass(self, a: Array, kind: str, fmt: str) -> Array:
        x = decode(a, fmt)
        if kind in ("finite", "infinite"):
            return np.isfinite(x) if kind == "finite" else np.isinf(x)
        if kind in ("number", "notanumber"):
            return np.isnan(x) == (kind == "notanumber")
        magnitude, least = np.abs(x), x.dtype.type(2.0 ** (1 - FORMATS[fmt].bias))
        if kind == "normal":
            return (magnitude >= least) & (magnitude < np.inf)
        return (magnitude < least) & (magnitude > 0)

    def fapprox(self, a: Array, function: str, fmt: str, ftz: bool = False) -> Array:
        if ftz:
            a = flush(a, fmt)
        x = decode(a, fmt)
        # f64 inside: NumPy's own f32 functions are not all within one unit in the last place.
        result = _APPROXIMATE[function](x if fmt == "f32" and function in ("sqrt",) else x.astype(np.float64))
        bits = encode(result.astype(np.float64), fmt)
        return flush(bits, fmt) if ftz else bits

    def fround(self, a: Array, fmt: str, rounding: str, ftz: bool = False) -> Array:
        x = decode(flush(a, fmt) if ftz else a, fmt)
        if rounding == "rna":
            result = np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)
        else:
            result = _ROUND[rounding](x)
        return encode(result.astype(np.float64), fmt)

    def fconvert(
        self, a: Array, source: str, to: str, rounding: str = "rn", ftz: bool = False, saturate: str = "", relu: bool = False
    ) -> Array:
        if ftz and source == "f32":
            a = flush(a, "f32")
        x = decode(a, source)
        if saturate == "unit":
            x = _unit(x)
        if relu:
            x = np.where(np.signbit(x) & ~np.isnan(x), x.dtype.type(0), x)
        if to == "f32" and x.dtype == np.float32:
            return x.view(np.uint32)
        if to == "f16" and rounding == "rn" and saturate != "finite":
            return x.astype(np.float16).view(np.uint16)
        if to == "bf16" and rounding == "rn" and saturate != "finite" and x.dtype == np.float32:
            bits = _round_bf16(x)
        else:
            bits = encode(x.astype(np.float64), to, rounding, saturate == "finite")
        return flush(bits, "f32") if ftz and to == "f32" else bits

    def float_to_int(
        self, a: Array, fmt: str, bits: int, signed: bool, rounding: str = "rz", ftz: bool = False
    ) -> Array:
        x = decode(flush(a, fmt) if ftz else a, fmt).astype(np.float64)
        if rounding == "rna":
            whole = np.copysign(np.floor(np.abs(x) + 0.5), x)
        else:
            whole = _ROUND[rounding](x)
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        inside = (whole >= low) & (whole < high)
        types = SIGNED if signed else UNSIGNED
        safe = np.where(inside, whole, 0.0).astype(types[bits])
        largest, smallest = types[bits](int(high) - 1), types[bits](int(low))
        result = np.where(whole >= high, largest, np.where(whole < low, smallest, safe))
        return result.view(UNSIGNED[bits])

    def int_to_float(self, a: Array, signed: bool, fmt: str, rounding: str = "rn") -> Array:
        bits = a.dtype.itemsize * 8
        value = a.view(SIGNED[bits]) if signed else a
        if rounding == "rn" and fmt in _NATIVE:
            return value.astype(_NATIVE[fmt]).view(UNSIGNED[FORMATS[fmt].bits])
        exact = value.astype(np.float64)
        if bits < 64:
            return encode(exact, fmt, rounding)
        # 64-bit integers are cut to f64 by rounding to odd: the low bits that do not fit leave a mark in the last place.
        high = (value >> value.dtype.type(11)) << value.dtype.type(11)
        low = (value - high).astype(np.float64)
        if fmt != "f64":
            return encode(add_odd(high.astype(np.float64), low), fmt, rounding)
        total = high.astype(np.float64) + low
        error = (high.astype(np.float64) - total) + low
        return _directed(total, -np.sign(error), rounding, reverse=True).view(np.uint64)


def _round_bf16(x: Array) -> Array:
    """f32 to bf16, nearest even, on the bits."""
    bits = x.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded).astype(np.uint16)


def _zero_sign(exact: Array, x: Array, y: Array, op: Any, rounding: str) -> Array:
    """An exact zero sum of nonzero terms, or of zeros of unlike signs, is -0 when rounding down (IEEE 754, 6.3)."""
    if rounding != "rm" or op is np.multiply:
        return exact
    second = -y if op is np.subtract else y
    return np.where((exact == 0) & ~((x == 0) & (second == 0) & ~np.signbit(x) & ~np.signbit(second)), -0.0, exact)


def _exact_sign(x: Array, q: Array, y: Array) -> Array:
    """Sign of x - q*y: for f32 exact in f64, for f64 in fractions (a remainder may lie below the least subnormal)."""
    if x.dtype == np.float32:
        return np.sign(x.astype(np.float64) - q.astype(np.float64) * y.astype(np.float64))
    x, q, y = np.broadcast_arrays(x, q, y)
    overflown = np.isinf(q) & np.isfinite(x) & np.isfinite(y) & (y != 0)
    signs = np.where(overflown, -np.sign(q) * np.sign(y), np.nan)
    for place in zip(*np.nonzero(np.isfinite(x) & np.isfinite(q) & np.isfinite(y)), strict=True):
        rest = Fraction(float(x[place])) - Fraction(float(q[place])) * Fraction(float(y[place]))
        signs[place] = (rest > 0) - (rest < 0)
    return signs


def _direct(nearest: Array, side: Any, rounding: str) -> Array:
    """The nearest result moved to a directed rounding; `side(q)` is the sign of (exact - q)."""
    return nearest if rounding == "rn" else _directed(nearest, side(nearest), rounding)


def _directed(nearest: Array, side: Array, rounding: str, reverse: bool = False) -> Array:
    side = -side if reverse else side
    if rounding == "rn":
        return nearest
    down = np.zeros_like(side) if rounding == "rp" else (side < 0) * ((nearest > 0) | (rounding == "rm"))
    up = np.zeros_like(side) if rounding == "rm" else (side > 0) * ((nearest < 0) | (rounding == "rp"))
    infinite = np.isinf(nearest) & np.isnan(side)
    result = np.where(down.astype(bool), np.nextafter(nearest, nearest.dtype.type(-math.inf)), nearest)
    result = np.where(up.astype(bool), np.nextafter(nearest, nearest.dtype.type(math.inf)), result)
    return np.where(infinite, nearest, result).astype(nearest.dtype)


def _directed_f64(op: Any, x: Array, y: Array, rounding: str, saturate: bool) -> Array:
    if op is np.multiply:
        return _directed_fma_f64(x, y, np.zeros_like(x) * -np.sign(x), rounding, saturate, product=True)
    one = np.ones_like(x)
    return _directed_fma_f64(x, one, -y if op is np.subtract else y, rounding, saturate)


def _directed_fma_f64(x: Array, y: Array, z: Array, rounding: str, saturate: bool, product: bool = False) -> Array:
    x, y, z = (np.array(v) for v in np.broadcast_arrays(x, y, z))
    nearest = x * y if product else fma_f64(x, y, z)
    result = nearest.copy()
    for index in np.ndindex(nearest.shape):
        values = float(x[index]), float(y[index]), float(z[index])
        if not all(map(math.isfinite, values)):
            continue
        exact = Fraction(values[0]) * Fraction(values[1]) + (0 if product else Fraction(values[2]))
        near = float(nearest[index])
        if math.isinf(near):
            side = -1 if near > 0 else 1
        else:
            side = (exact > Fraction(near)) - (exact < Fraction(near))
        result[index] = _directed(np.float64(near).reshape(1), np.array([float(side)]), rounding)[0]
        cancelled = values[0] * values[1] != 0 or math.copysign(1, values[2]) < 0
        if exact == 0 and rounding == "rm" and not product and math.copysign(1, near) > 0 and cancelled:
            result[index] = -0.0
    return (_unit(result) if saturate else result).view(np.uint64)
