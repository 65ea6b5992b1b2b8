"""Scalar moves, arithmetic, logic and masks (CDNA3 ISA, sections "SOP1", "SOP2", "SOPK": arithmetic and logic).

All of them run once for the wave. SCC, where an instruction writes it, is the carry, the overflow, which operand was
taken, or whether the result is other than zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw_amd.isa.row import Chapter

CHAPTER = Chapter()
row = CHAPTER.row

Meaning = Callable[..., Any]


def said(doc: str, meaning: Meaning) -> Callable[..., Meaning]:
    """A row's function for a meaning that no modifier changes; it belongs to the meaning's chapter."""

    def build(m):
        return meaning

    build.__doc__, build.__module__ = doc, meaning.__module__
    return build


def nonzero(lanes, value, bits: int):
    """SCC of most instructions: the result is not zero."""
    return lanes.compare(value, lanes.const(0, bits), "ne", False)


def signed16(value: int) -> int:
    """The 16-bit immediate of SOPK as a signed number."""
    return (value & 0xFFFF ^ 0x8000) - 0x8000


# --- moves ------------------------------------------------------------------------------------------------------------

for _bits, _move, _conditional, _select in ((32, 0, 2, 10), (64, 1, 3, 11)):
    row(f"s_mov_b{_bits} d:b{_bits}, a:b{_bits}", sop1=_move, unit="salu", section="SOP1", wave=True)(
        said("d = a.", lambda lanes, a: a)
    )
    row(f"s_cmov_b{_bits} +d:b{_bits}, a:b{_bits}, <scc", sop1=_conditional, unit="salu", section="SOP1", wave=True)(
        said("d = a if SCC.", lambda lanes, a, scc, old: lanes.select(scc, a, old))
    )
    row(f"s_cselect_b{_bits} d:b{_bits}, a:b{_bits}, b:b{_bits}, <scc", sop2=_select, unit="salu", section="SOP2", wave=True)(
        said("d = SCC ? a : b.", lambda lanes, a, b, scc: lanes.select(scc, a, b))
    )


@row("s_movk_i32 d:i32, =simm16", sopk=0, unit="salu", section="SOPK", wave=True)
def s_movk_i32(m):
    """d = the immediate, sign-extended."""
    value = signed16(m.simm16)
    return lambda lanes: lanes.const(value, 32)


@row("s_cmovk_i32 +d:i32, =simm16, <scc", sopk=1, unit="salu", section="SOPK", wave=True)
def s_cmovk_i32(m):
    """d = the immediate, sign-extended, if SCC."""
    value = signed16(m.simm16)
    return lambda lanes, scc, old: lanes.select(scc, lanes.const(value, 32), old)


# --- sums -------------------------------------------------------------------------------------------------------------


def _overflow_of_sum(lanes, a, b, total):
    """Operands of one sign, a sum of the other."""
    wrong = lanes.and_(lanes.xor(a, total), lanes.xor(b, total))
    return lanes.compare(wrong, lanes.const(0, 32), "lt", True)


def _overflow_of_difference(lanes, a, b, difference):
    wrong = lanes.and_(lanes.xor(a, b), lanes.xor(a, difference))
    return lanes.compare(wrong, lanes.const(0, 32), "lt", True)


@row("s_add_u32 d:u32, a:u32, b:u32, >scc", sop2=0, unit="salu", section="SOP2", wave=True)
def s_add_u32(m):
    """d = a + b, SCC = carry."""
    return lambda lanes, a, b: lanes.add_carry(a, b, lanes.const(0, 1))


@row("s_sub_u32 d:u32, a:u32, b:u32, >scc", sop2=1, unit="salu", section="SOP2", wave=True)
def s_sub_u32(m):
    """d = a - b, SCC = borrow."""
    return lambda lanes, a, b: lanes.sub_borrow(a, b, lanes.const(0, 1))


@row("s_addc_u32 d:u32, a:u32, b:u32, <scc, >scc", sop2=4, unit="salu", section="SOP2", wave=True)
def s_addc_u32(m):
    """d = a + b + SCC, SCC = carry."""
    return lambda lanes, a, b, scc: lanes.add_carry(a, b, scc)


@row("s_subb_u32 d:u32, a:u32, b:u32, <scc, >scc", sop2=5, unit="salu", section="SOP2", wave=True)
def s_subb_u32(m):
    """d = a - b - SCC, SCC = borrow."""
    return lambda lanes, a, b, scc: lanes.sub_borrow(a, b, scc)


@row("s_add_i32 d:i32, a:i32, b:i32, >scc", sop2=2, unit="salu", section="SOP2", wave=True)
def s_add_i32(m):
    """d = a + b, SCC = signed overflow."""

    def meaning(lanes, a, b):
        total = lanes.add(a, b)
        return total, _overflow_of_sum(lanes, a, b, total)

    return meaning


@row("s_sub_i32 d:i32, a:i32, b:i32, >scc", sop2=3, unit="salu", section="SOP2", wave=True)
def s_sub_i32(m):
    """d = a - b, SCC = signed overflow."""

    def meaning(lanes, a, b):
        difference = lanes.sub(a, b)
        return difference, _overflow_of_difference(lanes, a, b, difference)

    return meaning


@row("s_addk_i32 +d:i32, =simm16, >scc", sopk=14, unit="salu", section="SOPK", wave=True)
def s_addk_i32(m):
    """d += the immediate, sign-extended; SCC = signed overflow."""
    value = signed16(m.simm16)

    def meaning(lanes, old):
        b = lanes.const(value, 32)
        total = lanes.add(old, b)
        return total, _overflow_of_sum(lanes, old, b, total)

    return meaning


@row("s_abs_i32 d:i32, a:i32, >scc", sop1=48, unit="salu", section="SOP1", wave=True)
def s_abs_i32(m):
    """d = |a|, SCC = d is not 0."""

    def meaning(lanes, a):
        result = lanes.abs(a)
        return result, nonzero(lanes, result, 32)

    return meaning


@row("s_absdiff_i32 d:i32, a:i32, b:i32, >scc", sop2=42, unit="salu", section="SOP2", wave=True)
def s_absdiff_i32(m):
    """d = |a - b| of the wrapped difference, SCC = d is not 0."""

    def meaning(lanes, a, b):
        result = lanes.abs(lanes.sub(a, b))
        return result, nonzero(lanes, result, 32)

    return meaning


def _shifted_sum(shift: int) -> Meaning:
    def meaning(lanes, a, b):
        wide = lanes.shl(lanes.zero_extend(a, 64), lanes.const(shift, 32))
        low, high = lanes.split(lanes.add(wide, lanes.zero_extend(b, 64)), 32)
        return low, nonzero(lanes, high, 32)

    return meaning


for _shift in (1, 2, 3, 4):
    row(f"s_lshl{_shift}_add_u32 d:u32, a:u32, b:u32, >scc", sop2=45 + _shift, unit="salu", section="SOP2", wave=True)(
        said(f"d = (a << {_shift}) + b, SCC = it does not fit in 32 bits.", _shifted_sum(_shift))
    )


# --- products -----------------------------------------------------------------------------------------------------------


@row("s_mul_i32 d:i32, a:i32, b:i32", sop2=36, unit="salu", section="SOP2", wave=True)
def s_mul_i32(m):
    """d = the low half of a * b."""
    return lambda lanes, a, b: lanes.mul(a, b)


@row("s_mulk_i32 +d:i32, =simm16", sopk=15, unit="salu", section="SOPK", wave=True)
def s_mulk_i32(m):
    """d *= the immediate, sign-extended."""
    value = signed16(m.simm16)
    return lambda lanes, old: lanes.mul(old, lanes.const(value, 32))


@row("s_mul_hi_u32 d:u32, a:u32, b:u32", sop2=44, unit="salu", section="SOP2", wave=True)
def s_mul_hi_u32(m):
    """d = the high half of the unsigned product."""
    return lambda lanes, a, b: lanes.mul_high(a, b, False)


@row("s_mul_hi_i32 d:i32, a:i32, b:i32", sop2=45, unit="salu", section="SOP2", wave=True)
def s_mul_hi_i32(m):
    """d = the high half of the signed product."""
    return lambda lanes, a, b: lanes.mul_high(a, b, True)


# --- the smaller, the larger ----------------------------------------------------------------------------------------------


def _choice(comparison: str, signed: bool) -> Meaning:
    def meaning(lanes, a, b):
        first = lanes.compare(a, b, comparison, signed)
        return lanes.select(first, a, b), first

    return meaning


for _name, _opcode, _comparison, _type, _sign in (
    ("min", 6, "lt", "i32", "<"),
    ("min", 7, "lt", "u32", "<"),
    ("max", 8, "ge", "i32", ">="),
    ("max", 9, "ge", "u32", ">="),
):
    row(f"s_{_name}_{_type} d:{_type}, a:{_type}, b:{_type}, >scc", sop2=_opcode, unit="salu", section="SOP2", wave=True)(
        said(f"SCC = a {_sign} b, d = SCC ? a : b.", _choice(_comparison, _type == "i32"))
    )


# --- logic --------------------------------------------------------------------------------------------------------------

# Name of the operation -> (what it is, how it is composed).
LOGIC: dict[str, tuple[str, Meaning]] = {
    "and": ("a & b", lambda lanes, a, b: lanes.and_(a, b)),
    "or": ("a | b", lambda lanes, a, b: lanes.or_(a, b)),
    "xor": ("a ^ b", lambda lanes, a, b: lanes.xor(a, b)),
    "andn1": ("~a & b", lambda lanes, a, b: lanes.and_(lanes.not_(a), b)),
    "andn2": ("a & ~b", lambda lanes, a, b: lanes.and_(a, lanes.not_(b))),
    "orn1": ("~a | b", lambda lanes, a, b: lanes.or_(lanes.not_(a), b)),
    "orn2": ("a | ~b", lambda lanes, a, b: lanes.or_(a, lanes.not_(b))),
    "nand": ("~(a & b)", lambda lanes, a, b: lanes.not_(lanes.and_(a, b))),
    "nor": ("~(a | b)", lambda lanes, a, b: lanes.not_(lanes.or_(a, b))),
    "xnor": ("~(a ^ b)", lambda lanes, a, b: lanes.not_(lanes.xor(a, b))),
}


def _with_scc(operation: Meaning, bits: int) -> Meaning:
    """The result of the operation, and whether it is not zero."""

    def meaning(lanes, *sources):
        result = operation(lanes, *sources)
        return result, nonzero(lanes, result, bits)

    return meaning


for _name, _opcode in (("and", 12), ("or", 14), ("xor", 16), ("andn2", 18), ("orn2", 20), ("nand", 22), ("nor", 24), ("xnor", 26)):
    _words, _operation = LOGIC[_name]
    for _bits in (32, 64):
        row(f"s_{_name}_b{_bits} d:b{_bits}, a:b{_bits}, b:b{_bits}, >scc",
            sop2=_opcode + _bits // 64, unit="salu", section="SOP2", wave=True)(
            said(f"d = {_words}, SCC = d is not 0.", _with_scc(_operation, _bits))
        )

for _bits in (32, 64):
    row(f"s_not_b{_bits} d:b{_bits}, a:b{_bits}, >scc", sop1=4 + _bits // 64, unit="salu", section="SOP1", wave=True)(
        said("d = ~a, SCC = d is not 0.", _with_scc(lambda lanes, a: lanes.not_(a), _bits))
    )


# --- the mask of lanes that are on ------------------------------------------------------------------------------------------


def _save_exec(operation: Meaning) -> Meaning:
    def meaning(lanes, a, exec_):
        result = operation(lanes, a, exec_)
        return exec_, result, nonzero(lanes, result, 64)

    return meaning


def _write_exec(operation: Meaning) -> Meaning:
    def meaning(lanes, a, exec_):
        result = operation(lanes, a, exec_)
        return result, result, nonzero(lanes, result, 64)

    return meaning


for _name, _opcode in (
    ("and", 32), ("or", 33), ("xor", 34), ("andn2", 35), ("orn2", 36), ("nand", 37), ("nor", 38), ("xnor", 39),
    ("andn1", 51), ("orn1", 52),
):
    _words, _operation = LOGIC[_name]
    row(f"s_{_name}_saveexec_b64 d:b64, a:b64, <exec, >exec, >scc", sop1=_opcode, unit="salu", section="SOP1", wave=True)(
        said(f"d = EXEC, EXEC = {_words.replace('b', 'EXEC')}, SCC = EXEC is not 0.", _save_exec(_operation))
    )

for _name, _opcode in (("andn1", 53), ("andn2", 54)):
    _words, _operation = LOGIC[_name]
    row(f"s_{_name}_wrexec_b64 d:b64, a:b64, <exec, >exec, >scc", sop1=_opcode, unit="salu", section="SOP1", wave=True)(
        said(f"EXEC = {_words.replace('b', 'EXEC')}, d = EXEC, SCC = EXEC is not 0.", _write_exec(_operation))
    )


# --- comparison ----------------------------------------------------------------------------------------------------------

_COMPARISONS = (("eq", "=="), ("lg", "!="), ("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))


def _compare(comparison: str, signed: bool) -> Meaning:
    return lambda lanes, a, b: lanes.compare(a, b, comparison, signed)


def _compare_immediate(comparison: str, sign: str, signed: bool) -> Callable[..., Meaning]:
    def build(m):
        value = signed16(m.simm16) if signed else m.simm16 & 0xFFFF
        return lambda lanes, a: lanes.compare(a, lanes.const(value, 32), comparison, signed)

    build.__doc__ = f"SCC = a {sign} the immediate, {'sign' if signed else 'zero'}-extended."
    return build


for _place, _type in ((0, "i32"), (6, "u32")):
    for _index, (_name, _sign) in enumerate(_COMPARISONS):
        _comparison = "ne" if _name == "lg" else _name
        row(f"s_cmp_{_name}_{_type} a:{_type}, b:{_type}, >scc", sopc=_place + _index, unit="salu", section="SOPC", wave=True)(
            said(f"SCC = a {_sign} b.", _compare(_comparison, _type == "i32"))
        )
        row(f"s_cmpk_{_name}_{_type} a:{_type}, =simm16, >scc",
            sopk=2 + _place + _index, unit="salu", section="SOPK", wave=True)(
            _compare_immediate(_comparison, _sign, _type == "i32")
        )

for _name, _opcode, _comparison, _sign in (("eq", 18, "eq", "=="), ("lg", 19, "ne", "!=")):
    row(f"s_cmp_{_name}_u64 a:u64, b:u64, >scc", sopc=_opcode, unit="salu", section="SOPC", wave=True)(
        said(f"SCC = a {_sign} b.", _compare(_comparison, False))
    )
