"""Casts between float formats, and between floats and integers, by integer arithmetic on their codes.

Every format of 16 bits or fewer converts exactly to f32, and from f32 by one rounding. What is wider than f32 first
becomes an f32 rounded to odd (a sticky last bit), after which rounding again to a format of at most 22 bits gives what
one rounding would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

from functools import partial

from tilefw.api.dtypes import DType
from tilefw.simt.expand.builder import TYPES, Legal, Rule, Value, key
from tilefw.simt.expand.narrow import signed_bits

SMALL = tuple(t for t, d in TYPES.items() if d.is_float and d.bits <= 16)
_F32_INFINITY = 0x7F800000


def _infinity_code(dtype: DType) -> int:
    return ((1 << dtype.exponent_bits) - 1) << dtype.mantissa_bits


def _largest_code(dtype: DType) -> int:
    top = (1 << (dtype.bits - 1)) - 1
    return {"ieee": _infinity_code(dtype) - 1, "fn": top - 1}.get(dtype.specials, top)


def _nan_code(dtype: DType) -> int:
    """With its sign bit: all-finite formats take their largest value for a NaN (`tilefw.tile.numbers.round_to`)."""
    codes = {"ieee": _infinity_code(dtype) | 1 << (dtype.mantissa_bits - 1), "fnuz": 1 << (dtype.bits - 1)}
    return codes.get(dtype.specials, (1 << (dtype.bits - 1)) - 1)


# --- small formats to and from f32 ----------------------------------------------------------------------------------------


def _to_f32(b: Legal, x: Value, to: str) -> Value:
    """Exact; `to` is f32."""
    dtype = TYPES[b.type_of(x)]
    code = b.bits(x)
    if dtype.name == "bf16":
        return b.narrow(b("shl", code, b.i32(16)), "f32")
    magnitude = b("andi", code, b.i32((1 << (dtype.bits - 1)) - 1))
    shift = 23 - dtype.mantissa_bits
    normal = b("addi", b("shl", magnitude, b.i32(shift)), b.i32((127 - dtype.bias) << 23))
    step = b.real(2.0 ** (1 - dtype.bias - dtype.mantissa_bits), "f32")
    subnormal = b.bits(b("mulf", b("s2f", magnitude, to="f32"), step))
    result = b("select", b("ltu", magnitude, b.i32(1 << dtype.mantissa_bits)), subnormal, normal)
    if dtype.specials == "ieee":
        special = b("addi", b("shl", magnitude, b.i32(shift)), b.i32(_F32_INFINITY - (_infinity_code(dtype) << shift)))
        result = b("select", b("geu", magnitude, b.i32(_infinity_code(dtype))), special, result)
    elif dtype.specials == "fn":
        result = b("select", b("eqi", magnitude, b.i32(_nan_code(dtype))), b.i32(0x7FC00000), result)
    sign = b("shl", b("shru", code, b.i32(dtype.bits - 1)), b.i32(31))
    result = b("ori", result, sign)
    if dtype.specials == "fnuz":
        result = b("select", b("eqi", code, b.i32(_nan_code(dtype))), b.i32(0x7FC00000), result)
    return b.narrow(result, to)


def _rounded_code(b: Legal, magnitude: Value, dtype: DType, towards_zero: bool) -> Value:
    """The code of |x|, given as f32 bits, before overflow and NaN; too large exponents simply carry on upwards."""
    shift = 23 - dtype.mantissa_bits
    lifted = magnitude
    if not towards_zero:
        odd = b("andi", b("shru", magnitude, b.i32(shift)), b.i32(1))
        lifted = b("addi", b("addi", magnitude, b.i32((1 << (shift - 1)) - 1)), odd)
    normal = b("subi", b("shru", lifted, b.i32(shift)), b.i32((127 - dtype.bias) << dtype.mantissa_bits))
    if dtype.bias == 127:
        return normal  # bf16: its subnormals are those of f32, cut short
    value = b.narrow(magnitude, "f32")
    if towards_zero:
        subnormal = b("f2s", b("mulf", value, b.real(2.0 ** (dtype.bias - 1 + dtype.mantissa_bits), "f32")), to="i32")
    else:
        # Adding the power of two whose last place is the subnormal step rounds to a multiple of that step.
        magic = b.real(2.0 ** (24 - dtype.bias - dtype.mantissa_bits), "f32")
        subnormal = b("subi", b.bits(b("addf", value, magic)), b.bits(magic))
    smallest_normal = b.i32((128 - dtype.bias) << 23)
    return b("select", b("ltu", magnitude, smallest_normal), subnormal, normal)


def _from_f32(towards_zero: bool, b: Legal, x: Value, to: str) -> Value:
    dtype = TYPES[to]
    pattern = b.bits(x)
    magnitude = b("andi", pattern, b.i32(0x7FFFFFFF))
    code = _rounded_code(b, magnitude, dtype, towards_zero)
    infinite = b("geu", magnitude, b.i32(_F32_INFINITY))
    if dtype.bits <= 8:  # formats of a byte and less saturate
        top = b.i32(_largest_code(dtype))
        code = b("select", b("ori", b("gtu", code, top), infinite), top, code)
    else:
        limit = b.i32(_infinity_code(dtype) - (1 if towards_zero else 0))
        code = b("select", b("gtu", code, limit), limit, code)
        code = b("select", infinite, b.i32(_infinity_code(dtype)), code)
    sign = b("shl", b("shru", pattern, b.i32(31)), b.i32(dtype.bits - 1))
    signed = b("ori", code, sign)
    if dtype.specials == "fnuz":
        signed = b("select", b("eqi", code, b.i32(0)), code, signed)
    nan = b("gtu", magnitude, b.i32(_F32_INFINITY))
    return b.narrow(b("select", nan, b.i32(_nan_code(dtype)), signed), to)


def _through_f32(row: str, b: Legal, x: Value, to: str) -> Value:
    return b(row, b("castf", x, to="f32"), to=to)


def _from_f64(row: str, b: Legal, x: Value, to: str) -> Value:
    cut = b("castf_rtz", x, to="f32")
    inexact = b.bits(b("nef", b("castf", cut, to="f64"), x))
    return b(row, b.narrow(b("ori", b.bits(cut), inexact), "f32"), to=to)


def _cut_from_f64(b: Legal, x: Value, to: str) -> Value:
    """f64 to f32 towards zero: the nearest f32, or its neighbour where that is further from zero than x. One code below infinity is
    the largest number."""
    nearest = b("castf", x, to="f32")
    back, zero = b("castf", nearest, to="f64"), b.real(0.0, "f64")
    above = b("andi", b("ltf", x, back), b("ltf", zero, x))
    below = b("andi", b("ltf", back, x), b("ltf", x, zero))
    code = b.bits(nearest)
    return b.narrow(b("select", b("ori", above, below), b("subi", code, b.i32(1)), code), to)


# --- integers to floats -----------------------------------------------------------------------------------------------------


def _word_to_f32(b: Legal, x: Value, to: str) -> Value:
    """Unsigned 32 bits: both halves are exact, so one fma rounds once."""
    high = b("s2f", b("shru", x, b.i32(16)), to="f32")
    low = b("s2f", b("andi", x, b.i32(0xFFFF)), to="f32")
    return b("fma", high, b.real(65536.0, "f32"), low)


def _word_to_odd_f32(b: Legal, x: Value) -> Value:
    """Unsigned 32 bits to f32, rounded to odd: what 24 bits do not hold becomes a sticky last bit."""
    lost = b.bits(b("nei", b("andi", x, b.i32(0xFF)), b.i32(0)))
    kept = b("ori", b("shru", x, b.i32(8)), lost)
    large = b("mulf", b("s2f", kept, to="f32"), b.real(256.0, "f32"))
    return b("select", b("ltu", x, b.i32(1 << 24)), b("s2f", x, to="f32"), large)


def _long_to_word(b: Legal, x: Value) -> tuple[Value, Value]:
    """Unsigned 64 bits as (32 leading bits, the last of them sticky; f32 factor, a power of two)."""
    leading, _ = b.split(b("clz", x))
    low, high = b.split(b("shl", x, b.join(leading, b.i32(0))))
    word = b("ori", high, b.bits(b("nei", low, b.i32(0))))
    factor = b("shl", b("subi", b.i32(127 + 32), leading), b.i32(23))
    return word, b.narrow(factor, "f32")


def _unsigned_to_float(b: Legal, x: Value, to: str) -> Value:
    source = b.type_of(x)
    if source == "i64":
        word, factor = _long_to_word(b, x)
        if to == "f32":
            return b("mulf", b("u2f", word, to="f32"), factor)
        return b("castf", b("mulf", _word_to_odd_f32(b, word), factor), to=to)
    if source == "i32":
        return _word_to_f32(b, x, to) if to == "f32" else b("castf", _word_to_odd_f32(b, x), to=to)
    exact = b("s2f", b.bits(x), to="f32")
    return exact if to == "f32" else b("castf", exact, to=to)


def _signed_to_float(b: Legal, x: Value, to: str) -> Value:
    source = b.type_of(x)
    if source in ("i32", "i64"):
        magnitude = b("u2f", b("absi", x), to=to)
        negative = b("lts", x, b.integer(0, source))
        return b("select", negative, b("negf", magnitude), magnitude)
    exact = b("s2f", signed_bits(b, x), to="f32")
    return exact if to == "f32" else b("castf", exact, to=to)


# --- floats to integers -----------------------------------------------------------------------------------------------------


def _clamped(b: Legal, x: Value, to: str, low: int, high: int) -> Value:
    whole = b("f2s", x, to="i32")
    return b.narrow(b("mins", b("maxs", whole, b.i32(low)), b.i32(high)), to)


def _to_narrow(signed: bool, b: Legal, x: Value, to: str) -> Value:
    width = TYPES[to].bits
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return _clamped(b, x, to, low, high)


def _word_from_f32(b: Legal, x: Value, to: str) -> Value:
    """Saturating, NaN to 0; x is cut in two pieces of 16 bits, each within what a signed conversion takes."""
    high = b("f2s", b("mulf", x, b.real(2.0**-16, "f32")), to="i32")
    low = b("f2s", b("fma", b("s2f", high, to="f32"), b.real(-65536.0, "f32"), x), to="i32")
    whole = b("addi", b("shl", high, b.i32(16)), low)
    whole = b("select", b("lef", b.real(2.0**32, "f32"), x), b.i32(-1), whole)
    return b("select", b("lef", b.real(1.0, "f32"), x), whole, b.i32(0))


def _long_from_magnitude(b: Legal, x: Value) -> Value:
    """0 <= x < 2**64 in f32, truncated to unsigned 64 bits."""
    high = b("f2u", b("mulf", x, b.real(2.0**-32, "f32")), to="i32")
    low = b("f2u", b("fma", b("u2f", high, to="f32"), b.real(-(2.0**32), "f32"), x), to="i32")
    return b.join(low, high)


def _unsigned_long_from_f32(b: Legal, x: Value, to: str) -> Value:
    whole = b("select", b("lef", b.real(2.0**64, "f32"), x), b.integer(-1, "i64"), _long_from_magnitude(b, x))
    return b("select", b("lef", b.real(1.0, "f32"), x), whole, b.integer(0, "i64"))


def _signed_long_from_f32(b: Legal, x: Value, to: str) -> Value:
    size = b("absf", x)
    whole = b("select", b("lef", b.real(2.0**63, "f32"), size), b.integer((1 << 63) - 1, "i64"), _long_from_magnitude(b, size))
    negated = b("subi", b.integer(0, "i64"), whole)
    negated = b("select", b("lef", b.real(2.0**63, "f32"), size), b.integer(-(1 << 63), "i64"), negated)
    result = b("select", b("ltf", x, b.real(0.0, "f32")), negated, whole)
    return b("select", b("isnan", x), b.integer(0, "i64"), result)


def _rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for t in SMALL:
        rules |= {key("castf", t, "f32"): _to_f32, key("castf_rtz", t, "f32"): _to_f32}
        rules |= {key("castf", "f32", t): partial(_from_f32, False), key("castf_rtz", "f32", t): partial(_from_f32, True)}
        for row in ("castf", "castf_rtz"):
            rules |= {key(row, t, to): partial(_through_f32, row) for to in SMALL if to != t}
            rules |= {key(row, t, "f64"): partial(_through_f32, "castf"), key(row, "f64", t): partial(_from_f64, row)}
        for i in ("i4", "i8", "i16", "i32", "i64"):
            rules |= {key(row, t, i): partial(_through_f32, row) for row in ("f2s", "f2u")}
    rules[key("castf_rtz", "f64", "f32")] = _cut_from_f64
    rules[key("castf_rtz", "f32", "f64")] = lambda b, x, to: b("castf", x, to=to)
    for to in (*SMALL, "f32"):
        for i in ("i1", "i4", "i8", "i16", "i32", "i64"):
            rules |= {key("u2f", i, to): _unsigned_to_float, key("s2f", i, to): _signed_to_float}
    for i in ("i1", "i4", "i8", "i16"):
        for row in ("s2f", "u2f"):
            widen = "exts" if row == "s2f" else "extu"
            rules[key(row, i, "f64")] = partial(lambda widen, b, x, to: b("s2f", b(widen, x, to="i32"), to=to), widen)
    for f in ("f32", "f64"):
        for i in ("i4", "i8", "i16"):
            rules |= {key("f2s", f, i): partial(_to_narrow, True), key("f2u", f, i): partial(_to_narrow, False)}
    rules |= {"f2u.f32.i32": _word_from_f32, "f2u.f32.i64": _unsigned_long_from_f32, "f2s.f32.i64": _signed_long_from_f32}
    return rules


RULES = _rules()
