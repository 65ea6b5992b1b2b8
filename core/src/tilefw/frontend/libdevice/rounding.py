"""Arithmetic rounded in a direction: the result rounded to nearest, and on which side of it the exact one lies.

The side is the sign of a remainder, which `fma` computes with its right sign wherever it does not underflow: so operands are
brought to exponents near zero first.
"""

from __future__ import annotations

from collections.abc import Callable

from tilefw.frontend.libdevice.conversions import directed
from tilefw.frontend.libdevice.pairs import two_sum
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, fraction_and_exponent, scaled

define = Functions()

def _rounded(result: Term, lacks: Term, finite: Term, way: str) -> Term:
    """The result in a direction. An infinite one of `finite` operands overflowed, and lacks what leads back from it."""
    overflowed = finite & abs(result).equals(float("inf"))
    above = (overflowed & (result < 0.0)) | (~overflowed & (lacks > 0.0))
    below = (overflowed & (result > 0.0)) | (~overflowed & (lacks < 0.0))
    exact = directed(result, above, below, way)
    return (finite & (abs(result) <= float("inf"))).where(exact, result)


def _finite(*terms: Term) -> Term:
    all_finite = abs(terms[0]) < float("inf")
    for term in terms[1:]:
        all_finite = all_finite & (abs(term) < float("inf"))
    return all_finite


def _sum(x: Term, y: Term, way: str) -> Term:
    """Dekker's sum of the larger and the smaller: no step of it overflows unless the sum does."""
    swap = abs(y) > abs(x)
    large, small = swap.where(y, x), swap.where(x, y)
    total = large.fma(1.0, small)
    lacks = small - (total - large)
    result = _rounded(total, lacks, _finite(x, y), way)
    if way != "rd":
        return result
    # IEEE 754-2019, 6.3: an exact zero sum is -0 when rounding down, unless both are +0.
    negative = (x.bits() | y.bits()) < 0
    return (total.equals(0.0) & negative).where(-0.0, result)


def _product(x: Term, y: Term, way: str) -> Term:
    product = x * y
    (a, i), (b, j) = fraction_and_exponent(x), fraction_and_exponent(y)
    lacks = a.fma(b, -scaled(product, -(i + j)))
    nonzero = ~(x.equals(0.0) | y.equals(0.0))
    return _rounded(product, nonzero.where(lacks, lacks.constant(0.0)), _finite(x, y), way)


def _quotient(x: Term, y: Term, way: str) -> Term:
    quotient = x / y
    (a, i), (b, j) = fraction_and_exponent(x), fraction_and_exponent(y)
    rest = b.fma(-scaled(quotient, j - i), a)
    lacks = (y < 0.0).where(-rest, rest)
    nonzero = ~(x.equals(0.0) | y.equals(0.0))
    finite = _finite(x, y) & ~y.equals(0.0)
    return _rounded(quotient, nonzero.where(lacks, lacks.constant(0.0)), finite, way)


def _root(x: Term, way: str) -> Term:
    root = x.row("sqrt_rn")
    a, i = fraction_and_exponent(x)
    half = i >> 1
    scaled_root = scaled(root, -half)
    lacks = -scaled_root.fma(scaled_root, -scaled(a, i - half - half))
    inside = (x > 0.0) & (x < float("inf"))
    return inside.where(_rounded(root, lacks, inside, way), root)


def _reciprocal(x: Term, way: str) -> Term:
    return _quotient(x.constant(1.0), x, way)


def _fused(x: Term, y: Term, z: Term, way: str) -> Term:
    """Product and addend are scaled so that the larger is near 1; one far below the other counts by its sign alone."""
    kind = x.format
    result = x.fma(y, z)
    (a, i), (b, j), (c, k) = fraction_and_exponent(x), fraction_and_exponent(y), fraction_and_exponent(z)
    empty, no_addend = x.equals(0.0) | y.equals(0.0), z.equals(0.0)
    nothing, limit = -8 * kind.bias, -2 * (kind.fraction + 6)
    product_at, addend_at = empty.where(nothing, i + j), no_addend.where(nothing, k)
    top = (product_at > addend_at).where(product_at, addend_at)

    def below_top(term: Term, at: Term, zero: Term) -> Term:
        distance = at - top
        return zero.where(0.0, scaled(term, (distance < limit).where(limit, distance)))

    a, c = below_top(a, product_at, empty), below_top(c, addend_at, no_addend)
    high = a * b
    low = a.fma(b, -high)
    total, rest = two_sum(high, c)
    rest, last = two_sum(rest, low)
    difference, rest = two_sum(total - scaled(result, -top), rest)
    lacks = difference + (rest + last)
    result = _rounded(result, lacks, _finite(x, y, z), way)
    if way != "rd":
        return result
    negative = ((x.bits() ^ y.bits()) | z.bits()) < 0
    return (result.equals(0.0) & lacks.equals(0.0) & negative).where(-0.0, result)


def _define(name: str, count: int, nearest: Callable[..., Term], directions: Callable[..., Term]) -> None:
    define.define(f"{name}_rn", floats(count), nearest)
    for way in ("rd", "ru", "rz"):
        define.define(f"{name}_{way}", floats(count), lambda *terms, way=way: directions(*terms, way))


_define("add", 2, lambda x, y: x.fma(1.0, y), _sum)
_define("sub", 2, lambda x, y: x.fma(1.0, -y), lambda x, y, way: _sum(x, -y, way))
_define("mul", 2, lambda x, y: x * y, _product)
_define("rcp", 1, lambda x: 1.0 / x, _reciprocal)
for _way in ("rd", "ru", "rz"):
    define.define(f"fma_{_way}", floats(3), lambda x, y, z, way=_way: _fused(x, y, z, way))
    define.define(f"div_{_way}", floats(2), lambda x, y, way=_way: _quotient(x, y, way))
    define.define(f"sqrt_{_way}", floats(1), lambda x, way=_way: _root(x, way))
