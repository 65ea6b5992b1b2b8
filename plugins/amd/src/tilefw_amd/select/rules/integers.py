"""Rows of integers in vector registers: sums, products, logic, shifts, order, counts, of 8 to 64 bits and packed.

CDNA3 ISA, "VOP1", "VOP2", "VOP3A", "VOP3P". Elements of 8 and 16 bits leave the bits above undefined, so that whatever looks at
low bits alone is the instruction of 32. Sums, differences and products of 64 bits are those of halves with carries; the chip
has one sum, V_LSHL_ADD_U64, and one product with a sum, V_MAD_U64_U32.
"""

from __future__ import annotations

from functools import partial

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule
from tilefw_amd.select.operands import vector as emit
from tilefw_amd.select.operands import vectors as emit_several
from tilefw_amd.select.possible_bits import disjoint
from tilefw_amd.select.rules.instruction import FORM, commuting, either_order, halves, i32, is_single, joined, vector

_LOGIC = {"andi": "v_and_b32", "ori": "v_or_b32", "xori": "v_xor_b32"}
# Rows of 32 bits whose sources commute; the last ones do so of 16 bits too.
_COMMUTING = {"addi": "v_add_u32", "muli": "v_mul_lo_u32", "mulhs": "v_mul_hi_i32", "mulhu": "v_mul_hi_u32", **_LOGIC}
_ORDER = {"mins": "v_min_i{w}", "maxs": "v_max_i{w}", "minu": "v_min_u{w}", "maxu": "v_max_u{w}"}
# Results that look at the low bits of their sources alone.
_LOW_BITS = {"addi": "v_add_u32", **_LOGIC}
# The comparison and the one that holds with the sources exchanged.
_COMPARES = {
    "eqi": ("eq_u", "eq_u"), "nei": ("ne_u", "ne_u"), "lts": ("lt_i", "gt_i"), "les": ("le_i", "ge_i"), "gts": ("gt_i", "lt_i"),
    "ges": ("ge_i", "le_i"), "ltu": ("lt_u", "gt_u"), "leu": ("le_u", "ge_u"), "gtu": ("gt_u", "lt_u"), "geu": ("ge_u", "le_u"),
}
# Shifts have the amount first. Opcodes by width.
_SHIFTS = {
    "shl": {16: "v_lshlrev_b16", 32: "v_lshlrev_b32", 64: "v_lshlrev_b64"},
    "shru": {16: "v_lshrrev_b16", 32: "v_lshrrev_b32", 64: "v_lshrrev_b64"},
    "shrs": {16: "v_ashrrev_i16", 32: "v_ashrrev_i32", 64: "v_ashrrev_i64"},
}
_PACKED = {
    "addi": "v_pk_add_u16", "subi": "v_pk_sub_i16", "muli": "v_pk_mul_lo_u16", "mins": "v_pk_min_i16", "maxs": "v_pk_max_i16",
    "minu": "v_pk_min_u16", "maxu": "v_pk_max_u16",
}


def rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {f"{row}.i32": commuting(opcode, "w32") for row, opcode in _COMMUTING.items()}
    table |= {f"{row}.{t}": commuting(opcode, FORM[t]) for row, opcode in _LOW_BITS.items() for t in ("i8", "i16")}
    table |= {f"subi.{t}": either_order("v_sub_u32", "v_subrev_u32", FORM[t]) for t in ("i8", "i16", "i32")}
    table |= {"muli.i8": commuting("v_mul_lo_u16", "e8"), "muli.i16": commuting("v_mul_lo_u16", "e16")}
    table |= {"muli.i32": _product, "xori.i32": _exclusive_or}
    for bits in (16, 32):
        t = f"i{bits}"
        table |= {f"{row}.{t}": commuting(opcode.format(w=bits), FORM[t]) for row, opcode in _ORDER.items()}
    for bits in (16, 32, 64):
        for row, (opcode, other) in _COMPARES.items():
            table[f"{row}.i{bits}"] = either_order(f"v_cmp_{opcode}{bits}", f"v_cmp_{other}{bits}", "i1")
        table |= {f"{row}.i{bits}": partial(_shift, row, bits) for row in _SHIFTS}
    table |= {f"{row}.i16x2": vector(opcode, "w32") for row, opcode in _PACKED.items()}
    table |= {f"{row}.i16x2": partial(_packed_shift, opcode) for row, opcode in (
        ("shl", "v_pk_lshlrev_b16"), ("shru", "v_pk_lshrrev_b16"), ("shrs", "v_pk_ashrrev_i16"))}
    table |= {f"{row}.{packed}": commuting(opcode, "w32") for row, opcode in _LOGIC.items() for packed in ("i8x4", "i16x2")}
    table |= {"absi.i32": partial(_absolute, "v_sub_u32", "v_max_i32", "i32"),
              "absi.i16": partial(_absolute, "v_sub_u16", "v_max_i16", "i16")}
    table |= {"clz.i32": _leading_zeros, "popc.i32": lambda code, x: emit(code, "v_bcnt_u32_b32", "w32", x, i32(0))}
    return table | _wide()


