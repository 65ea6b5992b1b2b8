"""The floating-point rows of the elementwise table: arithmetic, mathematical functions, rounding to integers, compares."""

from __future__ import annotations

import numpy as np

from tilefw.tile.elementwise import error as e
from tilefw.tile.elementwise import meaning as m
from tilefw.tile.elementwise.row import Draw, Row, Rows

_ONE = ("T:float",)
_TWO = ("T:float", "T:float")
_THREE = ("T:float", "T:float", "T:float")

_arithmetic = Rows(operands=_TWO, result="same", error=e.ROUNDED)
_exact = Rows(operands=_ONE, result="same")
_pick = Rows(operands=_TWO, result="same", commutative=True, same_operands="x")
_clamp = Rows(operands=_THREE, result="same", group="float.clamp")
_function = Rows(operands=_ONE, result="same")
_integral = Rows(operands=_ONE, result="same", error=e.JUMPING, draw=Draw(((-100.0, 100.0),), (0.5, -0.5, 1.5, 2.5, -2.5, -0.0)))
_compare = Rows(operands=_TWO, result="bool", group="float.cmp")

_POSITIVE = Draw(((1e-6, 1e4),), (0.0, 1.0, 4.0, float("inf"), -1.0, float("nan")))
_SMALL = Draw(((-10.0, 10.0),))
_ANGLE = Draw(((-3.1415, 3.1415),), (0.0, -0.0, 100.0, float("inf"), float("nan")))
_POWER = Draw(((1e-3, 20.0), (-4.0, 4.0)), (0.0, 1.0, 2.0, 0.5))

ROWS: tuple[Row, ...] = (
    _arithmetic("addf", np.add, "x + y, correctly rounded", group="float.add", commutative=True, identity=-0.0),
    _arithmetic("subf", np.subtract, "x - y, correctly rounded", group="float.sub", identity=0.0),
    _arithmetic("mulf", np.multiply, "x * y, correctly rounded", group="float.mul", commutative=True, identity=1.0),
    _arithmetic("divf", np.divide, "x / y, approximately", group="float.div", identity=1.0, error=e.DIVIDE),
    _arithmetic("div_rn", np.divide, "x / y, correctly rounded", group="float.div_rn", identity=1.0),
    _arithmetic("remf", np.fmod, "x - y * trunc(x / y), exact, with the sign of x", group="float.rem", error=e.REMAINDER,
                draw=Draw(((-100.0, 100.0), (-10.0, 10.0)))),
    _exact("negf", np.negative, "-x; flips the sign of zeros and infinities", group="float.neg"),
    _exact("absf", np.abs, "|x|", group="float.abs", error=e.LIPSCHITZ),
    _pick("minf", m.minimum_number, "the smaller; of a NaN and a number, the number", group="float.min"),
    _pick("maxf", m.maximum_number, "the larger; of a NaN and a number, the number", group="float.max"),
    _pick("minf_nan", m.minimum_nan, "the smaller; NaN when either is NaN", group="float.min"),
    _pick("maxf_nan", m.maximum_nan, "the larger; NaN when either is NaN", group="float.max"),
    _clamp("clampf", m.clamp, "min(max(x, low), high); low for a NaN x"),
    _clamp("clampf_nan", m.clamp_nan, "min(max(x, low), high); NaN for a NaN x"),
    Row("fma", _THREE, "same", "float.fma", "x * y + z, rounded once", m.fused, e.ROUNDED),
    _function("sqrt", np.sqrt, "square root, approximately", group="math.sqrt", error=e.SQRT, draw=_POSITIVE),
    _function("sqrt_rn", np.sqrt, "square root, correctly rounded", group="math.sqrt_rn", error=e.ROUNDED, draw=_POSITIVE),
    _function("rsqrt", m.reciprocal_sqrt, "1 / sqrt(x)", group="math.rsqrt", error=e.RSQRT, draw=_POSITIVE),
    _function("exp", np.exp, "e to the power x", group="math.exp", error=e.EXP, draw=_SMALL),
    _function("exp2", np.exp2, "2 to the power x", group="math.exp2", error=e.EXP, draw=_SMALL),
    _function("log", np.log, "natural logarithm", group="math.log", error=e.LOG, draw=_POSITIVE),
    _function("log2", np.log2, "logarithm to base 2", group="math.log2", error=e.LOG, draw=_POSITIVE),
    _function("sin", np.sin, "sine of x in radians", group="math.sin", error=e.SINE, draw=_ANGLE),
    _function("cos", np.cos, "cosine of x in radians", group="math.cos", error=e.SINE, draw=_ANGLE),
    _function("tanh", np.tanh, "hyperbolic tangent", group="math.tanh", error=e.TANH, draw=_SMALL),
    _function("erf", m.erf, "error function", group="math.erf", error=e.ERF, draw=_SMALL),
    _integral("floor", np.floor, "the next integer below or at x", group="math.floor"),
    _integral("ceil", np.ceil, "the next integer above or at x", group="math.ceil"),
    _integral("trunc", np.trunc, "x without its fraction", group="math.trunc"),
    _integral("round_even", np.rint, "the nearest integer, ties to even", group="math.round"),
    Row("isnan", _ONE, "bool", "float.isnan", "whether x is NaN", np.isnan),
    _function("pow", m.power, "x to the power y", operands=_TWO, group="math.pow", error=e.POW, draw=_POWER),
    _function("log1p", np.log1p, "log(1 + x), accurate near 0", group="math.log1p", error=e.LOG1P, draw=Draw(((-0.9, 10.0),))),
    _function("expm1", np.expm1, "exp(x) - 1, accurate near 0", group="math.expm1", error=e.EXPM1, draw=_SMALL),
    _compare("eqf", np.equal, "x == y; false with a NaN", commutative=True),
    _compare("nef", np.not_equal, "x != y; true with a NaN", commutative=True),
    _compare("ltf", np.less, "x < y; false with a NaN"),
    _compare("lef", np.less_equal, "x <= y; false with a NaN"),
    _compare("gtf", np.greater, "x > y; false with a NaN"),
    _compare("gef", np.greater_equal, "x >= y; false with a NaN"),
)
