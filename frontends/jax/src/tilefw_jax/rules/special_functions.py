"""Functions without a row of the elementwise table, for fp32: formulas and polynomials of rows.

Errors stay within some units in the last place. Sources: the complement of the error function from Press et al., Numerical
Recipes, section 6.2; its inverse from M. Giles, "Approximating the erfinv function" (2010), single precision; the arc tangent from
Cephes, atanf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefw.graph.builder import GraphValue

Write = Callable[..., GraphValue]
_LN2 = 0.6931471805599453
_PI = 3.141592653589793


def sign_of(w: Write, x: GraphValue) -> GraphValue:
    """1 or -1; zeros and NaN are what they were."""
    return w("select", w("gtf", x, 0.0), 1.0, w("select", w("ltf", x, 0.0), -1.0, x))


def logistic(w: Write, x: GraphValue) -> GraphValue:
    """In two branches, so that no exponential overflows."""
    small = w("exp", w("negf", w("absf", x)))
    return w("divf", w("select", w("gef", x, 0.0), 1.0, small), w("addf", small, 1.0))


def tangent(w: Write, x: GraphValue) -> GraphValue:
    """sin / cos."""
    return w("divf", w("sin", x), w("cos", x))


def cube_root(w: Write, x: GraphValue) -> GraphValue:
    """By logarithms, then one step of Newton's."""
    size = w("absf", x)
    first = w("exp2", w("mulf", w("log2", size), 1 / 3))
    better = w("subf", first, w("mulf", w("subf", first, w("divf", size, w("mulf", first, first))), 1 / 3))
    kept = w("ori", w("eqf", x, 0.0), w("eqf", size, float("inf")))
    return w("select", kept, x, w("mulf", sign_of(w, x), better))


def erfc(w: Write, x: GraphValue) -> GraphValue:
    """Small results keep their relative precision."""
    size = w("absf", x)
    t = w("divf", w("select", w("eqf", size, size), 1.0, size), w("addf", w("mulf", size, 0.5), 1.0))
    terms = (
        0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
    )
    tail = w("mulf", t, w("exp", w("subf", _polynomial(w, t, terms), w("mulf", size, size))))
    return w("select", w("ltf", x, 0.5), w("subf", 1.0, w("erf", x)), tail)


def erf_inverse(w: Write, x: GraphValue) -> GraphValue:
    """A polynomial near zero and one for the tails; infinite at 1 and -1."""
    distance = w("negf", w("log1p", w("negf", w("mulf", x, x))))
    near = _polynomial(w, w("subf", distance, 2.5), (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727,
        1.50140941,
    ))
    far = _polynomial(w, w("subf", w("sqrt_rn", distance), 3.0), (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
        2.83297682,
    ))
    found = w("mulf", w("select", w("ltf", distance, 5.0), near, far), x)
    return w("select", w("eqf", w("absf", x), 1.0), w("mulf", x, float("inf")), found)


def arc_tangent(w: Write, x: GraphValue) -> GraphValue:
    """The arc tangent in three ranges, each brought to the first."""
    size = w("absf", x)
    steep, middle = w("gtf", size, 2.414213562373095), w("gtf", size, 0.4142135623730950)
    inverse = w("negf", w("divf", w("select", steep, 1.0, size), size))
    turned = w("divf", w("subf", size, 1.0), w("addf", size, 1.0))
    reduced = w("select", steep, inverse, w("select", middle, turned, size))
    offset = w("select", steep, _PI / 2, w("select", middle, _PI / 4, w("mulf", size, 0.0)))
    square = w("mulf", reduced, reduced)
    slope = _polynomial(w, square, (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1))
    found = w("addf", w("mulf", w("mulf", slope, square), reduced), reduced)
    return _with_sign(w, w("select", middle, w("addf", found, offset), found), x)


def arc_tangent_2(w: Write, y: GraphValue, x: GraphValue) -> GraphValue:
    """The angle of (x, y), in all quadrants and with the signs of zeros."""
    high, wide = w("absf", y), w("absf", x)
    both_zero = w("andi", w("eqf", high, 0.0), w("eqf", wide, 0.0))
    both_infinite = w("andi", w("eqf", high, float("inf")), w("eqf", wide, float("inf")))
    ratio = w("select", both_zero, high, w("select", both_infinite, 1.0, w("divf", high, wide)))
    angle = arc_tangent(w, ratio)
    left = w("lts", w("bitcast", x, to="int32"), 0)
    return _with_sign(w, w("select", left, w("subf", _PI, angle), angle), y)