# --- 32 bits and less --------------------------------------------------------------------------------------------------------


def _product(code: Code, x: Element, y: Element) -> Element:
    """A product of 32 bits takes four passes of the vector unit, a shift one (LLVM, SISchedule.td: WriteQuarterRate32)."""
    for factor, other in ((x, y), (y, x)):
        if isinstance(factor, Const) and factor.bits.bit_count() == 1:
            return code("shl.i32", other, i32(factor.bits.bit_length() - 1))
    return commuting("v_mul_lo_u32", "w32")(code, x, y)


def _exclusive_or(code: Code, x: Element, y: Element) -> Slice:
    for flipped, other in ((x, y), (y, x)):
        if flipped == i32(-1):
            return emit(code, "v_not_b32", "w32", other)
    if disjoint(code, x, y):
        return commuting("v_add_u32", "w32")(code, x, y)
    return commuting("v_xor_b32", "w32")(code, x, y)


def _shift(row: str, bits: int, code: Code, x: Element, y: Element) -> Element:
    """The chip takes an amount modulo the width: what may reach the width is mended, or for a sign made the largest that does
    not."""
    opcode, type_ = _SHIFTS[row][bits], f"i{bits}"
    if isinstance(y, Const):
        if (row, type_) == ("shrs", "i64") and y.bits >= bits - 1:
            sign = code("shrs.i32", halves(x)[1], i32(31))
            return joined(code, sign, sign)
        if y.bits >= bits and row != "shrs":
            return Const(type_, 0)
        if y.bits >= 32 and bits == 64:
            return _by_a_word(row, code, x, i32(y.bits - 32))
        return emit(code, opcode, FORM[type_], i32(min(y.bits, bits - 1)), x)
    largest = Const(type_, bits - 1)
    below = code.modulo(y, bits.bit_length() - 1)
    amount = y if below is None else below
    if bits == 64:
        amount = halves(amount)[0]
    if below is not None:
        return emit(code, opcode, FORM[type_], amount, x)
    if row == "shrs":
        amount = code(f"minu.{type_}", y, largest)
        return emit(code, opcode, FORM[type_], amount if bits != 64 else halves(amount)[0], x)
    shifted = emit(code, opcode, FORM[type_], amount, x)
    return code(f"select.{type_}", code(f"leu.{type_}", y, largest), shifted, Const(type_, 0))


def _by_a_word(row: str, code: Code, x: Element, beyond: Const) -> Element:
    """A shift of 64 bits by 32 and more: one half gives the other, which a copy or an instruction of 32 bits does."""
    low, high = halves(x)
    moved = low if row == "shl" else high
    moved = code(f"{row}.i32", moved, beyond) if beyond.bits else moved
    if row == "shl":
        return joined(code, i32(0), moved)
    return joined(code, moved, code("shrs.i32", high, i32(31)) if row == "shrs" else i32(0))


def _packed_shift(opcode: str, code: Code, x: Element, y: Element) -> Element:
    """By amounts below 16 that are known; others half by half."""
    if isinstance(y, Const) and all(amount < 16 for amount in (y.bits & 0xFFFF, y.bits >> 16)):
        return emit(code, opcode, "w32", y, x)
    row = {"v_pk_lshlrev_b16": "shl", "v_pk_lshrrev_b16": "shru", "v_pk_ashrrev_i16": "shrs"}[opcode]
    pairs = zip(code.chip.unpack(code, 16, x, 2), code.chip.unpack(code, 16, y, 2), strict=True)
    return code.chip.pack(code, 16, [code(f"{row}.i16", a, b) for a, b in pairs])


def _absolute(subtract: str, larger: str, type_: str, code: Code, x: Element) -> Slice:
    return emit(code, larger, FORM[type_], emit(code, subtract, FORM[type_], i32(0), x), x)


def _leading_zeros(code: Code, x: Element) -> Slice:
    """V_FFBH_U32 gives -1 for 0, the largest unsigned number."""
    return emit(code, "v_min_u32", "w32", i32(32), emit(code, "v_ffbh_u32", "w32", x))


# --- 64 bits -----------------------------------------------------------------------------------------------------------------


