"""The floating-point rows of the elementwise table."""

from __future__ import annotations

from tilefw.tile.elementwise.row import Row

_F1 = ("T:float",)
_F2 = ("T:float", "T:float")
_F3 = ("T:float", "T:float", "T:float")

ROWS = (
    Row("addf", _F2, "same", "float.add", "x + y, correctly rounded"),
    Row("subf", _F2, "same", "float.sub", "x - y, correctly rounded"),
    Row("mulf", _F2, "same", "float.mul", "x * y, correctly rounded"),
    Row("divf", _F2, "same", "float.div", "x / y, approximately"),
    Row("div_rn", _F2, "same", "float.div_rn", "x / y, correctly rounded"),
    Row("remf", _F2, "same", "float.rem", "x - y * trunc(x / y), exact, with the sign of x"),
    Row("negf", _F1, "same", "float.neg", "-x; flips the sign of zeros and infinities"),
    Row("absf", _F1, "same", "float.abs", "|x|"),
    Row("minf", _F2, "same", "float.min", "the smaller; of a NaN and a number, the number"),
    Row("maxf", _F2, "same", "float.max", "the larger; of a NaN and a number, the number"),
    Row("minf_nan", _F2, "same", "float.min", "the smaller; NaN when either is NaN"),
    Row("maxf_nan", _F2, "same", "float.max", "the larger; NaN when either is NaN"),
    Row("clampf", _F3, "same", "float.clamp", "min(max(x, low), high); low for a NaN x"),
    Row("clampf_nan", _F3, "same", "float.clamp", "min(max(x, low), high); NaN for a NaN x"),
    Row("fma", _F3, "same", "float.fma", "x * y + z, rounded once"),
    Row("sqrt", _F1, "same", "math.sqrt", "square root, approximately"),
    Row("sqrt_rn", _F1, "same", "math.sqrt_rn", "square root, correctly rounded"),
    Row("rsqrt", _F1, "same", "math.rsqrt", "1 / sqrt(x)"),
    Row("exp", _F1, "same", "math.exp", "e to the power x"),
    Row("exp2", _F1, "same", "math.exp2", "2 to the power x"),
    Row("log", _F1, "same", "math.log", "natural logarithm"),
    Row("log2", _F1, "same", "math.log2", "logarithm to base 2"),
    Row("sin", _F1, "same", "math.sin", "sine of x in radians"),
    Row("cos", _F1, "same", "math.cos", "cosine of x in radians"),
    Row("tanh", _F1, "same", "math.tanh", "hyperbolic tangent"),
    Row("erf", _F1, "same", "math.erf", "error function"),
    Row("floor", _F1, "same", "math.floor", "the next integer below or at x"),
    Row("ceil", _F1, "same", "math.ceil", "the next integer above or at x"),
    Row("trunc", _F1, "same", "math.trunc", "x without its fraction"),
    Row("round_even", _F1, "same", "math.round", "the nearest integer, ties to even"),
    Row("isnan", _F1, "bool", "float.isnan", "whether x is NaN"),
    Row("pow", _F2, "same", "math.pow", "x to the power y"),
    Row("log1p", _F1, "same", "math.log1p", "log(1 + x), accurate near 0"),
    Row("expm1", _F1, "same", "math.expm1", "exp(x) - 1, accurate near 0"),
    Row("eqf", _F2, "bool", "float.cmp", "x == y; false with a NaN"),
    Row("nef", _F2, "bool", "float.cmp", "x != y; true with a NaN"),
    Row("ltf", _F2, "bool", "float.cmp", "x < y; false with a NaN"),
    Row("lef", _F2, "bool", "float.cmp", "x <= y; false with a NaN"),
    Row("gtf", _F2, "bool", "float.cmp", "x > y; false with a NaN"),
    Row("gef", _F2, "bool", "float.cmp", "x >= y; false with a NaN"),
)
