"""Integer division and remainder, truncated, by a reciprocal in f32 that Newton's steps in integers make exact.

Division by zero gives all ones and the remainder the dividend, the smallest integer by -1 gives itself and 0, as the rows define.
"""

from __future__ import annotations

from tilefw.simt.expand.builder import Legal, Rule, Value


def _unsigned_32(b: Legal, n: Value, d: Value) -> tuple[Value, Value]:
    """Quotient and remainder of unsigned 32-bit integers; for d = 0 meaningless.

    The estimate of 2^32/d starts from an f32 reciprocal (its error is below 2^-20, which the factor 1 - 2^-20 turns into an
    estimate that is never above), and one Newton step squares the error to 2^-39.
    """
    reciprocal = b("divf", b.real(1.0, "f32"), b("u2f", d, to="f32"))
    y = b("f2u", b("mulf", reciprocal, b.real(2.0**32 * (1 - 2.0**-20), "f32")), to="i32")
    return _by_estimate(b, n, d, y, 1)


def _unsigned_64(b: Legal, n: Value, d: Value) -> tuple[Value, Value]:
    """Quotient and remainder of unsigned 64-bit integers; for d = 0 meaningless.

    The divisor goes to f32 half by half, with an error of 2^-23 at most, so that the estimate of 2^64/d is as good as that of 32
    bits, its truncation apart; two Newton steps bring the error from 2^-19 to 2^-78.
    """
    low, high = b.split(d)
    divisor = b("addf", b("mulf", b("u2f", high, to="f32"), b.real(2.0**32, "f32")), b("u2f", low, to="f32"))
    reciprocal = b("divf", b.real(1.0, "f32"), divisor)
    estimate = b("mulf", reciprocal, b.real(2.0**64 * (1 - 2.0**-20), "f32"))
    y_high = b("f2u", b("mulf", estimate, b.real(2.0**-32, "f32")), to="i32")
    y_low = b("f2u", b("fma", b("u2f", y_high, to="f32"), b.real(-(2.0**32), "f32"), estimate), to="i32")
    return _by_estimate(b, n, d, b.join(y_low, y_high), 2)


def _by_estimate(b: Legal, n: Value, d: Value, y: Value, steps: int) -> tuple[Value, Value]:
    """Quotient and remainder by an integer y that is nowhere above 2^w/d, of integers of w bits.

    A Newton step squares y's relative error and truncates: where 2^w/d is at least 2, y ends short by less than 3, and the quotient
    by at most 3, mended by 3 comparisons. Where it is less, y is 0 or 1, stays so, and the quotient is short by at most 1. (The
    scheme: Granlund and Möller, "Improved division by invariant integers", 2011; Warren, "Hacker's Delight", ch. 10.)
    """
    t = b.type_of(n)
    negated = b("subi", b.integer(0, t), d)
    for _ in range(steps):
        shortfall = b("muli", negated, y)
        y = b("addi", y, b("mulhu", y, shortfall))
    q = b("mulhu", n, y)
    r = b("subi", n, b("muli", q, d))
    for _ in range(3):
        enough = b("geu", r, d)
        q = b("select", enough, b("addi", q, b.integer(1, t)), q)
        r = b("select", enough, b("subi", r, d), r)
    return q, r


_UNSIGNED = {"i32": _unsigned_32, "i64": _unsigned_64}


def _divide_unsigned(b: Legal, n: Value, d: Value) -> Value:
    t = b.type_of(n)
    q, _ = _UNSIGNED[t](b, n, d)
    return b("select", b("eqi", d, b.integer(0, t)), b.integer(-1, t), q)


def _remainder_unsigned(b: Legal, n: Value, d: Value) -> Value:
    t = b.type_of(n)
    _, r = _UNSIGNED[t](b, n, d)
    return b("select", b("eqi", d, b.integer(0, t)), n, r)


def _with_sign(b: Legal, magnitude: Value, negative: Value) -> Value:
    return b("select", negative, b("subi", b.integer(0, b.type_of(magnitude)), magnitude), magnitude)


def _divide_signed(b: Legal, n: Value, d: Value) -> Value:
    t = b.type_of(n)
    zero = b.integer(0, t)
    q, _ = _UNSIGNED[t](b, b("absi", n), b("absi", d))
    q = _with_sign(b, q, b("lts", b("xori", n, d), zero))
    return b("select", b("eqi", d, zero), b.integer(-1, t), q)


def _remainder_signed(b: Legal, n: Value, d: Value) -> Value:
    t = b.type_of(n)
    zero = b.integer(0, t)
    _, r = _UNSIGNED[t](b, b("absi", n), b("absi", d))
    r = _with_sign(b, r, b("lts", n, zero))
    return b("select", b("eqi", d, zero), n, r)


_BY_ROW: dict[str, Rule] = {
    "divu": _divide_unsigned, "remu": _remainder_unsigned, "divs": _divide_signed, "rems": _remainder_signed,
}


RULES: dict[str, Rule] = {f"{row}.{t}": rule for t in _UNSIGNED for row, rule in _BY_ROW.items()}
