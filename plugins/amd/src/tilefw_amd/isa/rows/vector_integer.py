"""Integer sums, products, minima and maxima of 16, 24, 32 and 64 bits (CDNA3 ISA, "VOP2", "VOP3A", "VOP3B").

`clamp` limits a result to the range of its type, from the exact sum or product (CDNA3 ISA, "VOP3A": CLAMP).
"""

from __future__ import annotations

from functools import partial

from tilefw_amd.isa.row import Chapter, RowFacts
from tilefw_amd.isa.types import TYPES

CHAPTER = Chapter()
row = CHAPTER.row

VOP2: RowFacts = {"unit": "valu", "section": "VOP2"}
VOP3: RowFacts = {"unit": "valu", "section": "VOP3A"}
HALVES: RowFacts = {**VOP3, "facts": "keeps half"}  # those of gfx9, with op_sel


def _bounded(lanes, wide, kind):
    """A value of 64 bits, as signed, clamped to a narrower type."""
    top = (1 << (kind.bits - kind.signed)) - 1
    low = lanes.const(-top - 1 if kind.signed else 0, 64)
    return lanes.truncate(lanes.max(lanes.min(wide, lanes.const(top, 64), True), low, True), kind.bits)


def _widened(lanes, a, signed):
    return lanes.sign_extend(a, 64) if signed else lanes.zero_extend(a, 64)


# --- sums -------------------------------------------------------------------------------------------------------------


def _sum(signed, m):
    """d = a + b; clamp saturates."""
    if m.clamp:
        return lambda lanes, a, b: lanes.add_saturate(a, b, signed)
    return lambda lanes, a, b: lanes.add(a, b)


def _difference(signed, m):
    """d = a - b; clamp saturates."""
    if m.clamp:
        return lambda lanes, a, b: lanes.sub_saturate(a, b, signed)
    return lambda lanes, a, b: lanes.sub(a, b)


def _reversed_difference(signed, m):
    """d = b - a; clamp saturates."""
    subtract = _difference(signed, m)
    return lambda lanes, a, b: subtract(lanes, b, a)


for _name, _build, _u32, _u16 in (("add", _sum, 52, 38), ("sub", _difference, 53, 39), ("subrev", _reversed_difference, 54, 40)):
    for _kind, _opcode in (("u32", _u32), ("u16", _u16)):
        row(f"v_{_name}_{_kind} d:{_kind}, a:{_kind}, b:{_kind}", vop2=_opcode, modifiers="clamp", **VOP2)(partial(_build, False))
for _name, _build, _i32, _i16 in (("add", _sum, 0x29C, 0x29E), ("sub", _difference, 0x29D, 0x29F)):
    row(f"v_{_name}_i32 d:i32, a:i32, b:i32", vop3=_i32, modifiers="clamp", **VOP3)(partial(_build, True))
    row(f"v_{_name}_i16 d:i16, a:i16, b:i16", vop3=_i16, modifiers="clamp op_sel", **HALVES)(partial(_build, True))


def _carried(lanes, result, limit):
    """The sum, or `limit` where clamp is set and it carried; the carry."""
    value, carry = result
    return (value if limit is None else lanes.select(carry, lanes.const(limit, 32), value)), carry


def _with_carry_out(operation, swapped, m):
    """d = a + b or a - b (rev: b - a) and whether it carried or borrowed; clamp saturates d."""
    limit = None if not m.clamp else -1 if operation == "add_carry" else 0

    def meaning(lanes, a, b):
        first, second = (b, a) if swapped else (a, b)
        return _carried(lanes, getattr(lanes, operation)(first, second, lanes.const(0, 1)), limit)

    return meaning


def _with_carry(operation, swapped, m):
    """d = a + b + c or a - b - c (rev: b - a - c) and whether it carried or borrowed; clamp saturates d."""
    limit = None if not m.clamp else -1 if operation == "add_carry" else 0

    def meaning(lanes, a, b, c):
        first, second = (b, a) if swapped else (a, b)
        return _carried(lanes, getattr(lanes, operation)(first, second, c), limit)

    return meaning


_CARRY = (
    ("add", "addc", "add_carry", False, 25),
    ("sub", "subb", "sub_borrow", False, 26),
    ("subrev", "subbrev", "sub_borrow", True, 27),
)
for _out, _in, _operation, _swapped, _opcode in _CARRY:
    row(f"v_{_out}_co_u32 d:u32, dc:mask, a:u32, b:u32", vop2=_opcode, modifiers="clamp", **VOP2)(
        partial(_with_carry_out, _operation, _swapped)
    )
    row(f"v_{_in}_co_u32 d:u32, dc:mask, a:u32, b:u32, c:mask", vop2=_opcode + 3, modifiers="clamp", **VOP2)(
        partial(_with_carry, _operation, _swapped)
    )


