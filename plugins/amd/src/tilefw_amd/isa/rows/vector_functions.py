"""Reciprocals, roots, exponentials, logarithms, sines; rounding to integers; exponents and mantissas (CDNA3 ISA, "VOP1").

The first are approximate on hardware, within about 1 ulp in f32 and f16 and far less precise in f64; ours are within 1 ulp.
In f32 they do not know subnormals, whatever MODE says: LLVM, SIISelLowering.cpp, at `lowerFastUnsafeFDIV` ("v_rcp_f32 and v_rsq_f32
do not support denormals"), `lowerFSQRTF32` ("Instruction is 2ulp but ignores denormals") and AMDGPUISelLowering.cpp at `lowerFEXP2`
and `LowerFLOG2` ("does not handle denormals").
"""

from __future__ import annotations

import math
from functools import partial

from tilefw.api.floats import float_bits
from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.precision import SHAPES, exponent, flush_of, flushed, is_nan, rounding_of, scaled, unit_of

CHAPTER = Chapter()
row = CHAPTER.row

SECTION = "VOP1"


def _flushes(m, fmt):
    return True if fmt == "f32" else flush_of(m, fmt)


def _approximate(function, fmt, m):
    """The function, within 1 ulp; infinities and NaN as IEEE 754 has them."""
    flush = _flushes(m, fmt)
    return lambda lanes, a: lanes.fapprox(a, function, fmt, flush)


_FUNCTIONS = (
    ("rcp", "rcp", {"f32": 34, "f64": 37, "f16": 61}), ("rcp_iflag", "rcp", {"f32": 35}),
    ("rsq", "rsqrt", {"f32": 36, "f64": 38, "f16": 63}), ("sqrt", "sqrt", {"f32": 39, "f64": 40, "f16": 62}),
    ("exp", "exp2", {"f32": 32, "f16": 65}), ("log", "log2", {"f32": 33, "f16": 64}),
    ("exp_legacy", "exp2", {"f32": 75}), ("log_legacy", "log2", {"f32": 76}),
)
for _name, _function, _opcodes in _FUNCTIONS:
    for _fmt, _opcode in _opcodes.items():
        row(f"v_{_name}_{_fmt} d:{_fmt}, a:{_fmt}", vop1=_opcode, unit="trans", section=SECTION, facts="trans",
            without="sdwa" if _fmt == "f64" else "")(partial(_approximate, _function, _fmt))


# --- sine and cosine of revolutions -----------------------------------------------------------------------------------

_TURN = float_bits(2 * math.pi, "f64")
_QUARTER, _HALF = SHAPES["f64"].power(-2), SHAPES["f64"].power(-1)
# Beyond so many revolutions the instructions give what they give for 0 (Vega ISA, V_SIN_F32, V_COS_F32: "valid input domain").
_DOMAIN = SHAPES["f64"].power(8)


def _revolutions(lanes, a, fmt, flush):
    """(|a| in f64, its distance from the nearest integer, with sign); both exact."""
    size = lanes.fabs(lanes.fconvert(flushed(lanes, a, fmt, flush), fmt, "f64"), "f64")
    return size, lanes.fsub(size, lanes.fround(size, "f64", "rn"), "f64")


def _sine_of_quarter(lanes, turns, fmt):
    """The sine of at most a quarter revolution to either side."""
    angle = lanes.fmul(turns, lanes.const(_TURN, 64), "f64")
    return lanes.fconvert(lanes.fapprox(angle, "sin", "f64"), "f64", fmt)


def _outside(lanes, size):
    return lanes.and_(lanes.fcompare(size, lanes.const(_DOMAIN, 64), "gt", "f64"), lanes.fclass(size, "finite", "f64"))


