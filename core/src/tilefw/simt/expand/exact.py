"""Division, square root and remainder that are exact: rounded once, or not at all, and checked by a residual.

Operands are scaled to [1, 2) or [1, 4) first, so that no step over- or underflows; a fused multiply-add then gives the
residual of a candidate exactly (Markstein, "IA-64 and Elementary Functions", 2000, ch. 8 and 9).
"""

from __future__ import annotations

from tilefw.api.integers import ceil_div
from tilefw.simt.expand.builder import Legal, Rule, Value, key
from tilefw.simt.expand.floats import SAME_WIDTH, pattern, with_sign_of

_MANTISSA = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}
# Subnormal operands are multiplied by this power of two before they are taken apart.
_LIFT = {"f32": 32, "f64": 64}


def power_of_two(b: Legal, exponent: Value, t: str) -> Value:
    """2**exponent for an i32 exponent within the normal range."""
    i = SAME_WIDTH[t]
    biased = b("addi", exponent, b.i32(_BIAS[t]))
    biased = biased if i == "i32" else b("extu", biased, to="i64")
    return b("bitcast", b("shl", biased, b.integer(_MANTISSA[t], i)), to=t)


def scale(b: Legal, x: Value, exponent: Value) -> Value:
    """x * 2**exponent in steps that are each representable; |exponent| below four times the bias."""
    t = b.type_of(x)
    limit = _BIAS[t] - 1
    for _ in range(3):
        part = b("mins", b("maxs", exponent, b.i32(-limit)), b.i32(limit))
        x = b("mulf", x, power_of_two(b, part, t))
        exponent = b("subi", exponent, part)
    return x


def scales(b: Legal, t: str) -> bool:
    """Whether the chip has `scalef`, a row that no program can ask for: x * 2**exponent for a whole number as a float, at most
    twice the bias, and 0 where that is surely below the smallest number for |x| up to 2, whatever x is."""
    return key("scalef", t) in b.chip.rows


def scale_by(b: Legal, x: Value, exponent: Value) -> Value:
    """x * 2**exponent for a whole number as a float, |exponent| at most twice the bias, and |x| from 1/2 to 2: by the chip's own
    `scalef`, where it has one."""
    t = b.type_of(x)
    if scales(b, t):
        return b.chip.op("scalef", (x, exponent), t)
    return scale(b, x, b("f2s", exponent, to="i32"))


def parts(b: Legal, x: Value) -> tuple[Value, Value]:
    """Of a finite x > 0: (m, e) with x = m * 2**e, 1 <= m < 2, e an i32."""
    t = b.type_of(x)
    i, mantissa = SAME_WIDTH[t], _MANTISSA[t]
    small = b("ltf", x, b.real(2.0 ** (1 - _BIAS[t]), t))
    x = b("select", small, b("mulf", x, b.real(2.0 ** _LIFT[t], t)), x)
    code = pattern(b, x)
    biased = b("shru", code, b.integer(mantissa, i))
    biased = biased if i == "i32" else b("trunci", biased, to="i32")
    exponent = b("subi", biased, b("select", small, b.i32(_BIAS[t] + _LIFT[t]), b.i32(_BIAS[t])))
    body = b("andi", code, b.integer((1 << mantissa) - 1, i))
    return b("bitcast", b("ori", body, b.integer(_BIAS[t] << mantissa, i)), to=t), exponent


def _quotient(b: Legal, x: Value, y: Value) -> tuple[Value, Value]:
    """(q, sign of x/y - q as -1, 0 or 1 in an i32) for 1 <= x/y < 2: q is the nearest f32."""
    q, one = b("divf", x, y), b.real(1.0, "f32")
    q = b("select", b("ltf", q, one), one, q)  # of equal operands an approximate quotient may be below 1, where steps are halves
    half_step = b("mulf", y, b.real(2.0**-24, "f32"))
    for _ in range(3):  # the approximate quotient is at most 3 places off
        residual = b("fma", b("negf", q), y, x)
        q = b("select", b("ltf", half_step, residual), b("addf", q, b.real(2.0**-23, "f32")), q)
        q = b("select", b("ltf", residual, b("negf", half_step)), b("subf", q, b.real(2.0**-23, "f32")), q)
    residual = b("fma", b("negf", q), y, x)
    above = b.bits(b("ltf", b.real(0.0, "f32"), residual))
    below = b.bits(b("ltf", residual, b.real(0.0, "f32")))
    return q, b("subi", above, below)


def _rounded_subnormal(b: Legal, q: Value, rest: Value, exponent: Value) -> Value:
    """q * 2**exponent below the normal range as its code: q cut to fewer bits, nearest even, from q's exact value."""
    whole = b("ori", b("andi", pattern(b, q), b.i32(0x7FFFFF)), b.i32(0x800000))
    # One bit more for the place of the cut, and one sticky bit; a rest below zero borrows.
    extended = b("addi", b("shl", whole, b.i32(2)), rest)
    distance = b("subi", b.i32(1 - _BIAS["f32"]), exponent)
    distance = b("mins", b("addi", distance, b.i32(2)), b.i32(30))
    kept = b("shru", extended, distance)
    lost = b("andi", extended, b("subi", b("shl", b.i32(1), distance), b.i32(1)))
    half = b("shl", b.i32(1), b("subi", distance, b.i32(1)))
    tie_up = b("andi", b("eqi", lost, half), b("nei", b("andi", kept, b.i32(1)), b.i32(0)))
    return b("addi", kept, b.bits(b("ori", b("ltu", half, lost), tie_up)))


