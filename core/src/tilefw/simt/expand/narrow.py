"""Integers of 1, 4, 8 and 16 bits: widened to i32, computed there, and cut back; and casts between integers.

The sign or zero extension that an operation needs stands in the table; an operation that only looks at low bits takes
the cheaper zero extension.
"""

from __future__ import annotations

from functools import partial

from tilefw.simt.expand.builder import TYPES, Legal, Rule, Value, key

NARROW = ("i4", "i8", "i16")

# Rows by the extension of their operands; results are cut back to the type.
_ZERO = ("addi", "subi", "muli", "andi", "ori", "xori", "shl", "shru", "divu", "remu", "minu", "maxu", "popc")
_SIGN = ("divs", "rems", "mins", "maxs", "absi")
_ZERO_COMPARES = ("eqi", "nei", "ltu", "leu", "gtu", "geu")
_SIGN_COMPARES = ("lts", "les", "gts", "ges")


def signed_bits(b: Legal, value: Value) -> Value:
    """The value of an integer of at most 32 bits, sign-extended to i32."""
    missing = 32 - TYPES[b.type_of(value)].bits
    wide = b.bits(value)
    return wide if missing == 0 else b("shrs", b("shl", wide, b.i32(missing)), b.i32(missing))


def _through_i32(row: str, signed: bool, b: Legal, *operands: Value) -> Value:
    widened = [signed_bits(b, v) if signed else b.bits(v) for v in operands]
    return b.narrow(b(row, *widened), b.type_of(operands[0]))


def _compare(row: str, signed: bool, b: Legal, *operands: Value) -> Value:
    return b(row, *(signed_bits(b, v) if signed else b.bits(v) for v in operands))


def _shift_right_signed(b: Legal, x: Value, y: Value) -> Value:
    return b.narrow(b("shrs", signed_bits(b, x), b.bits(y)), b.type_of(x))


def _multiply_high(signed: bool, b: Legal, x: Value, y: Value) -> Value:
    x32, y32 = (signed_bits(b, v) if signed else b.bits(v) for v in (x, y))
    return b.narrow(b("shrs", b("muli", x32, y32), b.i32(TYPES[b.type_of(x)].bits)), b.type_of(x))


def _leading_zeros(b: Legal, x: Value) -> Value:
    counted = b("clz", b.bits(x))
    return b.narrow(b("subi", counted, b.i32(32 - TYPES[b.type_of(x)].bits)), b.type_of(x))


def _select_narrow(b: Legal, condition: Value, x: Value, y: Value) -> Value:
    return b.narrow(b("select", condition, b.bits(x), b.bits(y)), b.type_of(x))


def _select_bool(b: Legal, condition: Value, x: Value, y: Value) -> Value:
    return b("ori", b("andi", condition, x), b("andi", b.not_(condition), y))


def _extend_unsigned(b: Legal, x: Value, to: str) -> Value:
    low = b.bits(x)
    return b.join(low, b.i32(0)) if to == "i64" else b.narrow(low, to)


def _extend_signed(b: Legal, x: Value, to: str) -> Value:
    low = signed_bits(b, x)
    return b.join(low, b("shrs", low, b.i32(31))) if to == "i64" else b.narrow(low, to)


def _truncate(b: Legal, x: Value, to: str) -> Value:
    low = b.split(x)[0] if b.type_of(x) == "i64" else b.bits(x)
    return b.narrow(low, to)


def _bitcast(b: Legal, x: Value, to: str) -> Value:
    if TYPES[to].bits == 64:
        return b.join(*b.split(x), to)
    return b.narrow(b.bits(x), to)