def arc_sine(w: Write, x: GraphValue) -> GraphValue:
    """By the arc tangent of two sides."""
    return arc_tangent_2(w, x, _other_side(w, x))


def arc_cosine(w: Write, x: GraphValue) -> GraphValue:
    """By the arc tangent of two sides."""
    return arc_tangent_2(w, _other_side(w, x), x)


def sinh(w: Write, x: GraphValue) -> GraphValue:
    """By e^x - 1, which keeps small arguments; large ones by the exponential alone."""
    size = w("absf", x)
    grown = w("expm1", size)
    half = w("mulf", w("addf", grown, w("divf", grown, w("addf", grown, 1.0))), 0.5)
    return _with_sign(w, w("select", w("gtf", size, 88.0), w("exp", w("subf", size, _LN2)), half), x)


def cosh(w: Write, x: GraphValue) -> GraphValue:
    """The sum of two exponentials, each with its half."""
    half = w("exp", w("subf", w("absf", x), _LN2))
    return w("addf", half, w("divf", w("select", w("eqf", half, half), 0.25, half), half))


def arsinh(w: Write, x: GraphValue) -> GraphValue:
    """By log(1 + x), which keeps small arguments."""
    size = w("absf", x)
    square = w("mulf", size, size)
    root = w("addf", w("sqrt_rn", w("addf", square, 1.0)), 1.0)
    found = w("log1p", w("addf", size, w("divf", square, root)))
    return _with_sign(w, w("select", w("gtf", size, 1e9), w("addf", w("log", size), _LN2), found), x)


def arcosh(w: Write, x: GraphValue) -> GraphValue:
    """By log(1 + x), which keeps arguments near 1."""
    past = w("subf", x, 1.0)
    root = w("mulf", w("sqrt_rn", past), w("sqrt_rn", w("addf", past, 2.0)))  # NaN below 1
    found = w("log1p", w("addf", past, root))
    return w("select", w("gtf", x, 1e9), w("addf", w("log", x), _LN2), found)


def artanh(w: Write, x: GraphValue) -> GraphValue:
    """By log(1 + x), which keeps small arguments."""
    size = w("absf", x)
    ratio = w("divf", w("mulf", size, 2.0), w("subf", 1.0, size))
    return _with_sign(w, w("mulf", w("log1p", ratio), 0.5), x)


def set_bits(w: Write, x: GraphValue, width: int) -> GraphValue:
    """How many bits are set, by sums of neighbours (H. Warren, Hacker's Delight, section 5-1)."""
    pairs, fours, eights = (_repeated(byte, width) for byte in (0x55, 0x33, 0x0F))
    x = w("subi", x, w("andi", w("shru", x, 1), pairs))
    x = w("addi", w("andi", x, fours), w("andi", w("shru", x, 2), fours))
    x = w("andi", w("addi", x, w("shru", x, 4)), eights)
    for step in (8, 16, 32):
        x = w("addi", x, w("shru", x, step)) if step < width else x
    return w("andi", x, 0x7F)


def leading_zeros(w: Write, x: GraphValue, width: int) -> GraphValue:
    """How many bits stand above the highest that is set."""
    for step in (1, 2, 4, 8, 16, 32):
        x = w("ori", x, w("shru", x, step)) if step < width else x
    return w("subi", width, set_bits(w, x, width))


def _repeated(byte: int, width: int) -> int:
    return int.from_bytes(bytes([byte]) * (width // 8), "little")


def _polynomial(w: Write, x: GraphValue, terms: Sequence[float]) -> GraphValue:
    """By Horner's rule, the highest term first."""
    found = w("addf", w("mulf", x, terms[0]), terms[1])
    for term in terms[2:]:
        found = w("addf", w("mulf", found, x), term)
    return found


def _other_side(w: Write, x: GraphValue) -> GraphValue:
    return w("sqrt_rn", w("mulf", w("subf", 1.0, x), w("addf", x, 1.0)))


def _with_sign(w: Write, size: GraphValue, x: GraphValue) -> GraphValue:
    """A number that is not negative with the sign of another."""
    bits, sign = w("bitcast", size, to="int32"), w("andi", w("bitcast", x, to="int32"), -0x80000000)
    return w("bitcast", w("ori", w("andi", bits, 0x7FFFFFFF), sign), to="fp32")
