"""Packed arithmetic: the same with two halves, or two f32, of a register or a pair (CDNA3 ISA, section "VOP3P").

Each function is the meaning for one element; which element of a source is the lower and which the higher one's is said by
op_sel and op_sel_hi, and neg_lo and neg_hi flip their signs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.rows.mixed import no_signs

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP3P"
MODIFIERS = "op_sel op_sel_hi neg_lo neg_hi clamp"
Meaning = Callable[..., Any]


def _packed(name: str, opcode: int, type_: str, sources: str, doc: str, build: Callable[[Modifiers], Meaning], unit: str = "valu",
            since: int = 0):
    operands = ", ".join(f"{operand}:{type_}" for operand in ["d", *sources])

    def described(m: Modifiers) -> Meaning:
        return build(m)

    described.__doc__ = doc
    row(f"{name} {operands}", vop3p=opcode, unit=unit, section=SECTION, modifiers=MODIFIERS, since=since)(described)


# --- halves as integers; clamp limits to the range of the type ---------------------------------------------------------------


def _sum(signed: bool, subtract: bool) -> Callable[[Modifiers], Meaning]:
    def build(m: Modifiers) -> Meaning:
        if m.clamp:
            return lambda lanes, a, b: (lanes.sub_saturate if subtract else lanes.add_saturate)(a, b, signed)
        return lambda lanes, a, b: (lanes.sub if subtract else lanes.add)(a, b)

    return build


def _multiply_add(signed: bool) -> Callable[[Modifiers], Meaning]:
    def build(m: Modifiers) -> Meaning:
        if not m.clamp:
            return lambda lanes, a, b, c: lanes.add(lanes.mul(a, b), c)
        # No product of halves and addend overflows 32 bits.
        return lambda lanes, a, b, c: _clamped(lanes, lanes.add(lanes.mul_wide(a, b, signed), _wide(lanes, c, signed)), signed)

    return build


def _multiply(m: Modifiers) -> Meaning:
    if not m.clamp:
        return lambda lanes, a, b: lanes.mul(a, b)
    return lambda lanes, a, b: _clamped(lanes, lanes.mul_wide(a, b, False), False)


def _wide(lanes: Any, a: Any, signed: bool) -> Any:
    return lanes.sign_extend(a, 32) if signed else lanes.zero_extend(a, 32)


def _clamped(lanes: Any, a: Any, signed: bool) -> Any:
    """32 bits limited to the range of 16."""
    low, high = (-(1 << 15), (1 << 15) - 1) if signed else (0, (1 << 16) - 1)
    if signed:
        a = lanes.max(a, lanes.const(low, 32), True)
    return lanes.truncate(lanes.min(a, lanes.const(high, 32), signed), 16)


def _shift(direction: str, signed: bool = False) -> Callable[[Modifiers], Meaning]:
    def meaning(lanes, a, b):
        amount = lanes.zero_extend(lanes.and_(a, lanes.const(15, 16)), 32)
        return lanes.shl(b, amount) if direction == "left" else lanes.shr(b, amount, signed)

    return lambda m: meaning


def _extreme(name: str, signed: bool) -> Callable[[Modifiers], Meaning]:
    return lambda m: lambda lanes, a, b: getattr(lanes, name)(a, b, signed)


_packed("v_pk_mad_i16", 0x00, "i16x2", "abc", "d = a * b + c.", _multiply_add(True))
_packed("v_pk_mul_lo_u16", 0x01, "u16x2", "ab", "d = a * b, the low half.", _multiply)
_packed("v_pk_add_i16", 0x02, "i16x2", "ab", "d = a + b.", _sum(True, False))
_packed("v_pk_sub_i16", 0x03, "i16x2", "ab", "d = a - b.", _sum(True, True))
_packed("v_pk_lshlrev_b16", 0x04, "u16x2", "ab", "d = b << (a & 15).", _shift("left"))
_packed("v_pk_lshrrev_b16", 0x05, "u16x2", "ab", "d = b >> (a & 15), zeros from above.", _shift("right"))
_packed("v_pk_ashrrev_i16", 0x06, "i16x2", "ab", "d = b >> (a & 15), the sign from above.", _shift("right", True))
_packed("v_pk_max_i16", 0x07, "i16x2", "ab", "d = the larger.", _extreme("max", True))
_packed("v_pk_min_i16", 0x08, "i16x2", "ab", "d = the smaller.", _extreme("min", True))
_packed("v_pk_mad_u16", 0x09, "u16x2", "abc", "d = a * b + c.", _multiply_add(False))
_packed("v_pk_add_u16", 0x0A, "u16x2", "ab", "d = a + b.", _sum(False, False))
_packed("v_pk_sub_u16", 0x0B, "u16x2", "ab", "d = a - b.", _sum(False, True))
_packed("v_pk_max_u16", 0x0C, "u16x2", "ab", "d = the larger.", _extreme("max", False))
_packed("v_pk_min_u16", 0x0D, "u16x2", "ab", "d = the smaller.", _extreme("min", False))


# --- halves and f32 as floats ---------------------------------------------------------------------------------------------------


def _float(primitive: str, fmt: str) -> Callable[[Modifiers], Meaning]:
    """A primitive rounded once, under the mode of its format."""

    def build(m: Modifiers) -> Meaning:
        rounding, flush = (m.mode.round32, m.mode.flush32) if fmt == "f32" else (m.mode.round64, m.mode.flush64)
        return lambda lanes, *sources: getattr(lanes, primitive)(*sources, fmt, rounding, flush)

    return build


def _float_extreme(primitive: str) -> Callable[[Modifiers], Meaning]:
    def build(m: Modifiers) -> Meaning:
        flush = m.mode.flush64
        return lambda lanes, a, b: getattr(lanes, primitive)(a, b, "f16", ftz=flush)

    return build


def _propagating(primitive: str) -> Callable[[Modifiers], Meaning]:
    def build(m: Modifiers) -> Meaning:
        extreme, flush = primitive, m.mode.flush64

        def meaning(lanes, a, b, c):
            first = getattr(lanes, extreme)(a, b, "f16", True, flush)
            return getattr(lanes, extreme)(first, c, "f16", True, flush)

        return meaning

    return build


_packed("v_pk_minimum3_f16", 0x1B, "f16x2", "abc", "d = the smallest; NaN where one is NaN.", _propagating("fmin"), since=4)
_packed("v_pk_maximum3_f16", 0x1C, "f16x2", "abc", "d = the largest; NaN where one is NaN.", _propagating("fmax"), since=4)
_packed("v_pk_fma_f16", 0x0E, "f16x2", "abc", "d = a * b + c, rounded once.", _float("ffma", "f16"))
_packed("v_pk_add_f16", 0x0F, "f16x2", "ab", "d = a + b, rounded once.", _float("fadd", "f16"))
_packed("v_pk_mul_f16", 0x10, "f16x2", "ab", "d = a * b, rounded once.", _float("fmul", "f16"))
_packed("v_pk_min_f16", 0x11, "f16x2", "ab", "d = the smaller; a number wins over NaN.", _float_extreme("fmin"))
_packed("v_pk_max_f16", 0x12, "f16x2", "ab", "d = the larger; a number wins over NaN.", _float_extreme("fmax"))
_packed("v_pk_fma_f32", 0x30, "f32x2", "abc", "d = a * b + c, rounded once.", _float("ffma", "f32"), "valu64")
_packed("v_pk_mul_f32", 0x31, "f32x2", "ab", "d = a * b, rounded once.", _float("fmul", "f32"), "valu64")
_packed("v_pk_add_f32", 0x32, "f32x2", "ab", "d = a + b, rounded once.", _float("fadd", "f32"), "valu64")


@row("v_pk_fmac_f16 +d:f16x2, a:f16x2, b:f16x2", vop2=0x3C, unit="valu", section="VOP2")
def v_pk_fmac_f16(m):
    """d = a * b + d, rounded once."""
    no_signs(m, "v_pk_fmac_f16")
    fused = _float("ffma", "f16")(m)
    return lambda lanes, a, b, old: fused(lanes, a, b, old)


@row("v_pk_mov_b32 d:b64, a:b32x2, b:b32x2", vop3p=0x33, unit="valu", section=SECTION, modifiers=MODIFIERS)
def v_pk_mov_b32(m):
    """d = the word of a that op_sel[0] names, and above it the word of b that op_sel[1] names."""
    first, second = (m.op_sel or (0, 0))[:2]

    def meaning(lanes, a, b):
        return lanes.join((lanes.split(a, 32)[first], lanes.split(b, 32)[second]))

    return meaning