def _divide(b: Legal, x: Value, y: Value) -> Value:
    xs, ys = b("absf", x), b("absf", y)
    xm, xe = parts(b, xs)
    ym, ye = parts(b, ys)
    less = b("ltf", xm, ym)
    q, rest = _quotient(b, b("select", less, b("addf", xm, xm), xm), ym)
    exponent = b("subi", b("subi", xe, ye), b.bits(less))
    normal = b("addi", pattern(b, q), b("shl", exponent, b.i32(23)))
    code = b("select", b("lts", exponent, b.i32(-126)), _rounded_subnormal(b, q, rest, exponent), normal)
    code = b("select", b("lts", b.i32(127), exponent), b.i32(0x7F800000), code)
    result = b.narrow(code, "f32")
    zero, infinity = b.real(0.0, "f32"), b.real(float("inf"), "f32")
    x_zero, y_zero = b("eqf", xs, zero), b("eqf", ys, zero)
    x_infinite, y_infinite = b("eqf", xs, infinity), b("eqf", ys, infinity)
    result = b("select", b("ori", x_infinite, y_zero), infinity, result)
    result = b("select", b("ori", x_zero, y_infinite), zero, result)
    invalid = b("ori", b("andi", x_zero, y_zero), b("andi", x_infinite, y_infinite))
    invalid = b("ori", invalid, b("ori", b("isnan", x), b("isnan", y)))
    sign = b.narrow(b("xori", b.bits(x), b.bits(y)), "f32")
    return b("select", invalid, b.real(float("nan"), "f32"), with_sign_of(b, result, sign))


def _square_root(b: Legal, x: Value) -> Value:
    """Newton's iteration on the reciprocal root, then Tuckerman's test moves the root to the nearest value."""
    m, e = parts(b, x)
    odd = b("andi", e, b.i32(1))
    m = b("select", b("eqi", odd, b.i32(0)), m, b("addf", m, m))
    half = b.real(0.5, "f32")
    # The well-known first guess: halving the code halves the exponent (Lomont, "Fast inverse square root", 2003).
    y = b.narrow(b("subi", b.i32(0x5F375A86), b("shru", b.bits(m), b.i32(1))), "f32")
    for _ in range(4):
        y = b("mulf", y, b("fma", b("mulf", b("mulf", half, m), y), b("negf", y), b.real(1.5, "f32")))
    s = b("mulf", m, y)
    s = b("fma", b("fma", b("negf", s), s, m), b("mulf", half, y), s)
    one = b.i32(1)
    lower, upper = (b.narrow(b(row, b.bits(s), one), "f32") for row in ("subi", "addi"))
    zero = b.real(0.0, "f32")
    # s is nearest when s * (s - step) < m <= s * (s + step).
    too_high = b("lef", b("fma", b("negf", s), lower, m), zero)
    too_low = b("ltf", zero, b("fma", b("negf", s), upper, m))
    s = b("select", too_high, lower, b("select", too_low, upper, s))
    root = b("mulf", s, power_of_two(b, b("shrs", b("subi", e, odd), one), "f32"))
    unchanged = b("ori", b("eqf", x, zero), b("eqf", x, b.real(float("inf"), "f32")))
    root = b("select", unchanged, x, root)
    return b("select", b("lef", zero, x), root, b.real(float("nan"), "f32"))


def _remainder(b: Legal, x: Value, y: Value) -> Value:
    """x - y*trunc(x/y) by long division: each step brings down as many quotient bits as the format can hold exactly."""
    t = b.type_of(x)
    digits = _MANTISSA[t] - 1
    largest = 2 * _BIAS[t] + _MANTISSA[t]
    xs, ys = b("absf", x), b("absf", y)
    r, xe = parts(b, xs)
    d, ye = parts(b, ys)
    left = b("subi", xe, ye)
    zero = b.real(0.0, t)
    r = b("select", b("lef", d, r), b("subf", r, d), r)
    for _ in range(ceil_div(largest, digits)):
        step = b("mins", b("maxs", left, b.i32(0)), b.i32(digits))
        left = b("subi", left, step)
        r = b("mulf", r, power_of_two(b, step, t))
        q = b("trunc", b("divf", r, d))
        r = b("fma", b("negf", q), d, r)
        for _ in range(2):  # the approximate quotient may be off by two at most
            r = b("select", b("ltf", r, zero), b("addf", r, d), r)
            r = b("select", b("lef", d, r), b("subf", r, d), r)
    result = with_sign_of(b, scale(b, r, ye), x)
    infinity = b.real(float("inf"), t)
    result = b("select", b("ltf", xs, ys), x, result)
    defined = b("andi", b("ltf", xs, infinity), b("ltf", zero, ys))
    return b("select", defined, result, b.real(float("nan"), t))


RULES: dict[str, Rule] = {
    "div_rn.f32": _divide, "sqrt_rn.f32": _square_root, "sqrt.f32": lambda b, x: b("sqrt_rn", x),
    # f64 division and root are exact on every chip that has f64, so a chip lists them under the exact names.
    "divf.f64": lambda b, x, y: b("div_rn", x, y), "sqrt.f64": lambda b, x: b("sqrt_rn", x),
    "remf.f32": _remainder, "remf.f64": _remainder,
}
