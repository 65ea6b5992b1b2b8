"""The steps of a correctly rounded division: scale, fused step, fix-up (CDNA3 ISA, "VOP3A", "VOP3B": V_DIV_SCALE, _FMAS, _FIXUP).

A quotient n / d is made by `div_scale` of d and of n, a reciprocal with Newton steps, `div_fmas`, which undoes the scaling, and
`div_fixup`, which sees to special values; LLVM's LowerFDIV32 and LowerFDIV64 (SIISelLowering.cpp) are its users.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.precision import SHAPES, exponent, flush_of, flushed, is_nan, rounding_of, unit_of

CHAPTER = Chapter()
row = CHAPTER.row


@dataclass(frozen=True, slots=True)
class DivisionConstants:
    """Numbers of the manual's pseudocode for one format.

    `scale`: operands are scaled by 2**±scale. `apart`: exponents of n and d so far apart make a quotient near overflow. `tiny`:
    numerators with a biased exponent up to this are scaled. `vanishes`: below this difference the quotient underflows.
    """

    scale: int
    apart: int
    tiny: int
    vanishes: int


LIMITS = {"f32": DivisionConstants(64, 96, 23, -150), "f64": DivisionConstants(128, 768, 53, -1075)}


def _scale(fmt, m):
    """d = a, scaled by a power of two where n / d needs it (a is b, the denominator, or c, the numerator); dc says that `div_fmas`
    must scale back.

    Cases in the manual's order: zero gives NaN; quotients near overflow scale the denominator up; subnormal denominators scale
    both up; subnormal reciprocals scale both down, or, with a subnormal quotient, the denominator alone; a subnormal quotient
    alone scales the numerator up, a tiny numerator both.

    Two cases are not as printed. The manual compares 1/b of f32 with a subnormal of f64, which it never is: it is taken as one of
    f32. And where 1/b and c/b are subnormal, it scales the large denominator up: that overflows, so it is scaled down.
    """
    limits, shape, flush = LIMITS[fmt], SHAPES[fmt], flush_of(m, fmt)

    def meaning(lanes, a, b, c):
        a, b, c = (flushed(lanes, x, fmt, flush) for x in (a, b, c))
        up = lanes.fmul(a, lanes.const(shape.power(limits.scale), shape.bits), fmt)
        down = lanes.fmul(a, lanes.const(shape.power(-limits.scale), shape.bits), fmt)
        is_denominator = lanes.fcompare(a, b, "eq", fmt)
        denominator_up, denominator_down = (lanes.select(is_denominator, x, a) for x in (up, down))
        only_numerator = lanes.select(lanes.fcompare(a, c, "eq", fmt), up, a)
        no, yes = lanes.const(0, 1), lanes.const(1, 1)
        reciprocal, quotient = _subnormal_quotients(lanes, b, c, fmt)
        apart = lanes.sub(exponent(lanes, c, fmt), exponent(lanes, b, fmt))
        zero = lanes.const(0, shape.bits)
        cases = (
            (lanes.or_(lanes.fcompare(c, zero, "eq", fmt), lanes.fcompare(b, zero, "eq", fmt)),
             lanes.const(shape.quiet, shape.bits), no),
            (lanes.compare(apart, lanes.const(limits.apart, 32), "ge", True), denominator_up, yes),
            (lanes.fclass(b, "subnormal", fmt), up, no),
            (lanes.and_(reciprocal, quotient), denominator_down, yes),
            (reciprocal, down, no),
            (quotient, only_numerator, yes),
            (lanes.compare(exponent(lanes, c, fmt), lanes.const(limits.tiny, 32), "le", False), up, no),
        )
        value, scales = a, no
        for condition, result, flag in reversed(cases):
            value, scales = lanes.select(condition, result, value), lanes.select(condition, flag, scales)
        return value, scales

    return meaning


def _subnormal_quotients(lanes, b, c, fmt):
    """Whether 1/b, and c/b, are subnormal."""
    one = lanes.const(SHAPES[fmt].one, SHAPES[fmt].bits)
    return tuple(lanes.fclass(lanes.fdiv(x, b, fmt), "subnormal", fmt) for x in (one, c))


def _fused_step(fmt, m):
    """d = a * b + c where VCC is 0; else that times 2**64 (f64: 2**128) where |c| >= 2, or by its inverse, rounded once.

    The manual writes 2**32 and one direction. That leaves a quotient of scaled operands wrong; the direction by the exponent of c
    and the inverse of `div_scale`'s factor stand in the CLRX documentation ("V_DIV_FMAS_F32") and make LLVM's sequences exact.
    """
    limits, shape = LIMITS[fmt], SHAPES[fmt]
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)

    def meaning(lanes, a, b, c, vcc):
        plain = lanes.ffma(a, b, c, fmt, rounding, flush)
        up = lanes.fmul(plain, lanes.const(shape.power(limits.scale), shape.bits), fmt, rounding, flush)
        down = flushed(lanes, _DOWN[fmt](lanes, a, b, c, plain, rounding), fmt, flush)
        large = lanes.compare(exponent(lanes, c, fmt), lanes.const(shape.bias, 32), "gt", False)
        low, high = lanes.split(vcc, 32)
        return lanes.select(lanes.unballot(low, high), lanes.select(large, up, down), plain)

    return meaning


def _down_f32(lanes, a, b, c, plain, rounding):
    """(a * b + c) * 2**-64 by way of f64: the product is exact there, the sum rounded to odd, so that only the conversion rounds
    (see `core/src/tilefw/sim/floats.py`)."""
    a, b, c = (lanes.fconvert(x, "f32", "f64") for x in (a, b, c))
    product = lanes.fmul(a, b, "f64")
    total = lanes.fadd(product, c, "f64")
    error = _error_of_sum(lanes, product, c, total)
    zero, one = lanes.const(0, 64), lanes.const(1, 64)
    even = lanes.compare(lanes.and_(total, one), zero, "eq", False)
    inexact = lanes.and_(lanes.fcompare(error, zero, "ne", "f64"), even)
    outward = lanes.compare(lanes.xor(error, total), zero, "ge", True)  # of one sign
    moved = lanes.select(outward, lanes.add(total, one), lanes.sub(total, one))
    odd = lanes.select(inexact, moved, total)
    return lanes.fconvert(lanes.fmul(odd, lanes.const(SHAPES["f64"].power(-64), 64), "f64"), "f64", "f32", rounding)


def _error_of_sum(lanes, a, b, total):
    """a + b - total, exactly (Knuth's two-sum)."""
    other = lanes.fsub(total, a, "f64")
    return lanes.fadd(lanes.fsub(a, lanes.fsub(total, other, "f64"), "f64"), lanes.fsub(b, other, "f64"), "f64")


def _down_f64(lanes, a, b, c, plain, rounding):
    """(a * b + c) * 2**-128. Rounding twice in one direction is rounding once; to nearest, a subnormal result is rounded as an
    integer with the sign of the fused product's own error below it."""
    normal = lanes.fmul(plain, lanes.const(SHAPES["f64"].power(-128), 64), "f64", rounding)
    if rounding != "rn":
        return normal
    # Scaled up first, so that neither the product's low part nor the error underflows.
    lift = lanes.const(SHAPES["f64"].power(200), 64)
    a, c = lanes.fmul(a, lift, "f64"), lanes.fmul(c, lift, "f64")
    fused = lanes.ffma(a, b, c, "f64")
    error = _error_of_fused(lanes, a, b, c, fused)
    place = lanes.sub(lanes.const(200 + 128 + 1, 32), exponent(lanes, fused, "f64"))
    subnormal = lanes.compare(place, lanes.const(1, 32), "ge", True)
    return lanes.select(subnormal, _rounded_subnormal(lanes, fused, error, place), normal)


def _error_of_fused(lanes, a, b, c, fused):
    """A number with the sign of a * b + c - fused."""
    product = lanes.fmul(a, b, "f64")
    low = lanes.ffma(a, b, lanes.fneg(product, "f64"), "f64")
    total = lanes.fadd(product, c, "f64")
    rest = lanes.fadd(lanes.fsub(total, fused, "f64"), _error_of_sum(lanes, product, c, total), "f64")
    return lanes.fadd(rest, low, "f64")


def _rounded_subnormal(lanes, value, error, place):
    """The mantissa of `value` shifted right by `place` bits, to nearest even, where `error` decides what looks like a tie."""
    zero, one = lanes.const(0, 64), lanes.const(1, 64)
    sign = lanes.and_(value, lanes.const(1 << 63, 64))
    mantissa = lanes.or_(lanes.and_(value, lanes.const((1 << 52) - 1, 64)), lanes.const(1 << 52, 64))
    outward = lanes.compare(lanes.xor(error, value), zero, "ge", True)
    below = lanes.select(outward, one, lanes.const(-1, 64))
    below = lanes.select(lanes.fcompare(error, zero, "ne", "f64"), below, zero)
    fine = lanes.add(lanes.shl(mantissa, lanes.const(2, 32)), below)
    shift = lanes.add(lanes.min(place, lanes.const(55, 32), False), lanes.const(2, 32))
    whole = lanes.shr(fine, shift, False)
    rest = lanes.sub(fine, lanes.shl(whole, shift))
    half = lanes.shl(one, lanes.sub(shift, lanes.const(1, 32)))
    odd = lanes.truncate(whole, 1)
    up = lanes.or_(lanes.compare(rest, half, "gt", False), lanes.and_(lanes.compare(rest, half, "eq", False), odd))
    return lanes.or_(sign, lanes.add(whole, lanes.zero_extend(up, 64)))


_DOWN = {"f32": _down_f32, "f64": _down_f64}


def _fix_up(fmt, m):
    """d = the quotient c / b, of which a is the value where nothing special happens: NaN, 0/0, infinities, overflow and underflow.

    A quotient that is NaN although neither operand is gives infinity: the steps before overflowed. The manual leaves
    that out; it stands in the CLRX documentation ("V_DIV_FIXUP_F32").
    """
    shape, limits = SHAPES[fmt], LIMITS.get(fmt)
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)

    def meaning(lanes, a, b, c):
        def const(value):
            return lanes.const(value, shape.bits)

        sign = lanes.and_(lanes.xor(b, c), const(shape.sign))
        infinity, zero = lanes.or_(sign, const(shape.infinity)), sign
        b_zero, c_zero = (lanes.fcompare(x, const(0), "eq", fmt, False, flush) for x in (b, c))
        b_infinite, c_infinite = (lanes.fclass(x, "infinite", fmt) for x in (b, c))
        result = lanes.select(is_nan(lanes, a, fmt), infinity, lanes.or_(sign, lanes.fabs(a, fmt)))
        if limits is not None:
            apart = lanes.sub(exponent(lanes, c, fmt), exponent(lanes, b, fmt))
            vanishes = lanes.compare(apart, lanes.const(limits.vanishes, 32), "lt", True)
            result = lanes.select(vanishes, _least(lanes, sign, fmt, rounding, flush), result)
        result = lanes.select(lanes.or_(b_infinite, c_zero), zero, result)
        result = lanes.select(lanes.or_(b_zero, c_infinite), infinity, result)
        undefined = lanes.or_(lanes.and_(b_zero, c_zero), lanes.and_(b_infinite, c_infinite))
        result = lanes.select(undefined, const(shape.sign | shape.quiet), result)
        result = lanes.select(is_nan(lanes, b, fmt), lanes.or_(b, const(shape.quiet)), result)
        return lanes.select(is_nan(lanes, c, fmt), lanes.or_(c, const(shape.quiet)), result)

    return meaning


