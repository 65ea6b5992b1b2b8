"""Exponentials, logarithms, trigonometric functions, tanh, erf and pow in f32 and f64, from +, *, fma and division.

Each is a range reduction, a series of `series.py` on what is left, and the way back. Errors stay within the table's
bounds for the row (the OpenCL C specification's: 3 ulp for exp and log, 4 for sin and cos, 5 for tanh, 16 for erf and pow).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilefw.simt.expand import series
from tilefw.simt.expand.builder import Legal, Rule, Value
from tilefw.simt.expand.exact import parts, scale_by, scales
from tilefw.simt.expand.floats import SAME_WIDTH, with_sign_if_zero, with_sign_of
from tilefw.simt.expand.reduction import quadrant
from tilefw.simt.expand.series import PRECISIONS


def polynomial(b: Legal, coefficients: Sequence[float], x: Value) -> Value:
    """The polynomial of `x`, an f32 or f64, by Horner's rule with `fma`. `coefficients`: lowest first, at least one."""
    t = b.type_of(x)
    total = b.real(coefficients[-1], t)
    for coefficient in reversed(coefficients[:-1]):
        total = b("fma", total, x, b.real(coefficient, t))
    return total


# --- exponentials -----------------------------------------------------------------------------------------------------------


def _within(b: Legal, x: Value, limit: float) -> Value:
    """x clamped to ±limit; a NaN stays."""
    t = b.type_of(x)
    x = b("select", b("ltf", b.real(limit, t), x), b.real(limit, t), x)
    return b("select", b("ltf", x, b.real(-limit, t)), b.real(-limit, t), x)


def _exponent_limit(t: str) -> float:
    """Beyond this, 2**x is 0 or infinity."""
    return float(PRECISIONS[t].bias + PRECISIONS[t].mantissa + 8)


def _below(b: Legal, x: Value, limit: float) -> Value:
    """x, at most the limit; a NaN stays. For a chip that scales: below, it gives 0 whatever is scaled."""
    most = b.real(limit, b.type_of(x))
    return b("select", b("ltf", most, x), most, x)


def _near_zero(t: str) -> tuple[float, ...]:
    """e**r as a polynomial for |r| <= ln(2)/2; in f32 with its error spread over the interval, which saves a term."""
    if t == "f64":
        return series.exponential(PRECISIONS[t].exp_terms)
    return series.exponential_near(PRECISIONS[t].exp_terms - 1)


def _nearest(b: Legal, x: Value, factor: Value) -> Value:
    """The whole number nearest to x * factor, where that lies well within a float's fraction: a sum that has no room for a fraction
    is rounded to a whole number. Elsewhere some number that is as far from 0."""
    t = b.type_of(x)
    whole = b.real(1.5 * 2 ** PRECISIONS[t].mantissa, t)
    return b("subf", b("fma", x, factor, whole), whole)


def _reduced(b: Legal, x: Value, n: Value | None = None) -> tuple[Value, Value]:
    """x = n*ln 2 + r with |r| <= ln(2)/2: (n as a float, r)."""
    t = b.type_of(x)
    n = b("round_even", b("mulf", x, b.real(1 / math.log(2), t))) if n is None else n
    high, low = series.split_constant("log_2", t, 2)
    minus_n = b("negf", n)
    return n, b("fma", minus_n, b.real(low, t), b("fma", minus_n, b.real(high, t), x))