@row("v_add3_u32 d:u32, a:u32, b:u32, c:u32", vop3=0x1FF, **VOP3)
def v_add3_u32(m):
    """d = a + b + c."""
    return lambda lanes, a, b, c: lanes.add(lanes.add(a, b), c)


# --- products ---------------------------------------------------------------------------------------------------------


@row("v_mul_lo_u32 d:u32, a:u32, b:u32", vop3=0x285, **VOP3)
def v_mul_lo_u32(m):
    """The low half of a * b."""
    return lambda lanes, a, b: lanes.mul(a, b)


@row("v_mul_lo_u16 d:u16, a:u16, b:u16", vop2=41, **VOP2)
def v_mul_lo_u16(m):
    """The low half of a * b."""
    return lambda lanes, a, b: lanes.mul(a, b)


def _high(signed, m):
    """The high half of a * b."""
    return lambda lanes, a, b: lanes.mul_high(a, b, signed)


row("v_mul_hi_u32 d:u32, a:u32, b:u32", vop3=0x286, **VOP3)(partial(_high, False))
row("v_mul_hi_i32 d:i32, a:i32, b:i32", vop3=0x287, **VOP3)(partial(_high, True))


def _low24(lanes, a, signed):
    """The low 24 bits, extended."""
    if not signed:
        return lanes.and_(a, lanes.const((1 << 24) - 1, 32))
    return lanes.shr(lanes.shl(a, lanes.const(8, 32)), lanes.const(8, 32), True)


def _product24(signed, m):
    """The product of the low 24 bits; clamp limits it to 32 bits."""
    if not m.clamp:
        return lambda lanes, a, b: lanes.mul(_low24(lanes, a, signed), _low24(lanes, b, signed))
    kind = TYPES["i32" if signed else "u32"]
    return lambda lanes, a, b: _bounded(lanes, lanes.mul_wide(_low24(lanes, a, signed), _low24(lanes, b, signed), signed), kind)


def _high_product24(signed, m):
    """Bits 32 to 63 of the product of the low 24 bits."""
    return lambda lanes, a, b: lanes.mul_high(_low24(lanes, a, signed), _low24(lanes, b, signed), signed)


for _kind, _signed, _low, _mad in (("i32", True, 6, 0x1C2), ("u32", False, 8, 0x1C3)):
    _operands = f"d:{_kind}, a:{_kind}, b:{_kind}"
    row(f"v_mul_{_kind}_{_kind[0]}24 {_operands}", vop2=_low, modifiers="clamp", **VOP2)(partial(_product24, _signed))
    row(f"v_mul_hi_{_kind}_{_kind[0]}24 {_operands}", vop2=_low + 1, **VOP2)(partial(_high_product24, _signed))


# --- products with a sum ----------------------------------------------------------------------------------------------


def _mad24(kind, m):
    """d = a * b + c with the low 24 bits of a and b; clamp limits the exact value."""
    signed = kind.signed
    if not m.clamp:
        return lambda lanes, a, b, c: lanes.add(lanes.mul(_low24(lanes, a, signed), _low24(lanes, b, signed)), c)

    def clamped(lanes, a, b, c):
        product = lanes.mul_wide(_low24(lanes, a, signed), _low24(lanes, b, signed), signed)
        return _bounded(lanes, lanes.add(product, _widened(lanes, c, signed)), kind)

    return clamped


def _mad16(kind, m):
    """d = a * b + c, in 16 bits; clamp limits the exact value."""
    if not m.clamp:
        return lambda lanes, a, b, c: lanes.add(lanes.mul(a, b), c)
    signed = kind.signed

    def clamped(lanes, a, b, c):
        a, b, c = (_widened(lanes, x, signed) for x in (a, b, c))
        return _bounded(lanes, lanes.add(lanes.mul(a, b), c), kind)

    return clamped


def _mad32_of_16(kind, m):
    """d = a * b + c, the product of 16 bits each, the sum of 32; clamp limits the exact value."""
    signed = kind.signed
    if not m.clamp:
        return lambda lanes, a, b, c: lanes.add(lanes.mul_wide(a, b, signed), c)

    def clamped(lanes, a, b, c):
        product = _widened(lanes, lanes.mul_wide(a, b, signed), signed)
        return _bounded(lanes, lanes.add(product, _widened(lanes, c, signed)), kind)

    return clamped