def _least(lanes, sign, fmt, rounding, flush):
    """A result too small for the format, by rounding mode: a quarter of the least subnormal, rounded."""
    if rounding in ("rn", "rz"):
        return sign
    shape = SHAPES[fmt]
    return lanes.fmul(lanes.or_(sign, lanes.const(1, shape.bits)), lanes.const(shape.power(-2), shape.bits), fmt, rounding, flush)


for _fmt, _fixup, _scales, _fmas in (("f32", 0x1DE, 0x1E0, 0x1E2), ("f64", 0x1DF, 0x1E1, 0x1E3)):
    _sources = f"a:{_fmt}, b:{_fmt}, c:{_fmt}"
    _unit = unit_of(_fmt)
    row(f"v_div_scale_{_fmt} d:{_fmt}, dc:mask, {_sources}", vop3=_scales, unit=_unit, section="VOP3B")(partial(_scale, _fmt))
    row(f"v_div_fmas_{_fmt} d:{_fmt}, {_sources}, <vcc", vop3=_fmas, unit=_unit, section="VOP3A")(partial(_fused_step, _fmt))
    row(f"v_div_fixup_{_fmt} d:{_fmt}, {_sources}", vop3=_fixup, unit=_unit, section="VOP3A")(partial(_fix_up, _fmt))

_sources = "d:f16, a:f16, b:f16, c:f16"
row(f"v_div_fixup_f16 {_sources}", vop3=0x207, unit="valu", section="VOP3A", modifiers="op_sel", facts="keeps half")(
    partial(_fix_up, "f16")
)
row(f"v_div_fixup_legacy_f16 {_sources}", vop3=0x1EF, unit="valu", section="VOP3A")(partial(_fix_up, "f16"))
