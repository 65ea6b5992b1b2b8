"""The floating-point rows of the elementwise table: arithmetic, mathematical functions, rounding to integers, compares."""

from __future__ import annotations

import numpy as np

from tilefw.tile.elementwise import error as e
from tilefw.tile.elementwise import meaning as m
from tilefw.tile.elementwise.row import Draw, ElementwiseRow, ElementwiseRows

_ONE = ("T:float",)
_TWO = ("T:float", "T:float")
_THREE = ("T:float", "T:float", "T:float")

_arithmetic = ElementwiseRows(operands=_TWO, result="same", error=e.ROUNDED)
_commuting = ElementwiseRows(operands=_TWO, result="same", error=e.ROUNDED, commutative=True)
_sign = ElementwiseRows(operands=_ONE, result="same")
_extreme = ElementwiseRows(operands=_TWO, result="same", commutative=True, same_operands="x")
_clamp = ElementwiseRows(operands=_THREE, result="same")
_function = ElementwiseRows(operands=_ONE, result="same")
_power = ElementwiseRows(operands=_TWO, result="same")
_integral = ElementwiseRows(
    operands=_ONE, result="same", error=e.JUMPING, draw=Draw(((-100.0, 100.0),), (0.5, -0.5, 1.5, 2.5, -2.5, -0.0))
)
_compare = ElementwiseRows(operands=_TWO, result="bool")

_QUOTIENT = Draw(((-100.0, 100.0), (-10.0, 10.0)))
_POSITIVE = Draw(((1e-6, 1e4),), (0.0, 1.0, 4.0, float("inf"), -1.0, float("nan")))
_SMALL = Draw(((-10.0, 10.0),))
_ABOVE = Draw(((-0.9, 10.0),))
_ANGLE = Draw(((-3.1415, 3.1415),), (0.0, -0.0, 100.0, float("inf"), float("nan")))
_POWER = Draw(((1e-3, 20.0), (-4.0, 4.0)), (0.0, 1.0, 2.0, 0.5))

ROWS: tuple[ElementwiseRow, ...] = (
    # Arithmetic: correctly rounded where a row does not say otherwise.
    _commuting( "addf",   "float.add",    "x + y, correctly rounded",          np.add,      identity=-0.0),
    _arithmetic("subf",   "float.sub",    "x - y, correctly rounded",          np.subtract, identity=0.0),
    _commuting( "mulf",   "float.mul",    "x * y, correctly rounded",          np.multiply, identity=1.0),
    _arithmetic("divf",   "float.div",    "x / y, approximately",              np.divide,   identity=1.0, error=e.DIVIDE),
    _arithmetic("div_rn", "float.div_rn", "x / y, correctly rounded",          np.divide,   identity=1.0),
    _arithmetic("remf",   "float.rem",    "x - y * trunc(x / y), of x's sign", np.fmod,     error=e.REMAINDER, draw=_QUOTIENT),
    _arithmetic("fma",    "float.fma",    "x * y + z, rounded once",           m.fused,     operands=_THREE),

    # Signs and order.
    _sign(   "negf",       "float.neg",   "-x; flips the sign of zeros and infinities",     np.negative),
    _sign(   "absf",       "float.abs",   "|x|",                                            np.abs,           error=e.LIPSCHITZ),
    _extreme("minf",       "float.min",   "the smaller; of a NaN and a number, the number", m.minimum_number),
    _extreme("maxf",       "float.max",   "the larger; of a NaN and a number, the number",  m.maximum_number),
    _extreme("minf_nan",   "float.min",   "the smaller; NaN when either is NaN",            m.minimum_nan),
    _extreme("maxf_nan",   "float.max",   "the larger; NaN when either is NaN",             m.maximum_nan),
    _clamp(  "clampf",     "float.clamp", "min(max(x, low), high); low for a NaN x",        m.clamp),
    _clamp(  "clampf_nan", "float.clamp", "min(max(x, low), high); NaN for a NaN x",        m.clamp_nan),

    # Functions.
    _function("sqrt",    "math.sqrt",    "square root, approximately",     np.sqrt,           error=e.SQRT,    draw=_POSITIVE),
    _function("sqrt_rn", "math.sqrt_rn", "square root, correctly rounded", np.sqrt,           error=e.ROUNDED, draw=_POSITIVE),
    _function("rsqrt",   "math.rsqrt",   "1 / sqrt(x)",                    m.reciprocal_sqrt, error=e.RSQRT,   draw=_POSITIVE),
    _function("exp",     "math.exp",     "e to the power x",               np.exp,            error=e.EXP,     draw=_SMALL),
    _function("exp2",    "math.exp2",    "2 to the power x",               np.exp2,           error=e.EXP,     draw=_SMALL),
    _function("log",     "math.log",     "natural logarithm",              np.log,            error=e.LOG,     draw=_POSITIVE),
    _function("log2",    "math.log2",    "logarithm to base 2",            np.log2,           error=e.LOG,     draw=_POSITIVE),
    _function("sin",     "math.sin",     "sine of x in radians",           np.sin,            error=e.SINE,    draw=_ANGLE),
    _function("cos",     "math.cos",     "cosine of x in radians",         np.cos,            error=e.SINE,    draw=_ANGLE),
    _function("tanh",    "math.tanh",    "hyperbolic tangent",             np.tanh,           error=e.TANH,    draw=_SMALL),
    _function("erf",     "math.erf",     "error function",                 m.erf,             error=e.ERF,     draw=_SMALL),
    _power(   "pow",     "math.pow",     "x to the power y",               m.power,           error=e.POW,     draw=_POWER),
    _function("log1p",   "math.log1p",   "log(1 + x), accurate near 0",    np.log1p,          error=e.LOG1P,   draw=_ABOVE),
    _function("expm1",   "math.expm1",   "exp(x) - 1, accurate near 0",    np.expm1,          error=e.EXPM1,   draw=_SMALL),

    # To integers, still as floats.
    _integral("floor",      "math.floor", "the next integer below or at x",    np.floor),
    _integral("ceil",       "math.ceil",  "the next integer above or at x",    np.ceil),
    _integral("trunc",      "math.trunc", "x without its fraction",            np.trunc),
    _integral("round_even", "math.round", "the nearest integer, ties to even", np.rint),

    # Compares and classes.
    _compare("eqf",   "float.cmp",   "x == y; false with a NaN", np.equal,         commutative=True),
    _compare("nef",   "float.cmp",   "x != y; true with a NaN",  np.not_equal,     commutative=True),
    _compare("ltf",   "float.cmp",   "x < y; false with a NaN",  np.less),
    _compare("lef",   "float.cmp",   "x <= y; false with a NaN", np.less_equal),
    _compare("gtf",   "float.cmp",   "x > y; false with a NaN",  np.greater),
    _compare("gef",   "float.cmp",   "x >= y; false with a NaN", np.greater_equal),
    _compare("isnan", "float.isnan", "whether x is NaN",         np.isnan,         operands=_ONE),
)
