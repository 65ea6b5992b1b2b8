"""Rows of integers and predicates in scalar registers, once for all lanes of a wave.

CDNA3 ISA, "SOP1", "SOP2", "SOPC". Comparisons leave their result in SCC; as a value it is a lane mask of 64 bits, 0 or -1
(`machine.pseudo`). Scalars of 8 and 16 bits leave the bits above undefined, as those of lanes do. There is no scalar float
arithmetic: floats of scalars are values of lanes.

Where a chip was made without an instruction, lanes compute the value, all of them alike, and the first lane's is read back.
"""

from __future__ import annotations

from functools import partial

from tilefw.api.machine import Slice
from tilefw.api.simt import Code, Const, Element, Rule, alias
from tilefw_amd.chips import Chip
from tilefw_amd.select.operands import scalar as emit
from tilefw_amd.select.packing import in_scalars
from tilefw_amd.select.rules.instruction import BITS, halves, i32, joined, scalar
from tilefw_amd.select.rules.preference import first_served

_FORM = {"i1": "ui1", "i8": "ue8", "i16": "ue16", "i32": "uw32", "i64": "uw64"}
_WORDS = {
    "addi": "s_add_u32", "subi": "s_sub_u32", "muli": "s_mul_i32", "mulhs": "s_mul_hi_i32", "mulhu": "s_mul_hi_u32",
    "andi": "s_and_b32", "ori": "s_or_b32", "xori": "s_xor_b32", "mins": "s_min_i32", "maxs": "s_max_i32", "minu": "s_min_u32",
    "maxu": "s_max_u32", "absi": "s_abs_i32", "popc": "s_bcnt1_i32_b32",
}
_LOW_BITS = ("addi", "subi", "muli", "andi", "ori", "xori")
_LOGIC = {"andi": "s_and_b64", "ori": "s_or_b64", "xori": "s_xor_b64"}
_WIDE = {"addi": "s_add_u64", "subi": "s_sub_u64", **_LOGIC}
_COMPARES = {
    "eqi": "eq_u32", "nei": "lg_u32", "lts": "lt_i32", "les": "le_i32", "gts": "gt_i32", "ges": "ge_i32", "ltu": "lt_u32",
    "leu": "le_u32", "gtu": "gt_u32", "geu": "ge_u32",
}
_WIDE_COMPARES = {"eqi": "eq_u64", "nei": "lg_u64"}
# Of 64 bits: by the high words, where they are equal by the low ones.
_ORDER = {
    "lts": ("lts", "ltu"), "les": ("lts", "leu"), "gts": ("gts", "gtu"), "ges": ("gts", "geu"),
    "ltu": ("ltu", "ltu"), "leu": ("ltu", "leu"), "gtu": ("gtu", "gtu"), "geu": ("gtu", "geu"),
}
_SHIFTS = {
    "shl": {32: "s_lshl_b32", 64: "s_lshl_b64"}, "shru": {32: "s_lshr_b32", 64: "s_lshr_b64"},
    "shrs": {32: "s_ashr_i32", 64: "s_ashr_i64"},
}


def rules(chip: Chip) -> dict[str, Rule]:
    """The rules; on a chip that was made without instructions of its generation with those of lanes behind them."""
    table = _scalar_rules()
    return {key: first_served(rule, partial(_by_lanes, key)) for key, rule in table.items()} if chip.removed else table


def _by_lanes(key: str, code: Code, *operands: Element) -> Element:
    """What the row's rule for lanes makes of values that are equal in all lanes, in scalar registers."""
    rule = code.chip.rule(key)
    assert rule is not None  # every row of this table is a row of lanes
    return in_scalars(code, rule(code, *operands))