def _sine(fmt, m):
    """sin(2 pi a); 0 for |a| > 256, NaN for infinities."""
    flush, shape = _flushes(m, fmt), SHAPES[fmt]

    def meaning(lanes, a):
        size, rest = _revolutions(lanes, a, fmt, flush)
        # sin(2 pi x) = sin(2 pi (1/2 - x)): what lies beyond a quarter is folded back.
        beyond = lanes.fcompare(lanes.fabs(rest, "f64"), lanes.const(_QUARTER, 64), "gt", "f64")
        half = lanes.or_(lanes.const(_HALF, 64), lanes.and_(rest, lanes.const(1 << 63, 64)))
        folded = lanes.select(beyond, lanes.fsub(half, rest, "f64"), rest)
        result = lanes.xor(_sine_of_quarter(lanes, folded, fmt), lanes.and_(a, lanes.const(shape.sign, shape.bits)))
        return flushed(lanes, lanes.select(_outside(lanes, size), lanes.const(0, shape.bits), result), fmt, flush)

    return meaning


def _cosine(fmt, m):
    """cos(2 pi a); 1 for |a| > 256, NaN for infinities."""
    flush, shape = _flushes(m, fmt), SHAPES[fmt]

    def meaning(lanes, a):
        size, rest = _revolutions(lanes, a, fmt, flush)
        # cos(2 pi x) = sin(2 pi (1/4 - |x|)), where |x| is at most 1/2.
        turned = lanes.fsub(lanes.const(_QUARTER, 64), lanes.fabs(rest, "f64"), "f64")
        result = _sine_of_quarter(lanes, turned, fmt)
        return lanes.select(_outside(lanes, size), lanes.const(shape.one, shape.bits), result)

    return meaning


for _name, _build, _f32, _f16 in (("sin", _sine, 41, 73), ("cos", _cosine, 42, 74)):
    for _fmt, _opcode in (("f32", _f32), ("f16", _f16)):
        row(f"v_{_name}_{_fmt} d:{_fmt}, a:{_fmt}", vop1=_opcode, unit="trans", section=SECTION, facts="trans")(
            partial(_build, _fmt)
        )


# --- integral values and fractions ------------------------------------------------------------------------------------


def _integral(direction, fmt, m):
    """The nearest integral value in the direction: toward zero, up, down, or to nearest with ties to even."""
    flush = flush_of(m, fmt)
    return lambda lanes, a: lanes.fround(a, fmt, direction, flush)


def _fraction(fmt, m):
    """a - floor(a), below 1: LLVM's AMDGPUCodeGenPrepare.cpp (`matchFractPat`) takes the instruction for a minimum with the largest
    number below 1, which the rounding of a small negative a would exceed."""
    rounding, flush, shape = rounding_of(m, fmt), flush_of(m, fmt), SHAPES[fmt]

    def meaning(lanes, a):
        rest = lanes.fsub(a, lanes.fround(a, fmt, "rm", flush), fmt, rounding, flush)
        return lanes.fmin(rest, lanes.const(shape.one - 1, shape.bits), fmt, True)

    return meaning


_INTEGRAL = (("trunc", "rz", 28, 23, 70), ("ceil", "rp", 29, 24, 69), ("rndne", "rn", 30, 25, 71), ("floor", "rm", 31, 26, 68))
for _name, _direction, *_opcodes in _INTEGRAL:
    for _fmt, _opcode in zip(("f32", "f64", "f16"), _opcodes, strict=True):
        row(f"v_{_name}_{_fmt} d:{_fmt}, a:{_fmt}", vop1=_opcode, unit=unit_of(_fmt), section=SECTION,
            without="sdwa" if _fmt == "f64" else "")(partial(_integral, _direction, _fmt))
for _fmt, _opcode in (("f32", 27), ("f64", 50), ("f16", 72)):
    row(f"v_fract_{_fmt} d:{_fmt}, a:{_fmt}", vop1=_opcode, unit=unit_of(_fmt), section=SECTION,
        without="sdwa" if _fmt == "f64" else "")(partial(_fraction, _fmt))


# --- exponent and mantissa --------------------------------------------------------------------------------------------


def _normalised(lanes, a, fmt):
    """(a, or a subnormal scaled up to be normal; whether it was scaled); the scale is 2**(mantissa bits + 1)."""
    shape = SHAPES[fmt]
    subnormal = lanes.fclass(a, "subnormal", fmt)
    up = lanes.fmul(a, lanes.const(shape.power(shape.mantissa + 1), shape.bits), fmt)
    return lanes.select(subnormal, up, a), subnormal


