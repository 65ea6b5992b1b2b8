"""Float sums, products, fused products, minima and maxima (CDNA3 ISA, "VOP2 instructions", "VOP3A instructions")."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilefw_amd.isa.row import Chapter, Opcodes
from tilefw_amd.isa.rows.precision import SHAPES, flush_of, is_nan, is_signaling, rounding_of, unit_of

CHAPTER = Chapter()
row = CHAPTER.row

# --- sums and products ------------------------------------------------------------------------------------------------


def _sum(fmt, m):
    """d = a + b, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, b: lanes.fadd(a, b, fmt, rounding, flush)


def _difference(fmt, m):
    """d = a - b, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, b: lanes.fsub(a, b, fmt, rounding, flush)


def _reversed_difference(fmt, m):
    """d = b - a, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, b: lanes.fsub(b, a, fmt, rounding, flush)


def _product(fmt, m):
    """d = a * b, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, b: lanes.fmul(a, b, fmt, rounding, flush)


@row("v_mul_legacy_f32 d:f32, a:f32, b:f32", vop3=0x2A1, unit="valu", section="VOP3A")
def v_mul_legacy_f32(m):
    """d = a * b, where 0 times anything is +0 (the rule of DX9)."""
    rounding, flush = rounding_of(m, "f32"), flush_of(m, "f32")

    def meaning(lanes, a, b):
        zero = lanes.const(0, 32)
        vanishes = lanes.or_(lanes.fcompare(a, zero, "eq", "f32", False, flush), lanes.fcompare(b, zero, "eq", "f32", False, flush))
        return lanes.select(vanishes, zero, lanes.fmul(a, b, "f32", rounding, flush))

    return meaning


# --- products with a sum ----------------------------------------------------------------------------------------------


def _fused(fmt, m):
    """d = a * b + c, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, b, c: lanes.ffma(a, b, c, fmt, rounding, flush)


