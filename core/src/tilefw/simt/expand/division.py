"""Integer division and remainder, truncated; of 32 bits by a reciprocal in f32, of 64 bits digit by digit.

Division by zero gives all ones and the remainder the dividend, the smallest integer by -1 gives itself and 0, as the rows define.
"""

from __future__ import annotations

from tilefw.simt.expand.builder import Legal, Rule, Value


def _unsigned_32(b: Legal, n: Value, d: Value) -> tuple[Value, Value]:
    """Quotient and remainder of unsigned 32-bit integers; for d = 0 meaningless.

    y, an estimate of 2^32/d from below, starts from an f32 reciprocal (its error is below 2^-20, which the factor
    1 - 2^-20 turns into an estimate that is never above), and one Newton step in integers squares the error to
    2^-39. So the quotient is short by at most 3, mended by 3 comparisons. (The scheme: Granlund and Möller, "Improved
    division by invariant integers", 2011; Warren, "Hacker's Delight", ch. 10.)
    """
    reciprocal = b("divf", b.real(1.0, "f32"), b("u2f", d, to="f32"))
    y = b("f2u", b("mulf", reciprocal, b.real(2.0**32 * (1 - 2.0**-20), "f32")), to="i32")
    shortfall = b("muli", b("subi", b.i32(0), d), y)
    y = b("addi", y, b("mulhu", y, shortfall))
    q = b("mulhu", n, y)
    r = b("subi", n, b("muli", q, d))
    for _ in range(3):
        enough = b("geu", r, d)
        q = b("select", enough, b("addi", q, b.i32(1)), q)
        r = b("select", enough, b("subi", r, d), r)
    return q, r


def _unsigned_64(b: Legal, n: Value, d: Value) -> tuple[Value, Value]:
    """Quotient and remainder of unsigned 64-bit integers by 64 steps of restoring division; for d = 0 meaningless."""
    low, high = b.split(n)
    zero, one = b.i32(0), b.i32(1)
    remainder = b.join(zero, zero)
    halves: list[Value] = []
    for half in (high, low):
        quotient = zero
        for place in range(31, -1, -1):
            r_low, r_high = b.split(remainder)
            # The bit that leaves the top of the remainder means that it surely exceeds the divisor.
            carried = b("lts", r_high, zero)
            bit = b("andi", b("shru", half, b.i32(place)), one)
            r_high = b("ori", b("shl", r_high, one), b("shru", r_low, b.i32(31)))
            r_low = b("ori", b("shl", r_low, one), bit)
            remainder = b.join(r_low, r_high)
            enough = b("ori", carried, b("geu", remainder, d))
            remainder = b("select", enough, b("subi", remainder, d), remainder)
            quotient = b("ori", b("shl", quotient, one), b.bits(enough))
        halves.append(quotient)
    return b.join(halves[1], halves[0]), remainder


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
