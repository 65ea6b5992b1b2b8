"""Cube roots and the lengths of vectors, to less than an ulp: one step in pairs ends each."""

from __future__ import annotations

import math

import tilefw.language as tl
from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.pairs import Pair, exact_product, ordered_sum
from tilefw.frontend.libdevice.signatures import Functions, floats, of_one_type
from tilefw.frontend.libdevice.term import Term, fraction_and_exponent, power_of_two, scaled, with_sign_of

define = Functions()

_ONE = floats(1)


def _cube_root(x: Term) -> tuple[Pair, Term]:
    """The cube root of |x| as a pair from 1 to 2 and the int32 power of two that it is multiplied with."""
    fraction, exponent = fraction_and_exponent(abs(x))
    third = (exponent + 1200).row("divs", 3) - 400
    m = scaled(fraction, exponent - third * 3)  # 1 to 8
    # The parabola through 1, 1.5³ and 2³, then Halley's iteration, which triples the digits.
    y = (m - 1.0) * ((m - 3.375) * -0.0146310 + 0.2105263) + 1.0
    for _ in range(series.lengths(x).cube_root):
        cube = y * y * y
        y = y * ((cube + (m + m)) / ((cube + cube) + m))
    rest = (exact_product(y, y) * y - m).value
    return ordered_sum(y, -(rest / (y * y * 3.0))), third


def _finite_nonzero(x: Term) -> Term:
    return (abs(x) > 0.0) & (abs(x) < math.inf)


@define(_ONE)
def cbrt(x: Term) -> Term:
    root, exponent = _cube_root(x)
    result = root.value * power_of_two(exponent.to(x.format.bits), x.format)
    return _finite_nonzero(x).where(with_sign_of(result, x), x)


@define(_ONE)
def rcbrt(x: Term) -> Term:
    root, exponent = _cube_root(x)
    result = (1.0 / root).value * power_of_two((-exponent).to(x.format.bits), x.format)
    return _finite_nonzero(x).where(with_sign_of(result, x), 1.0 / x)


def _norm(*components: Term) -> tuple[Pair, Term, Term]:
    """The length as a pair times a power of two, and what it is where it is 0, infinite or NaN: (pair, exponent, special)."""
    sizes = [abs(component) for component in components]
    largest, total = sizes[0], sizes[0]
    infinite = sizes[0].equals(math.inf)
    for size in sizes[1:]:
        largest = (size > largest).where(size, largest)
        total = total + size  # 0, infinite or NaN where the length is
        infinite = infinite | size.equals(math.inf)
    exponent = fraction_and_exponent(largest)[1]
    squares = Pair(largest.constant(0.0), largest.constant(0.0))
    for size in sizes:
        near = scaled(size, -exponent)
        squares = squares + exact_product(near, near)
    special = infinite.where(math.inf, total)
    ordinary = (largest > 0.0) & (largest < math.inf) & ~total.is_nan()
    return squares.root(), exponent, ordinary.where(1.0, special)


def _length(*components: Term) -> Term:
    root, exponent, special = _norm(*components)
    return special.equals(1.0).where(scaled(root.value, exponent), special)


def _reciprocal_length(*components: Term) -> Term:
    root, exponent, special = _norm(*components)
    return special.equals(1.0).where(scaled((1.0 / root).value, -exponent), 1.0 / special)


for _count, _name, _reciprocal in ((2, "hypot", "rhypot"), (3, "norm3d", "rnorm3d"), (4, "norm4d", "rnorm4d")):
    define.define(_name, floats(_count), _length)
    define.define(_reciprocal, floats(_count), _reciprocal_length)


@define(of_one_type(1, "fp32"))
def rsqrt_rn(x: Term) -> Term:
    """Correctly rounded: that of a float32, rounded to float64, is never in the middle of two float32 unless it is one."""
    wide = x.to(tl.float64)
    inverse = 1.0 / wide.row("sqrt_rn")
    square = exact_product(inverse, inverse)
    rest = (-wide).fma(square.high, 1.0) - wide * square.low
    better = inverse + inverse * rest * 0.5
    return _finite_nonzero(x).where(better, inverse).to(tl.float32)