for _letter, _m24, _m16, _legacy, _m32 in (("u", 0x1C3, 0x204, 0x1EB, 0x1F1), ("i", 0x1C2, 0x205, 0x1EC, 0x1F2)):
    _word, _half = f"{_letter}32", f"{_letter}16"
    _of_words, _of_halves = (f"d:{k}, a:{k}, b:{k}, c:{k}" for k in (_word, _half))
    row(f"v_mad_{_word}_{_letter}24 {_of_words}", vop3=_m24, modifiers="clamp", **VOP3)(partial(_mad24, TYPES[_word]))
    row(f"v_mad_{_half} {_of_halves}", vop3=_m16, modifiers="clamp op_sel", **HALVES)(partial(_mad16, TYPES[_half]))
    row(f"v_mad_legacy_{_half} {_of_halves}", vop3=_legacy, modifiers="clamp", **VOP3)(partial(_mad16, TYPES[_half]))
    row(f"v_mad_{_word}_{_half} d:{_word}, a:{_half}, b:{_half}, c:{_word}", vop3=_m32, modifiers="clamp op_sel", **VOP3)(
        partial(_mad32_of_16, TYPES[_word])
    )


@row("v_mad_u64_u32 d:u64, dc:mask, a:u32, b:u32, c:u64", vop3=0x1E8, modifiers="clamp", unit="valu64", section="VOP3B")
def v_mad_u64_u32(m):
    """d = a * b + c in 64 bits, and the carry; clamp saturates d."""

    def meaning(lanes, a, b, c):
        total, carry = lanes.add_carry(lanes.mul_wide(a, b, False), c, lanes.const(0, 1))
        return (lanes.select(carry, lanes.const(-1, 64), total) if m.clamp else total), carry

    return meaning


@row("v_mad_i64_i32 d:i64, dc:mask, a:i32, b:i32, c:i64", vop3=0x1E9, modifiers="clamp", unit="valu64", section="VOP3B")
def v_mad_i64_i32(m):
    """d = a * b + c in 64 bits, and bit 64 of the exact sum, which is its sign; clamp saturates d."""

    def meaning(lanes, a, b, c):
        product = lanes.mul_wide(a, b, True)
        total = lanes.add(product, c)
        zero = lanes.const(0, 64)
        overflows = lanes.compare(lanes.and_(lanes.xor(product, total), lanes.xor(c, total)), zero, "lt", True)
        negative = lanes.xor(lanes.compare(total, zero, "lt", True), overflows)
        limit = lanes.select(negative, lanes.const(1 << 63, 64), lanes.const((1 << 63) - 1, 64))
        return (lanes.select(overflows, limit, total) if m.clamp else total), negative

    return meaning


# --- minima and maxima ------------------------------------------------------------------------------------------------


def _minimum(signed, m):
    """The smaller."""
    return lambda lanes, a, b: lanes.min(a, b, signed)


def _maximum(signed, m):
    """The larger."""
    return lambda lanes, a, b: lanes.max(a, b, signed)


def _minimum3(signed, m):
    """The smallest."""
    return lambda lanes, a, b, c: lanes.min(lanes.min(a, b, signed), c, signed)


def _maximum3(signed, m):
    """The largest."""
    return lambda lanes, a, b, c: lanes.max(lanes.max(a, b, signed), c, signed)


def _median3(signed, m):
    """The middle one."""

    def meaning(lanes, a, b, c):
        low, high = lanes.min(a, b, signed), lanes.max(a, b, signed)
        return lanes.max(low, lanes.min(high, c, signed), signed)

    return meaning


# Opcodes of i32, u32, i16, u16.
for _name, _build, *_opcodes in (("min", _minimum, 12, 14, 50, 49), ("max", _maximum, 13, 15, 48, 47)):
    for _kind, _opcode in zip(("i32", "u32", "i16", "u16"), _opcodes, strict=True):
        row(f"v_{_name}_{_kind} d:{_kind}, a:{_kind}, b:{_kind}", vop2=_opcode, **VOP2)(partial(_build, TYPES[_kind].signed))
_TERNARY = (
    ("min3", _minimum3, 0x1D1, 0x1D2, 0x1F5, 0x1F6), ("max3", _maximum3, 0x1D4, 0x1D5, 0x1F8, 0x1F9),
    ("med3", _median3, 0x1D7, 0x1D8, 0x1FB, 0x1FC),
)
for _name, _build, *_opcodes in _TERNARY:
    for _kind, _opcode in zip(("i32", "u32", "i16", "u16"), _opcodes, strict=True):
        _facts: RowFacts = {**HALVES, "modifiers": "clamp op_sel"} if TYPES[_kind].bits == 16 else VOP3
        row(f"v_{_name}_{_kind} d:{_kind}, a:{_kind}, b:{_kind}, c:{_kind}", vop3=_opcode, **_facts)(
            partial(_build, TYPES[_kind].signed)
        )