def _exp(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    if scales(b, t):
        x = _below(b, x, _exponent_limit(t) * math.log(2))
        n, r = _reduced(b, x, _nearest(b, x, b.real(1 / math.log(2), t)))
        return scale_by(b, polynomial(b, _near_zero(t), r), n)
    x = _within(b, x, _exponent_limit(t) * math.log(2))
    n, r = _reduced(b, x)
    return scale_by(b, polynomial(b, series.exponential(PRECISIONS[t].exp_terms), r), n)


def _exp2(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    x = (_below if scales(b, t) else _within)(b, x, _exponent_limit(t))
    n = b("round_even", x)
    r = b("mulf", b("subf", x, n), b.real(math.log(2), t))
    terms = _near_zero(t) if scales(b, t) else series.exponential(PRECISIONS[t].exp_terms)
    return scale_by(b, polynomial(b, terms, r), n)


def _expm1(b: Legal, x: Value) -> Value:
    """2**n * (e**r - 1) + (2**n - 1), with the small term kept apart from 1 until the end."""
    t = b.type_of(x)
    one = b.real(1.0, t)
    clamped = _within(b, x, _exponent_limit(t) * math.log(2))
    n, r = _reduced(b, clamped)
    tail = polynomial(b, series.exponential(PRECISIONS[t].exp_terms + 1)[1:], r)
    small = b("mulf", tail, r)
    # Halving keeps 2**n finite for the largest n.
    half_power = scale_by(b, b.real(0.5, t), n)
    result = b("fma", half_power, small, b("subf", half_power, b.real(0.5, t)))
    result = b("addf", result, result)
    # Well past the overflow 2**n is infinite, and the sum above infinity minus infinity.
    overflow = b.real((PRECISIONS[t].bias + 1.3) * math.log(2), t)
    result = b("select", b("ltf", overflow, x), b.real(math.inf, t), result)
    result = b("select", b("ltf", x, b.real(-(PRECISIONS[t].mantissa + 4.0), t)), b("negf", one), result)
    tiny = b("ltf", b("absf", x), b.real(2.0 ** -(PRECISIONS[t].mantissa + 2), t))
    return b("select", tiny, x, result)


def _tanh(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    size = _within(b, b("absf", x), float(PRECISIONS[t].mantissa))
    e = b("expm1", b("addf", size, size))
    return with_sign_of(b, _near_quotient(b, e, b("addf", e, b.real(2.0, t))), x)


def _near_quotient(b: Legal, x: Value, y: Value) -> Value:
    """x / y within an ulp, for y whose reciprocal is normal: an approximate quotient and what it left over."""
    t = b.type_of(x)
    if t != "f32":
        return b("divf", x, y)
    reciprocal = b("divf", b.real(1.0, t), y)
    quotient = b("mulf", x, reciprocal)
    return b("fma", b("fma", b("negf", quotient), y, x), reciprocal, quotient)


# --- logarithms -------------------------------------------------------------------------------------------------------------


def _balanced_parts(b: Legal, x: Value) -> tuple[Value, Value]:
    """x = m * 2**k with sqrt(1/2) <= m < sqrt(2): (m, k as a float)."""
    t = b.type_of(x)
    m, e = parts(b, x)
    large = b("ltf", b.real(math.sqrt(2), t), m)
    m = b("select", large, b("mulf", m, b.real(0.5, t)), m)
    return m, b("s2f", b("addi", e, b.bits(large)), to=t)


def _log_of_mantissa(b: Legal, m: Value) -> Value:
    """ln m = f - (f²/2 - s*(f²/2 + 2s²(1/3 + s²/5 + …))) with f = m - 1, s = f/(2 + f): the large term f is exact."""
    t = b.type_of(m)
    f = b("subf", m, b.real(1.0, t))
    s = b("divf", f, b("addf", f, b.real(2.0, t)))
    z = b("mulf", s, s)
    tail = b("mulf", b("addf", z, z), polynomial(b, series.inverse_tangent(PRECISIONS[t].log_terms), z))
    half_square = b("mulf", b("mulf", f, b.real(0.5, t)), f)
    return b("subf", f, b("subf", half_square, b("mulf", s, b("addf", half_square, tail))))


def _log_edges(b: Legal, x: Value, result: Value) -> Value:
    t = b.type_of(x)
    zero, infinity = b.real(0.0, t), b.real(math.inf, t)
    result = b("select", b("eqf", x, infinity), infinity, result)
    result = b("select", b("eqf", x, zero), b.real(-math.inf, t), result)
    return b("select", b("lef", zero, x), result, b.real(math.nan, t))


def _log(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    m, k = _balanced_parts(b, x)
    high, low = series.split_constant("log_2", t, 2)
    result = b("fma", k, b.real(high, t), b("fma", k, b.real(low, t), _log_of_mantissa(b, m)))
    return _log_edges(b, x, result)


def _log2(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    m, k = _balanced_parts(b, x)
    high, low = series.split_constant("log2_e", t, 2)
    natural = _log_of_mantissa(b, m)
    return _log_edges(b, x, b("addf", k, b("fma", natural, b.real(high, t), b("mulf", natural, b.real(low, t)))))


def _log1p(b: Legal, x: Value) -> Value:
    """ln(u) + c/u, where u = 1 + x as rounded and c is what the rounding lost.

    The logarithm is the one above: a chip's own may be off by 2**-21 near 1 (the table's `log`), which is most of a small result.
    """
    t = b.type_of(x)
    one = b.real(1.0, t)
    u = b("addf", x, one)
    large = b("ltf", one, x)
    lost = b("select", large, b("subf", one, b("subf", u, x)), b("subf", x, b("subf", u, one)))
    log = _log(b, u)
    result = b("addf", log, b("divf", lost, u))
    edge = b("ori", b("eqf", u, b.real(math.inf, t)), b("lef", u, b.real(0.0, t)))
    result = b("select", edge, log, result)
    # Below half an ulp of 1 the result is x to a quarter of an ulp, and the quotient above is all of it.
    tiny = b("ltf", b("absf", x), b.real(2.0 ** -(PRECISIONS[t].mantissa + 1), t))
    return b("select", tiny, x, result)


# --- trigonometric functions ------------------------------------------------------------------------------------------------


def _sine_and_cosine(b: Legal, r: Value) -> tuple[Value, Value]:
    t = b.type_of(r)
    terms = PRECISIONS[t].trig_terms
    z = b("mulf", r, r)
    sine = b("fma", b("mulf", z, r), polynomial(b, series.sine(terms), z), r)
    rest = b("mulf", b("mulf", z, z), polynomial(b, series.cosine(terms), z))
    half = b("mulf", z, b.real(0.5, t))
    one = b.real(1.0, t)
    w = b("subf", one, half)
    # 1 - half is rounded; what it lost is added back with the small terms.
    cosine = b("addf", w, b("addf", b("subf", b("subf", one, w), half), rest))
    return sine, cosine


def _turned(b: Legal, x: Value, quarter: int) -> Value:
    """sin(x + quarter*pi/2)."""
    t = b.type_of(x)
    r, q = quadrant(b, x)
    q = b("addi", q, b.i32(quarter))
    sine, cosine = _sine_and_cosine(b, r)
    value = b("select", b("eqi", b("andi", q, b.i32(1)), b.i32(0)), sine, cosine)
    value = b("select", b("eqi", b("andi", q, b.i32(2)), b.i32(0)), value, b("negf", value))
    finite = b("ltf", b("absf", x), b.real(math.inf, t))
    return b("select", finite, value, b.real(math.nan, t))


def _sin(b: Legal, x: Value) -> Value:
    return with_sign_if_zero(b, _turned(b, x, 0), x)


# --- erf, pow, rsqrt --------------------------------------------------------------------------------------------------------


def _erf(b: Legal, x: Value) -> Value:
    """A series around 0 for |x| < 1, Taylor's around 1.5, 2.5, … beyond, their coefficients chosen by interval."""
    t = b.type_of(x)
    p = PRECISIONS[t]
    size = b("absf", x)
    near = b("mulf", size, polynomial(b, series.error_function(p.erf_terms), b("mulf", size, size)))
    centres = [k + 0.5 for k in range(1, p.erf_limit)]
    tables = [series.error_function_at(c, p.erf_terms) for c in centres]
    beyond = [b("lef", b.real(float(k), t), size) for k in range(2, p.erf_limit)]

    def chosen(values: Sequence[float]) -> Value:
        value = b.real(values[0], t)
        for condition, later in zip(beyond, values[1:], strict=True):
            value = b("select", condition, b.real(later, t), value)
        return value

    h = b("subf", size, chosen(centres))
    far = chosen([table[-1] for table in tables])
    for k in range(p.erf_terms - 2, -1, -1):
        far = b("fma", far, h, chosen([table[k] for table in tables]))
    value = b("select", b("ltf", size, b.real(1.0, t)), near, far)
    value = b("select", b("lef", b.real(float(p.erf_limit), t), size), b.real(1.0, t), value)
    return b("select", b("isnan", x), x, with_sign_of(b, value, x))


_ERF_NEAR_TERMS = 6


def _erf_by_exponent(b: Legal, x: Value) -> Value:
    """In f32: x·p(x²) for |x| <= 1, else 1 - 2**q(|x|); nothing is chosen but the result. Both are within 3 ulp.

    A NaN is not beyond 1, so that the product gives it.
    """
    t = b.type_of(x)
    p, one = PRECISIONS[t], b.real(1.0, t)
    size = b("absf", x)
    near = b("mulf", x, polynomial(b, series.error_function_near(_ERF_NEAR_TERMS), b("mulf", x, x)))
    limit = float(p.erf_limit)
    exponent = polynomial(b, series.complement_exponent(limit, p.erf_terms), b("minf", size, b.real(limit, t)))
    far = b("subf", one, b("exp2", exponent))
    return b("select", b("ltf", one, size), with_sign_of(b, far, x), near)


def _two_sum(b: Legal, x: Value, y: Value) -> tuple[Value, Value]:
    """The rounded sum and what it lost (Knuth)."""
    total = b("addf", x, y)
    y_part = b("subf", total, x)
    return total, b("addf", b("subf", x, b("subf", total, y_part)), b("subf", y, y_part))


def _log2_in_two(b: Legal, x: Value) -> tuple[Value, Value]:
    """log2 of a finite x > 0 as an unevaluated sum, to about twice the precision."""
    t = b.type_of(x)
    two = b.real(2.0, t)
    m, k = _balanced_parts(b, x)
    f = b("subf", m, b.real(1.0, t))
    d = b("addf", f, two)
    d_low = b("subf", f, b("subf", d, two))
    s = b("divf", f, d)
    residual = b("fma", b("negf", s), d, f)
    s_low = b("divf", b("fma", b("negf", s), d_low, residual), d)
    z = b("mulf", s, s)
    tail = b("mulf", b("mulf", s, z), polynomial(b, series.inverse_tangent(PRECISIONS[t].log_terms + 1), z))
    s, s_low = _two_sum(b, s, b("addf", s_low, tail))
    high, low = series.split_constant("log2_e", t, 2)
    twice, twice_low = b("addf", s, s), b("addf", s_low, s_low)
    product = b("mulf", twice, b.real(high, t))
    error = b("fma", twice, b.real(high, t), b("negf", product))
    error = b("fma", twice, b.real(low, t), b("fma", twice_low, b.real(high, t), error))
    total, lost = _two_sum(b, k, product)
    return total, b("addf", lost, error)


def _pow_of_size(b: Legal, size: Value, y: Value) -> Value:
    """size**y for size > 0."""
    t = b.type_of(y)
    limit = _exponent_limit(t)
    infinity = b.real(math.inf, t)
    high, low = _log2_in_two(b, size)
    high = b("select", b("eqf", size, infinity), infinity, high)
    high = b("select", b("eqf", size, b.real(0.0, t)), b("negf", infinity), high)
    product = b("mulf", y, high)
    error = b("fma", y, low, b("fma", y, high, b("negf", product)))
    inside = b("ltf", b("absf", product), b.real(limit, t))
    error = b("select", inside, error, b.real(0.0, t))
    product = _within(b, product, limit)
    n = b("round_even", product)
    r = b("mulf", b("addf", b("subf", product, n), error), b.real(math.log(2), t))
    return scale_by(b, polynomial(b, series.exponential(PRECISIONS[t].exp_terms), r), n)


def _pow(b: Legal, x: Value, y: Value) -> Value:
    """Special cases as IEEE 754 §9.2.1."""
    t = b.type_of(x)
    zero, one = b.real(0.0, t), b.real(1.0, t)
    size = b("absf", x)
    result = _pow_of_size(b, size, y)
    integer = b("eqf", b("trunc", y), y)
    half = b("mulf", y, b.real(0.5, t))
    odd = b("andi", integer, b("nef", b("trunc", half), half))
    negative = b("lts", b("bitcast", x, to=SAME_WIDTH[t]), b.integer(0, SAME_WIDTH[t]))
    result = b("select", b("andi", odd, negative), b("negf", result), result)
    undefined = b("andi", b("ltf", x, zero), b.not_(integer))
    undefined = b("andi", undefined, b("ltf", size, b.real(math.inf, t)))
    result = b("select", undefined, b.real(math.nan, t), result)
    result = b("select", b("ori", b("isnan", x), b("isnan", y)), b.real(math.nan, t), result)
    unit = b("andi", b("eqf", size, one), b("eqf", b("absf", y), b.real(math.inf, t)))
    always_one = b("ori", unit, b("ori", b("eqf", x, one), b("eqf", y, zero)))
    return b("select", always_one, one, result)


def _rsqrt(b: Legal, x: Value) -> Value:
    return b("divf", b.real(1.0, b.type_of(x)), b("sqrt", x))


_ROWS: dict[str, Rule] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "tanh": _tanh, "log": _log, "log2": _log2, "log1p": _log1p,
    "sin": _sin, "cos": lambda b, x: _turned(b, x, 1), "erf": _erf, "pow": _pow, "rsqrt": _rsqrt,
}
RULES: dict[str, Rule] = {f"{row}.{t}": rule for t in PRECISIONS for row, rule in _ROWS.items()} | {"erf.f32": _erf_by_exponent}