def _fused_with_middle(fmt, m):
    """d = a * k + b, rounded once; k is a literal, and stands in the middle."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    return lambda lanes, a, k, b: lanes.ffma(a, k, b, fmt, rounding, flush)


def _two_roundings(lanes, a, b, c, rounding):
    """The product is rounded before the sum, and subnormals are flushed whatever MODE says: LLVM's `isFMADLegal`
    (SIISelLowering.cpp) makes such instructions only where they are flushed anyway."""
    return lanes.fadd(lanes.fmul(a, b, "f16", rounding, True), c, "f16", rounding, True)


def _unfused(m):
    """d = a * b + c, the product rounded before the sum, subnormals flushed."""
    rounding = rounding_of(m, "f16")
    return lambda lanes, a, b, c: _two_roundings(lanes, a, b, c, rounding)


def _unfused_with_middle(m):
    """d = a * k + b, the product rounded before the sum, subnormals flushed; k is a literal."""
    rounding = rounding_of(m, "f16")
    return lambda lanes, a, k, b: _two_roundings(lanes, a, k, b, rounding)


# --- minima and maxima ------------------------------------------------------------------------------------------------


def _extreme(which, fmt, m):
    """The function (lanes, a, b) of v_min and v_max: the number wins over a NaN, -0 is below +0, and under MODE.IEEE a signaling
    NaN gives a quiet one."""
    flush = flush_of(m, fmt)
    shape = SHAPES[fmt]

    def plain(lanes, a, b):
        return getattr(lanes, which)(a, b, fmt, False, flush)

    def ieee(lanes, a, b):
        noisy = lanes.or_(is_signaling(lanes, a, fmt), is_signaling(lanes, b, fmt))
        return lanes.select(noisy, lanes.const(shape.quiet, shape.bits), plain(lanes, a, b))

    return ieee if m.mode.ieee else plain


def _minimum(fmt, m):
    """The smaller; a number rather than a NaN, but with MODE.IEEE a quiet NaN where one is signaling."""
    return _extreme("fmin", fmt, m)


def _maximum(fmt, m):
    """The larger; a number rather than a NaN, but with MODE.IEEE a quiet NaN where one is signaling."""
    return _extreme("fmax", fmt, m)


def _three(which, fmt, m):
    extreme = _extreme(which, fmt, m)
    return lambda lanes, a, b, c: extreme(lanes, extreme(lanes, a, b), c)


def _minimum3(fmt, m):
    """min(min(a, b), c)."""
    return _three("fmin", fmt, m)


def _maximum3(fmt, m):
    """max(max(a, b), c)."""
    return _three("fmax", fmt, m)


def _propagating(which, fmt, m):
    flush = flush_of(m, fmt)
    extreme = lambda lanes, a, b: getattr(lanes, which)(a, b, fmt, True, flush)  # noqa: E731
    return lambda lanes, a, b, c: extreme(lanes, extreme(lanes, a, b), c)


def _propagating_minimum3(fmt, m):
    """The smallest of three; NaN where one is NaN."""
    return _propagating("fmin", fmt, m)


def _propagating_maximum3(fmt, m):
    """The largest of three; NaN where one is NaN."""
    return _propagating("fmax", fmt, m)


def _median3(fmt, m):
    """What remains when the largest is taken away: the larger of the others. With a NaN: min3."""
    larger, smallest, largest = _extreme("fmax", fmt, m), _three("fmin", fmt, m), _three("fmax", fmt, m)

    def meaning(lanes, a, b, c):
        top = largest(lanes, a, b, c)
        without = lanes.select(
            lanes.fcompare(top, a, "eq", fmt), larger(lanes, b, c),
            lanes.select(lanes.fcompare(top, b, "eq", fmt), larger(lanes, a, c), larger(lanes, a, b)),
        )
        nan = lanes.or_(lanes.or_(is_nan(lanes, a, fmt), is_nan(lanes, b, fmt)), is_nan(lanes, c, fmt))
        return lanes.select(nan, smallest(lanes, a, b, c), without)

    return meaning


# --- the rows ---------------------------------------------------------------------------------------------------------

# Name, meaning, opcodes: VOP2 of f32 and f16, VOP3 of f64 (which has no difference: it negates b).
_BINARY: tuple[tuple[str, Callable[..., Any], dict[str, Opcodes]], ...] = (
    ("add", _sum, {"f32": {"vop2": 1}, "f16": {"vop2": 31}, "f64": {"vop3": 0x280}}),
    ("sub", _difference, {"f32": {"vop2": 2}, "f16": {"vop2": 32}}),
    ("subrev", _reversed_difference, {"f32": {"vop2": 3}, "f16": {"vop2": 33}}),
    ("mul", _product, {"f32": {"vop2": 5}, "f16": {"vop2": 34}, "f64": {"vop3": 0x281}}),
    ("min", _minimum, {"f32": {"vop2": 10}, "f16": {"vop2": 46}, "f64": {"vop3": 0x282}}),
    ("max", _maximum, {"f32": {"vop2": 11}, "f16": {"vop2": 45}, "f64": {"vop3": 0x283}}),
)
for _name, _build, _formats in _BINARY:
    for _fmt, _opcodes in _formats.items():
        row(f"v_{_name}_{_fmt} d:{_fmt}, a:{_fmt}, b:{_fmt}", unit=unit_of(_fmt), section="VOP2" if "vop2" in _opcodes else "VOP3A",
            **_opcodes)(partial(_build, _fmt))

_TERNARY = (("min3", _minimum3, 0x1D0, 0x1F4), ("max3", _maximum3, 0x1D3, 0x1F7), ("med3", _median3, 0x1D6, 0x1FA))
for _name, _build, _f32, _f16 in _TERNARY:
    row(f"v_{_name}_f32 d:f32, a:f32, b:f32, c:f32", vop3=_f32, unit="valu", section="VOP3A")(partial(_build, "f32"))
    row(f"v_{_name}_f16 d:f16, a:f16, b:f16, c:f16", vop3=_f16, unit="valu", section="VOP3A", modifiers="op_sel",
        facts="keeps half")(partial(_build, "f16"))

for _name, _build, _opcode in (("minimum3", _propagating_minimum3, 0x2A8), ("maximum3", _propagating_maximum3, 0x2A9)):
    row(f"v_{_name}_f32 d:f32, a:f32, b:f32, c:f32", vop3=_opcode, since=4, unit="valu", section="VOP3A")(partial(_build, "f32"))

for _name, _opcode, _facts in (("v_fma_f16", 0x206, "keeps half"), ("v_fma_legacy_f16", 0x1EE, "")):
    row(f"{_name} d:f16, a:f16, b:f16, c:f16", vop3=_opcode, unit="valu", section="VOP3A", facts=_facts,
        modifiers="op_sel" if _facts else "")(partial(_fused, "f16"))
for _name, _opcode, _facts in (("v_mad_f16", 0x203, "keeps half"), ("v_mad_legacy_f16", 0x1EA, "")):
    row(f"{_name} d:f16, a:f16, b:f16, c:f16", vop3=_opcode, unit="valu", section="VOP3A", facts=_facts,
        modifiers="op_sel" if _facts else "")(_unfused)
for _fmt, _fma, _fmac in (("f32", 0x1CB, 59), ("f64", 0x1CC, 4)):
    _build, _unit = partial(_fused, _fmt), unit_of(_fmt)
    row(f"v_fma_{_fmt} d:{_fmt}, a:{_fmt}, b:{_fmt}, c:{_fmt}", vop3=_fma, unit=_unit, section="VOP3A")(_build)
    row(f"v_fmac_{_fmt} +d:{_fmt}, a:{_fmt}, b:{_fmt}", vop2=_fmac, unit=_unit, section="VOP2", without="sdwa")(_build)

_LITERAL = "vop3 sdwa dpp"
row("v_fmamk_f32 d:f32, a:f32, k:f32=l, b:f32=v", vop2=23, unit="valu", section="VOP2", without=_LITERAL)(
    partial(_fused_with_middle, "f32")
)
row("v_fmaak_f32 d:f32, a:f32, b:f32=v, k:f32=l", vop2=24, unit="valu", section="VOP2", without=_LITERAL)(partial(_fused, "f32"))
row("v_madmk_f16 d:f16, a:f16, k:f16=l, b:f16=v", vop2=36, unit="valu", section="VOP2", without=_LITERAL)(_unfused_with_middle)
row("v_madak_f16 d:f16, a:f16, b:f16=v, k:f16=l", vop2=37, unit="valu", section="VOP2", without=_LITERAL)(_unfused)
row("v_mac_f16 +d:f16, a:f16, b:f16", vop2=35, unit="valu", section="VOP2", without="sdwa")(_unfused)