def _scalar_rules() -> dict[str, Rule]:
    table: dict[str, Rule] = {f"{row}.i32": scalar(opcode, "uw32") for row, opcode in _WORDS.items()}
    table |= {f"{row}.{t}": scalar(_WORDS[row], _FORM[t]) for row in _LOW_BITS for t in ("i8", "i16")}
    table |= {f"{row}.i64": scalar(opcode, "uw64") for row, opcode in _WIDE.items()}
    table |= {f"{row}.i1": scalar(opcode, "ui1") for row, opcode in _LOGIC.items()}
    table |= {f"{row}.i32": scalar(f"compare.s_cmp_{name}", "ui1") for row, name in _COMPARES.items()}
    table |= {f"{row}.i64": scalar(f"compare.s_cmp_{name}", "ui1") for row, name in _WIDE_COMPARES.items()}
    table |= {f"{row}.i64": partial(_order, *rows) for row, rows in _ORDER.items()}
    table |= {f"{row}.i{bits}": partial(_shift, row, bits) for row in _SHIFTS for bits in (32, 64)}
    table |= {f"select.{t}": partial(_select, _FORM[t]) for t in ("i8", "i16", "i32", "i64")}
    table |= {"clz.i32": _leading_zeros, "muli.i32": _product, "muli.i64": _wide_product}
    for row, signed in (("exts", True), ("extu", False)):
        table |= {f"{row}.{t}.i32": partial(_extended, signed, BITS[t]) for t in ("i8", "i16")}
    table |= {"extu.i32.i64": lambda code, x: joined(code, x, i32(0)), "exts.i32.i64": _extended_to_pair}
    table |= {"trunci.i64.i32": lambda code, x: halves(x)[0]} | {f"trunci.i32.{t}": alias for t in ("i8", "i16")}
    return table


def _select(form: str, code: Code, condition: Element, x: Element, y: Element) -> Slice:
    return emit(code, f"s_select_b{64 if form == 'uw64' else 32}", form, condition, x, y)


def _order(strictly: str, otherwise: str, code: Code, x: Element, y: Element) -> Element:
    (xl, xh), (yl, yh) = halves(x), halves(y)
    equal = code("andi.i1", code("eqi.i32", xh, yh), code(f"{otherwise}.i32", xl, yl))
    return code("ori.i1", code(f"{strictly}.i32", xh, yh), equal)


def _shift(row: str, bits: int, code: Code, x: Element, y: Element) -> Element:
    """The chip takes an amount modulo the width: what reaches the width is mended, or for a sign made the largest that does not."""
    opcode, t = _SHIFTS[row][bits], f"i{bits}"
    largest = Const(t, bits - 1)
    if isinstance(y, Const):
        if y.bits >= bits and row != "shrs":
            return Const(t, 0)
        return emit(code, opcode, _FORM[t], x, i32(min(y.bits, bits - 1)))
    below = code.modulo(y, bits.bit_length() - 1)
    if below is not None:
        return emit(code, opcode, _FORM[t], x, halves(below)[0] if bits == 64 else below)
    if row == "shrs":
        limited = code("select.i64", code("leu.i64", y, largest), y, largest) if bits == 64 else code("minu.i32", y, largest)
        return emit(code, opcode, _FORM[t], x, halves(limited)[0] if bits == 64 else limited)
    shifted = emit(code, opcode, _FORM[t], x, halves(y)[0] if bits == 64 else y)
    return code(f"select.{t}", code(f"leu.{t}", y, largest), shifted, Const(t, 0))


def _leading_zeros(code: Code, x: Element) -> Element:
    """S_FLBIT gives -1 for 0, the largest unsigned number."""
    return code("minu.i32", emit(code, "s_flbit_i32_b32", "uw32", x), i32(32))


def _product(code: Code, x: Element, y: Element) -> Element:
    """By a power of two as a shift, which additions take in (`combine`)."""
    if isinstance(y, Const) and y.bits and y.bits & y.bits - 1 == 0:
        return code("shl.i32", x, i32(y.bits.bit_length() - 1))
    return emit(code, "s_mul_i32", "uw32", x, y)


def _wide_product(code: Code, x: Element, y: Element) -> Element:
    """The product of the low halves, and what the others add to its high half."""
    if isinstance(y, Const) and y.bits and y.bits & y.bits - 1 == 0:
        return code("shl.i64", x, Const("i64", y.bits.bit_length() - 1))
    (xl, xh), (yl, yh) = halves(x), halves(y)
    high = code("mulhu.i32", xl, yl)
    for a, b in ((xl, yh), (xh, yl)):
        if i32(0) not in (a, b):
            high = code("addi.i32", high, code("muli.i32", a, b))
    return joined(code, code("muli.i32", xl, yl), high)


def _extended(signed: bool, bits: int, code: Code, x: Element) -> Slice:
    if signed:
        return emit(code, f"s_sext_i32_i{bits}", "uw32", x)
    return emit(code, "s_and_b32", "uw32", x, i32((1 << bits) - 1))


def _extended_to_pair(code: Code, x: Element) -> Element:
    return joined(code, x, code("shrs.i32", x, i32(31)))