def _wide() -> dict[str, Rule]:
    table: dict[str, Rule] = {f"{row}.i64": partial(_by_halves, f"{row}.i32") for row in _LOGIC}
    return table | {
        "addi.i64": _sum, "subi.i64": _difference, "muli.i64": _wide_product, "mulhu.i64": _high_product,
        "popc.i64": _ones, "absi.i64": _wide_absolute,
    }


def _by_halves(key: str, code: Code, x: Element, y: Element) -> Element:
    """Halves of a constant, or constant halves, that are all zeros or all ones leave nothing to compute."""
    (xl, xh), (yl, yh) = ((code.constant_in(half) for half in halves(each)) for each in (x, y))
    return joined(code, _bits(key, code, xl, yl), _bits(key, code, xh, yh))


def _bits(key: str, code: Code, x: Element, y: Element) -> Element:
    x, y = (y, x) if isinstance(x, Const) else (x, y)
    absorbing = {"andi.i32": i32(0), "ori.i32": i32(-1)}.get(key)
    if y == absorbing:
        return y
    return x if (key, y) == ("andi.i32", i32(-1)) else code(key, x, y)


def _sum(code: Code, x: Element, y: Element) -> Slice:
    """The first source of V_LSHL_ADD_U64 is shifted by the second, here by nothing."""
    x, y = (y, x) if is_single(code, x) else (x, y)
    return emit(code, "v_lshl_add_u64", "w64", x, i32(0), y)


def _difference(code: Code, x: Element, y: Element) -> Element:
    if isinstance(y, Const):
        return code("addi.i64", x, Const("i64", -y.bits & (1 << 64) - 1))
    (xl, xh), (yl, yh) = halves(x), halves(y)
    low, borrow = emit_several(code, "v_sub_co_u32", ("w32", "i1"), xl, yl)
    high, _ = emit_several(code, "v_subb_co_u32", ("w32", "i1"), xh, yh, borrow)
    return joined(code, low, high)


def multiply_add(code: Code, x: Element, y: Element, addend: Element) -> Slice:
    """x * y + addend, of unsigned 32 and 64 bits, modulo 2**64."""
    return emit_several(code, "v_mad_u64_u32", ("w64", "i1"), x, y, addend)[0]


def signed_product(code: Code, x: Element, y: Element) -> Element:
    """The 64-bit product of two i32 with signs, one of which may be a literal."""
    x, y = (y, x) if isinstance(x, Const) else (x, y)
    if not code.uniform(x, y):
        return emit_several(code, "v_mad_i64_i32", ("w64", "i1"), x, y, Const("i64", 0))[0]
    if isinstance(y, Const) and 0 < y.bits < 1 << 31 and y.bits & y.bits - 1 == 0:
        places = y.bits.bit_length() - 1
        return joined(code, code("shl.i32", x, i32(places)), code("shrs.i32", x, i32(min(31, 32 - places))))
    return joined(code, code("muli.i32", x, y), code("mulhs.i32", x, y))


def _wide_product(code: Code, x: Element, y: Element) -> Element:
    """The product of the low halves, and what the others add to its high half."""
    (xl, xh), (yl, yh) = halves(x), halves(y)
    crossed = [code("muli.i32", a, b) for a, b in ((xl, yh), (xh, yl)) if i32(0) not in (a, b)]
    low, high = halves(multiply_add(code, xl, yl, Const("i64", 0)))
    for product in crossed:
        high = code("addi.i32", product, high)
    return joined(code, low, high)


def _high_product(code: Code, x: Element, y: Element) -> Element:
    """Schoolbook in words of 32 bits: no sum carries out of 64 (Warren, "Hacker's Delight", §8-2)."""
    (xl, xh), (yl, yh) = halves(x), halves(y)
    zero = i32(0)
    carried = joined(code, code("mulhu.i32", xl, yl), zero)
    middle_low, middle_high = halves(multiply_add(code, xh, yl, carried))
    _, second_high = halves(multiply_add(code, xl, yh, joined(code, middle_low, zero)))
    product = multiply_add(code, xh, yh, joined(code, middle_high, zero))
    return code("addi.i64", product, joined(code, second_high, zero))


def _wide_absolute(code: Code, x: Element) -> Element:
    """(x ^ s) - s with s the copies of the sign."""
    sign = code("shrs.i64", x, Const("i64", 63))
    return code("subi.i64", code("xori.i64", x, sign), sign)


def _ones(code: Code, x: Element) -> Element:
    low, high = halves(x)
    counted = emit(code, "v_bcnt_u32_b32", "w32", high, emit(code, "v_bcnt_u32_b32", "w32", low, i32(0)))
    return joined(code, counted, i32(0))