def _has_exponent(lanes, a, fmt):
    """Neither zero nor infinite nor NaN."""
    return lanes.or_(lanes.fclass(a, "normal", fmt), lanes.fclass(a, "subnormal", fmt))


def _frexp_exponent(fmt, m):
    """The e of a = f * 2**e with 1/2 <= |f| < 1; 0 for zero, infinities and NaN."""
    flush, shape = flush_of(m, fmt), SHAPES[fmt]

    def meaning(lanes, a):
        a = flushed(lanes, a, fmt, flush)
        value, subnormal = _normalised(lanes, a, fmt)
        less = lanes.select(
            subnormal, lanes.const(shape.bias - 1 + shape.mantissa + 1, 32), lanes.const(shape.bias - 1, 32)
        )
        found = lanes.sub(exponent(lanes, value, fmt), less)
        result = lanes.select(_has_exponent(lanes, a, fmt), found, lanes.const(0, 32))
        return lanes.truncate(result, 16) if fmt == "f16" else result

    return meaning


def _frexp_mantissa(fmt, m):
    """The f of a = f * 2**e with 1/2 <= |f| < 1; zero, infinities and NaN as they are."""
    flush, shape = flush_of(m, fmt), SHAPES[fmt]

    def meaning(lanes, a):
        a = flushed(lanes, a, fmt, flush)
        value, _ = _normalised(lanes, a, fmt)
        kept = lanes.and_(value, lanes.const(shape.sign | ((1 << shape.mantissa) - 1), shape.bits))
        found = lanes.or_(kept, lanes.const(shape.power(-1), shape.bits))
        return lanes.select(_has_exponent(lanes, a, fmt), found, _quieted(lanes, a, fmt))

    return meaning


def _quieted(lanes, a, fmt):
    shape = SHAPES[fmt]
    return lanes.select(is_nan(lanes, a, fmt), lanes.or_(a, lanes.const(shape.quiet, shape.bits)), a)


# LLVM takes omod on the integer results of two of them (VOP_I32_F64_SPECIAL_OMOD), where it does nothing to the value.
_EXPONENTS = (("f32", "i32", 51, "clamp"), ("f64", "i32", 48, "clamp omod"), ("f16", "i16", 67, "clamp omod"))
for _fmt, _kind, _opcode, _modifiers in _EXPONENTS:
    row(f"v_frexp_exp_{_kind}_{_fmt} d:{_kind}, a:{_fmt}", vop1=_opcode, unit=unit_of(_fmt), section=SECTION, modifiers=_modifiers,
        without="sdwa" if _fmt == "f64" else "")(partial(_frexp_exponent, _fmt))
for _fmt, _opcode in (("f32", 52), ("f64", 49), ("f16", 66)):
    row(f"v_frexp_mant_{_fmt} d:{_fmt}, a:{_fmt}", vop1=_opcode, unit=unit_of(_fmt), section=SECTION,
        without="sdwa" if _fmt == "f64" else "")(partial(_frexp_mantissa, _fmt))


def _scale(fmt, m):
    """d = a * 2**b, rounded once."""
    rounding, flush = rounding_of(m, fmt), flush_of(m, fmt)
    if fmt == "f16":
        return lambda lanes, a, b: scaled(lanes, a, lanes.sign_extend(b, 32), fmt, rounding, flush)
    return lambda lanes, a, b: scaled(lanes, a, b, fmt, rounding, flush)


row("v_ldexp_f16 d:f16, a:f16, b:i16~f16", vop2=51, unit="valu", section="VOP2")(partial(_scale, "f16"))
row("v_ldexp_f32 d:f32, a:f32, b:i32", vop3=0x288, unit="valu", section="VOP3A")(partial(_scale, "f32"))
row("v_ldexp_f64 d:f64, a:f64, b:i32", vop3=0x284, unit="valu64", section="VOP3A")(partial(_scale, "f64"))