# i1 arithmetic is modulo 2; true is -1 when signed, as in the table's two's complement.
def _bool_rows(b: Legal, row: str, x: Value, y: Value) -> Value:
    one_bit = {
        "addi": lambda: b("xori", x, y), "subi": lambda: b("xori", x, y), "muli": lambda: b("andi", x, y),
        "minu": lambda: b("andi", x, y), "maxu": lambda: b("ori", x, y), "mins": lambda: b("ori", x, y),
        "maxs": lambda: b("andi", x, y), "eqi": lambda: b.not_(b("xori", x, y)), "nei": lambda: b("xori", x, y),
        "ltu": lambda: b("andi", b.not_(x), y), "gtu": lambda: b("andi", x, b.not_(y)), "leu": lambda: b("ori", b.not_(x), y),
        "geu": lambda: b("ori", x, b.not_(y)), "lts": lambda: b("andi", x, b.not_(y)), "gts": lambda: b("andi", b.not_(x), y),
        "les": lambda: b("ori", x, b.not_(y)), "ges": lambda: b("ori", b.not_(x), y),
        # A shift by one bit or more empties the single bit, or fills it with the sign, which it is itself.
        "shl": lambda: b("andi", x, b.not_(y)), "shru": lambda: b("andi", x, b.not_(y)), "shrs": lambda: x,
    }
    return one_bit[row]()


_BOOL_ROWS = (
    "addi", "subi", "muli", "minu", "maxu", "mins", "maxs", "eqi", "nei", "ltu", "gtu", "leu", "geu", "lts", "gts", "les",
    "ges", "shl", "shru", "shrs",
)


def _bool_unary(row: str, b: Legal, x: Value) -> Value:
    return b.not_(x) if row == "clz" else x


def _bool_through_i32(row: str, signed: bool, b: Legal, x: Value, y: Value) -> Value:
    x32, y32 = (signed_bits(b, v) if signed else b.bits(v) for v in (x, y))
    return b.narrow(b("andi", b(row, x32, y32), b.i32(1)), "i1")


def _bool_multiply_high(signed: bool, b: Legal, x: Value, y: Value) -> Value:
    # Unsigned: 1 * 1 = 01, high bit 0. Signed: -1 * -1 = 01, high bit 0; all else is 0.
    return b("andi", b("andi", x, y), b.not_(b.true()))


def _rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for t in NARROW:
        rules |= {key(r, t): partial(_through_i32, r, False) for r in _ZERO}
        rules |= {key(r, t): partial(_through_i32, r, True) for r in _SIGN}
        rules |= {key(r, t): partial(_compare, r, False) for r in _ZERO_COMPARES}
        rules |= {key(r, t): partial(_compare, r, True) for r in _SIGN_COMPARES}
        rules |= {key("shrs", t): _shift_right_signed, key("clz", t): _leading_zeros}
        rules |= {key("mulhs", t): partial(_multiply_high, True), key("mulhu", t): partial(_multiply_high, False)}
    for t, dtype in TYPES.items():
        if dtype.bits < 32 and t != "i1":
            rules[key("select", t)] = _select_narrow
    rules |= {key(r, "i1"): partial(lambda r, b, x, y: _bool_rows(b, r, x, y), r) for r in _BOOL_ROWS}
    rules |= {key(r, "i1"): partial(_bool_unary, r) for r in ("absi", "popc", "clz")}
    rules |= {key(r, "i1"): partial(_bool_through_i32, r, r.endswith("s")) for r in ("divs", "divu", "rems", "remu")}
    rules |= {key("mulhs", "i1"): partial(_bool_multiply_high, True), key("mulhu", "i1"): partial(_bool_multiply_high, False)}
    rules[key("select", "i1")] = _select_bool
    rules |= _cast_rules()
    return rules


def _cast_rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    integers = ("i1", *NARROW, "i32", "i64")
    for source in integers:
        for to in integers:
            if TYPES[to].bits > TYPES[source].bits:
                rules |= {key("extu", source, to): _extend_unsigned, key("exts", source, to): _extend_signed}
            elif TYPES[to].bits < TYPES[source].bits:
                rules[key("trunci", source, to)] = _truncate
    for source, a in TYPES.items():
        rules |= {key("bitcast", source, to): _bitcast for to, c in TYPES.items() if c.bits == a.bits}
    return rules


RULES = _rules()
