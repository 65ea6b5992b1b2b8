"""Sums of products of narrow elements in 32 bits, and fused multiply-adds of f16 and f32 mixed (CDNA3 ISA, section "VOP3P").

Modifiers mean here what they mean nowhere else, so that each row reads them itself: in mixed rows op_sel_hi says that a source is
f16, op_sel which half of the register it is, and the bits of neg_lo and neg_hi are written -a and |a|. The fact `mixed`: an inline
constant is one of f16 or f32, as op_sel_hi says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilefw_amd.isa.meaning.operand_modifiers import result
from tilefw_amd.isa.row import Chapter, Modifiers
from tilefw_amd.isa.types import TYPES

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP3P"
MIXED = "neg abs op_sel op_sel_hi clamp"
Meaning = Callable[..., Any]

# --- fused multiply-add, each source f16 or f32 -----------------------------------------------------------------------------


def _mixed_source(m: Modifiers, index: int) -> Callable[[Any, Any], Any]:
    """A source of 32 bits as f32."""
    half, high, negated, absolute = (
        (modifier or (0, 0, 0))[index] for modifier in (m.op_sel_hi, m.op_sel, m.neg, m.abs)
    )
    fmt, flush = ("f16", m.mode.flush64) if half else ("f32", m.mode.flush32)

    def value(lanes: Any, a: Any) -> Any:
        if half:
            a = lanes.split(a, 16)[high]
        if absolute:
            a = lanes.fabs(a, fmt)
        if negated:
            a = lanes.fneg(a, fmt)
        if half and flush:
            a = lanes.fmul(a, lanes.const(0x3C00, 16), "f16", "rn", True)
        return lanes.fconvert(a, "f16", "f32") if half else a

    return value


def _fused(m: Modifiers) -> Meaning:
    values = [_mixed_source(m, index) for index in range(3)]
    rounding, flush = m.mode.round32, m.mode.flush32

    def meaning(lanes, *sources):
        return lanes.ffma(*(value(lanes, s) for value, s in zip(values, sources, strict=True)), "f32", rounding, flush)

    return meaning


def _fused_half(m: Modifiers) -> Meaning:
    """Rounded to f32, then to f16, as v_cvt_f16_f32 does."""
    fused, rounding, flush = _fused(m), m.mode.round64, m.mode.flush64

    def meaning(lanes, *sources):
        half = lanes.fconvert(fused(lanes, *sources), "f32", "f16", rounding)
        return lanes.fmul(half, lanes.const(0x3C00, 16), "f16", "rn", True) if flush else half

    return meaning


@row(
    "v_fma_mix_f32 d:f32, a:b32~f16x2, b:b32~f16x2, c:b32~f16x2", vop3p=0x20, unit="valu", section=SECTION, modifiers=MIXED,
    facts="mixed",
)
def v_fma_mix_f32(m):
    """d = a * b + c, rounded once; a source is f32, or a half of f16."""
    return _fused(m)


@row(
    "v_fma_mixlo_f16 d:f16, a:b32~f16x2, b:b32~f16x2, c:b32~f16x2", vop3p=0x21, unit="valu", section=SECTION, modifiers=MIXED,
    facts="keeps half, mixed",
)
def v_fma_mixlo_f16(m):
    """Low half of d = a * b + c in f32, converted to f16."""
    return _fused_half(m)


@row(
    "v_fma_mixhi_f16 +d:b32, a:b32~f16x2, b:b32~f16x2, c:b32~f16x2", vop3p=0x22, unit="valu", section=SECTION, modifiers=MIXED,
    facts="mixed",
)
def v_fma_mixhi_f16(m):
    """High half of d = a * b + c in f32, converted to f16."""
    fused = _fused_half(m)
    finish = result(TYPES["f16"], m.clamp, 0, m.mode)

    def meaning(lanes, a, b, c, old):
        half = fused(lanes, a, b, c)
        return lanes.join((lanes.split(old, 16)[0], finish(lanes, half) if finish else half))

    return meaning


def no_signs(m: Modifiers, name: str) -> None:
    """VOP3 and DPP have one bit for the sign of a source, and assemblers take it for packed ones; no manual says which element
    it means."""
    if any(m.neg or ()) or any(m.abs or ()):
        raise ValueError(f"{name} of packed sources has no neg and no abs: their effect on the chip is not documented")


# --- dot products -----------------------------------------------------------------------------------------------------------------


def _halves(m: Modifiers, index: int) -> tuple[int, int]:
    """Which halves of source `index` are its first and second element."""
    return (m.op_sel or (0, 0, 0))[index], (m.op_sel_hi or (1, 1, 1))[index]


def _dot_halves(m: Modifiers) -> Meaning:
    """The products are exact in f32; two sums, each rounded to nearest, subnormals flushed whatever the mode says (LLVM,
    SIISelLowering.cpp, performFMACombine: "fdot2_f32_f16 always flushes")."""
    chosen = [_halves(m, index) for index in range(2)]
    flips = [((m.neg_lo or (0, 0, 0))[index], (m.neg_hi or (0, 0, 0))[index]) for index in range(2)]
    negated = (m.neg_lo or (0, 0, 0))[2]

    def element(lanes, a, index, place):
        half = lanes.split(a, 16)[chosen[index][place]]
        return lanes.fconvert(lanes.fneg(half, "f16") if flips[index][place] else half, "f16", "f32")

    def meaning(lanes, a, b, c):
        total = lanes.fneg(c, "f32") if negated else c
        for place in range(2):
            product = lanes.fmul(element(lanes, a, 0, place), element(lanes, b, 1, place), "f32")
            total = lanes.fadd(total, product, "f32", "rn", True)
        return total

    return meaning


def _dot_integers(bits: int, signed: bool) -> Callable[[Modifiers], Meaning]:
    """Elements of `bits` bits; clamp limits the exact sum to 32 bits."""

    def build(m: Modifiers) -> Meaning:
        wide = 64 if m.clamp else 32
        chosen = [_halves(m, index) if bits == 16 else range(32 // bits) for index in range(2)]

        def meaning(lanes, a, b, c):
            total = _extended(lanes, c, wide, signed)
            for x, y in zip(*chosen, strict=True):
                product = lanes.mul(_element(lanes, a, x, bits, signed), _element(lanes, b, y, bits, signed))
                total = lanes.add(total, _extended(lanes, product, wide, signed))
            return _limited(lanes, total, signed) if m.clamp else total

        return meaning

    return build


def _element(lanes: Any, a: Any, index: int, bits: int, signed: bool) -> Any:
    """Element `index` as 32 bits."""
    above = 32 - bits - bits * index
    moved = lanes.shl(a, lanes.const(above, 32)) if above else a
    return lanes.shr(moved, lanes.const(32 - bits, 32), signed)


def _extended(lanes: Any, a: Any, bits: int, signed: bool) -> Any:
    if bits == 32:
        return a
    return lanes.sign_extend(a, bits) if signed else lanes.zero_extend(a, bits)


def _limited(lanes: Any, total: Any, signed: bool) -> Any:
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    if signed:
        total = lanes.max(total, lanes.const(low, 64), True)
    return lanes.truncate(lanes.min(total, lanes.const(high, 64), signed), 32)


_HALF_MODIFIERS = "op_sel op_sel_hi neg_lo neg_hi clamp"
_MODIFIERS = "neg_lo neg_hi clamp"


def _named(build: Callable[[Modifiers], Meaning], doc: str) -> Callable[[Modifiers], Meaning]:
    def described(m: Modifiers) -> Meaning:
        return build(m)

    described.__doc__ = doc
    return described


row(
    "v_dot2_f32_f16 d:f32, a:b32~f16x2, b:b32~f16x2, c:b32", vop3p=0x23, unit="valu", section=SECTION, modifiers=_HALF_MODIFIERS,
    facts="dot",
)(
    _named(_dot_halves, "d = c + a[0] * b[0] + a[1] * b[1], in this order; a and b have two f16.")
)
for _name, _opcode, _bits, _signed in (
    ("v_dot2_i32_i16", 0x26, 16, True), ("v_dot2_u32_u16", 0x27, 16, False), ("v_dot4_i32_i8", 0x28, 8, True),
    ("v_dot4_u32_u8", 0x29, 8, False), ("v_dot8_i32_i4", 0x2A, 4, True), ("v_dot8_u32_u4", 0x2B, 4, False),
):
    _word = "i32" if _signed else "u32"
    row(
        f"{_name} d:{_word}, a:b32, b:b32, c:{_word}", vop3p=_opcode, unit="valu", section=SECTION, facts="dot",
        modifiers=_HALF_MODIFIERS if _bits == 16 else _MODIFIERS,
    )(_named(_dot_integers(_bits, _signed), f"d = c + the {32 // _bits} products of the elements of a and b."))  # fmt: skip

for _name, _opcode, _bits in (("v_dot2c_i32_i16", 0x38, 16), ("v_dot4c_i32_i8", 0x39, 8), ("v_dot8c_i32_i4", 0x3A, 4)):
    row(
        f"{_name} +d:i32, a:b32, b:b32", vop2=_opcode, unit="valu", section="VOP2", facts="dot", without="sdwa", modifiers="clamp"
    )(_named(_dot_integers(_bits, True), f"d += the {32 // _bits} products of the elements of a and b."))


def _products_of_bf16(m: Modifiers) -> Meaning:
    """The two products, exact in f32."""
    flips = [((m.neg_lo or (0, 0, 0))[index], (m.neg_hi or (0, 0, 0))[index]) for index in range(2)]

    def element(lanes, a, index, place):
        half = lanes.split(a, 16)[place]
        return lanes.fconvert(lanes.fneg(half, "bf16") if flips[index][place] else half, "bf16", "f32")

    def products(lanes, a, b):
        return [lanes.fmul(element(lanes, a, 0, place), element(lanes, b, 1, place), "f32") for place in range(2)]

    return products


def _added(lanes: Any, *values: Any) -> Any:
    """The sum from the left, each step rounded to nearest, subnormals flushed as in sums of f16 products."""
    total, *others = values
    for value in others:
        total = lanes.fadd(total, value, "f32", "rn", True)
    return total


@row("v_dot2_f32_bf16 d:f32, a:b32~bf16x2, b:b32~bf16x2, c:f32", vop3p=0x1A, unit="valu", section=SECTION,
     modifiers=_MODIFIERS, facts="dot", since=4)
def v_dot2_f32_bf16(m):
    """d = (a[0] * b[0] + a[1] * b[1]) + c; a and b have two bf16."""
    products, negated = _products_of_bf16(m), (m.neg_lo or (0, 0, 0))[2]
    return lambda lanes, a, b, c: _added(lanes, *products(lanes, a, b), lanes.fneg(c, "f32") if negated else c)


@row("v_dot2c_f32_bf16 +d:f32, a:bf16x2, b:bf16x2", vop2=0x16, unit="valu", section="VOP2", facts="dot", without="sdwa", since=4)
def v_dot2c_f32_bf16(m):
    """d += a[0] * b[0] + a[1] * b[1], in this order; a and b have two bf16."""
    no_signs(m, "v_dot2c_f32_bf16")
    products = _products_of_bf16(m)
    return lambda lanes, a, b, old: _added(lanes, old, *products(lanes, a, b))


@row("v_dot2c_f32_f16 +d:f32, a:f16x2, b:f16x2", vop2=0x37, unit="valu", section="VOP2", facts="dot", without="sdwa")
def v_dot2c_f32_f16(m):
    """d += a[0] * b[0] + a[1] * b[1], in this order; a and b have two f16."""
    no_signs(m, "v_dot2c_f32_f16")
    return _dot_halves(m)
