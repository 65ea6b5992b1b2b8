"""64-bit integers as pairs of i32, low half first, and the rows of i32 that the base set lacks."""

from __future__ import annotations

from functools import partial

from tilefw.simt.expand.builder import Legal, Rule, Value, key

# --- i32 ----------------------------------------------------------------------------------------------------------------


def _swapped(row: str, b: Legal, x: Value, y: Value) -> Value:
    return b(row, y, x)


def _negated(row: str, b: Legal, x: Value, y: Value) -> Value:
    return b.not_(b(row, x, y))


def _pick(row: str, b: Legal, x: Value, y: Value) -> Value:
    return b("select", b(row, x, y), x, y)


def _absolute(b: Legal, x: Value) -> Value:
    zero = b.integer(0, b.type_of(x))
    return b("select", b("lts", x, zero), b("subi", zero, x), x)


def _multiply_high_signed(b: Legal, x: Value, y: Value) -> Value:
    # hi(x*y) signed = hi unsigned - (x < 0 ? y : 0) - (y < 0 ? x : 0); Warren, "Hacker's Delight", §8-3.
    t = b.type_of(x)
    zero = b.integer(0, t)
    high = b("mulhu", x, y)
    high = b("subi", high, b("select", b("lts", x, zero), y, zero))
    return b("subi", high, b("select", b("lts", y, zero), x, zero))


def _ones_in_word(b: Legal, x: Value) -> Value:
    # Pairs, nibbles, then a multiply that adds the bytes; "Hacker's Delight", §5-1.
    x = b("subi", x, b("andi", b("shru", x, b.i32(1)), b.i32(0x55555555)))
    x = b("addi", b("andi", x, b.i32(0x33333333)), b("andi", b("shru", x, b.i32(2)), b.i32(0x33333333)))
    x = b("andi", b("addi", x, b("shru", x, b.i32(4))), b.i32(0x0F0F0F0F))
    return b("shru", b("muli", x, b.i32(0x01010101)), b.i32(24))


def _leading_zeros_of_word(b: Legal, x: Value) -> Value:
    # Smear the highest one downwards and count what is left above it.
    for distance in (1, 2, 4, 8, 16):
        x = b("ori", x, b("shru", x, b.i32(distance)))
    return b("subi", b.i32(32), b("popc", x))


# --- i64 ----------------------------------------------------------------------------------------------------------------


def _add(b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    low = b("addi", xl, yl)
    carry = b.bits(b("ltu", low, xl))
    return b.join(low, b("addi", b("addi", xh, yh), carry))


def _subtract(b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    borrow = b.bits(b("ltu", xl, yl))
    return b.join(b("subi", xl, yl), b("subi", b("subi", xh, yh), borrow))


def _multiply(b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    cross = b("addi", b("muli", xl, yh), b("muli", xh, yl))
    return b.join(b("muli", xl, yl), b("addi", b("mulhu", xl, yl), cross))


def _multiply_high(b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    zero = b.i32(0)

    def product(p: Value, q: Value) -> Value:
        return b.join(b("muli", p, q), b("mulhu", p, q))

    middle = b("addi", product(xl, yh), b.join(b("mulhu", xl, yl), zero))  # cannot carry out: (2^32-1)^2 + 2^32-1 < 2^64
    low, high = b.split(middle)
    second = b("addi", product(xh, yl), b.join(low, zero))
    return b("addi", product(xh, yh), b("addi", b.join(high, zero), b.join(b.split(second)[1], zero)))


def _bitwise(row: str, b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    return b.join(b(row, xl, yl), b(row, xh, yh))


def _shift_amount(b: Legal, y: Value) -> Value:
    """The amount as an i32 that is 64 or more whenever the 64-bit amount is."""
    low, high = b.split(y)
    return b("select", b("eqi", high, b.i32(0)), low, b.i32(64))


def _shift_left(b: Legal, x: Value, y: Value) -> Value:
    low, high = b.split(x)
    n = _shift_amount(b, y)
    # A shift by the width or more gives 0, so each term vanishes where it does not apply.
    spill = b("shru", low, b("subi", b.i32(32), n))
    near = b("ori", b("shl", high, n), spill)
    far = b("shl", low, b("subi", n, b.i32(32)))
    return b.join(b("shl", low, n), b("select", b("ltu", n, b.i32(32)), near, far))


def _shift_right(row: str, b: Legal, x: Value, y: Value) -> Value:
    low, high = b.split(x)
    n = _shift_amount(b, y)
    spill = b("shl", high, b("subi", b.i32(32), n))
    near = b("ori", b("shru", low, n), spill)
    far = b(row, high, b("subi", n, b.i32(32)))
    return b.join(b("select", b("ltu", n, b.i32(32)), near, far), b(row, high, n))


def _equal(b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    return b("andi", b("eqi", xl, yl), b("eqi", xh, yh))


def _less(row: str, b: Legal, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    return b("ori", b(row, xh, yh), b("andi", b("eqi", xh, yh), b("ltu", xl, yl)))


def _select(b: Legal, condition: Value, x: Value, y: Value) -> Value:
    (xl, xh), (yl, yh) = b.split(x), b.split(y)
    return b.join(b("select", condition, xl, yl), b("select", condition, xh, yh), b.type_of(x))


def _ones(b: Legal, x: Value) -> Value:
    low, high = b.split(x)
    return b.join(b("addi", b("popc", low), b("popc", high)), b.i32(0))


def _leading_zeros(b: Legal, x: Value) -> Value:
    low, high = b.split(x)
    below = b("addi", b("clz", low), b.i32(32))
    return b.join(b("select", b("eqi", high, b.i32(0)), below, b("clz", high)), b.i32(0))


# Comparisons by the one that makes them, for i32 and i64 alike.
_COMPARES: dict[str, Rule] = {
    "nei": partial(_negated, "eqi"),
    "les": lambda b, x, y: b.not_(b("lts", y, x)), "gts": partial(_swapped, "lts"), "ges": partial(_negated, "lts"),
    "leu": lambda b, x, y: b.not_(b("ltu", y, x)), "gtu": partial(_swapped, "ltu"), "geu": partial(_negated, "ltu"),
}
_EITHER_WIDTH: dict[str, Rule] = {
    **_COMPARES,
    "mins": partial(_pick, "lts"), "maxs": partial(_pick, "gts"), "minu": partial(_pick, "ltu"), "maxu": partial(_pick, "gtu"),
    "absi": _absolute, "mulhs": _multiply_high_signed,
}
RULES: dict[str, Rule] = {
    **{key(row, t): rule for t in ("i32", "i64") for row, rule in _EITHER_WIDTH.items()},
    "popc.i32": _ones_in_word, "clz.i32": _leading_zeros_of_word,
    "select.f32": lambda b, c, x, y: b.narrow(b("select", c, b.bits(x), b.bits(y)), "f32"),
    "select.i64": _select, "select.f64": _select,
    "addi.i64": _add, "subi.i64": _subtract, "muli.i64": _multiply, "mulhu.i64": _multiply_high,
    "andi.i64": partial(_bitwise, "andi"), "ori.i64": partial(_bitwise, "ori"), "xori.i64": partial(_bitwise, "xori"),
    "shl.i64": _shift_left, "shru.i64": partial(_shift_right, "shru"), "shrs.i64": partial(_shift_right, "shrs"),
    "eqi.i64": _equal, "lts.i64": partial(_less, "lts"), "ltu.i64": partial(_less, "ltu"),
    "popc.i64": _ones, "clz.i64": _leading_zeros,
}
