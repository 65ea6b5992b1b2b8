"""Functions of elements that the language does not have as such, in the steps of ONNX's own definitions of them.

A result's error bound follows from these steps, so they are the ones that ONNX writes down (`onnx/defs`), not faster ones.
"""

from __future__ import annotations

import tilefw
import tilefw.language as tl
from tilefw.language.extra import libdevice


@tilefw.jit
def sign(x):
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x))


@tilefw.jit
def floor_mod(x, y):
    """The remainder of the sign of y, as Python's `%`; an exact zero too has y's sign."""
    rest = x % y
    moved = tl.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
    return tl.where(rest == 0, tl.where(negative(y), -0.0, 0.0), moved)


@tilefw.jit
def negative(x):
    """Whether x has the sign bit."""
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True) < 0
    else:
        return x.to(tl.int32, bitcast=True) < 0


@tilefw.jit
def integer_floor_mod(x, y):
    rest = x % y
    return tl.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


@tilefw.jit
def shift_left(x, count, BITS: tl.constexpr):
    """Zero where the count is not a position of a bit."""
    return tl.where((count < 0) | (count >= BITS), 0, x << count)


@tilefw.jit
def shift_right(x, count, BITS: tl.constexpr):
    """Filled with the sign where the count is not a position of a bit."""
    return tl.where((count < 0) | (count >= BITS), tl.where(x < 0, -1, 0), x >> count)


@tilefw.jit
def integer_power(x, exponent):
    """x to a whole exponent of at least 0, exactly, modulo the type's width."""
    result = exponent * 0 + 1
    factor = x
    for bit in tl.static_range(31):
        result = tl.where((exponent >> bit) % 2 != 0, result * factor, result)
        factor = factor * factor
    return result


@tilefw.jit
def integer_to_float_power(x, y):
    """An integer to a float's power, truncated: exact for whole exponents, so that 2 to the 5 is not 31."""
    whole = y == tl.floor(y)
    rough = libdevice.pow(x.to(tl.float32), y).to(tl.int32)
    return tl.where(whole, integer_power(x, tl.where(whole, y, 0.0).to(tl.int32)), rough)


@tilefw.jit
def tan(x):
    return tl.sin(x) / tl.cos(x)


@tilefw.jit
def sinh(x):
    return (tl.exp(x) - tl.exp(-x)) / 2


@tilefw.jit
def cosh(x):
    return (tl.exp(x) + tl.exp(-x)) / 2


@tilefw.jit
def asinh(x):
    """The sign of x times log(|x| + sqrt(x² + 1)), with the sum taken near 1 where log1p knows it well."""
    size = tl.abs(x)
    square = size * size
    found = libdevice.log1p(size + square / (1.0 + tl.sqrt_rn(square + 1.0)))
    return tl.where(x < 0, -found, found)


@tilefw.jit
def acosh(x):
    """log(x + sqrt(x² - 1)) as log1p of what is above 1."""
    above = x - 1.0
    return libdevice.log1p(above + tl.sqrt_rn(above * (above + 2.0)))


@tilefw.jit
def atanh(x):
    return 0.5 * libdevice.log1p(2.0 * x / (1.0 - x))


@tilefw.jit
def arctangent_near_zero(x):
    """The arc tangent for |x| at most tan(pi/16): its series, whose terms beyond x^15 are below 2^-35 of the whole there."""
    square = x * x
    rest = square * (-1.0 / 15.0) + 1.0 / 13.0
    rest = square * rest - 1.0 / 11.0
    rest = square * rest + 1.0 / 9.0
    rest = square * rest - 1.0 / 7.0
    rest = square * rest + 1.0 / 5.0
    rest = square * rest - 1.0 / 3.0
    return x + x * (square * rest)


@tilefw.jit
def atan(x):
    """Two halvings, atan(x) = 2·atan(x / (1 + sqrt(1 + x²))), and the series; beyond 1 of the reciprocal."""
    size = tl.abs(x)
    turned = tl.where(size > 1.0, tl.div_rn(1.0, size), size)
    half = turned / (1.0 + tl.sqrt_rn(1.0 + turned * turned))
    quarter = half / (1.0 + tl.sqrt_rn(1.0 + half * half))
    angle = 4.0 * arctangent_near_zero(quarter)
    angle = tl.where(size > 1.0, 1.5707963267948966 - angle, angle)
    return tl.where(x < 0, -angle, angle)


@tilefw.jit
def asin(x):
    """2·atan(x / (1 + sqrt((1 - x)(1 + x))))."""
    return 2.0 * atan(tl.div_rn(x, 1.0 + tl.sqrt_rn((1.0 - x) * (1.0 + x))))


@tilefw.jit
def acos(x):
    """2·atan(sqrt((1 - x) / (1 + x))), which keeps what is near 1 apart."""
    return 2.0 * atan(tl.sqrt_rn(tl.div_rn(1.0 - x, 1.0 + x)))


@tilefw.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@tilefw.jit
def softplus(x):
    return tl.log(tl.exp(x) + 1.0)


@tilefw.jit
def elu(x, alpha):
    return tl.where(x < 0, alpha * (tl.exp(x) - 1.0), x)


@tilefw.jit
def celu(x, alpha):
    return tl.maximum(x, 0.0) + tl.minimum(alpha * (tl.exp(x / alpha) - 1.0), 0.0)


@tilefw.jit
def selu(x, alpha, gamma):
    return gamma * (tl.where(x > 0, x, 0.0) + tl.where(x < 0, tl.exp(x) * alpha - alpha, 0.0))


@tilefw.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x / 1.4142135623730951))


@tilefw.jit
def gelu_by_tanh(x):
    half = 0.5 * x
    return half + half * libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))


@tilefw.jit
def hard_sigmoid(x, alpha, beta):
    return tl.maximum(0.0, tl.minimum(1.0, alpha * x + beta))


@tilefw.jit
def mish(x):
    return x * libdevice.tanh(libdevice.log1p(tl.exp(x)))


@tilefw.jit
def shrink(x, bias, lambd):
    return tl.where(x < -lambd, x + bias, tl.where(x > lambd, x - bias, 0.0))


@tilefw.jit
def multiply(x, y):
    return x * y


@tilefw.jit
def narrowed(x, kind, LIMIT: tl.constexpr, BEYOND: tl.constexpr, SIGN: tl.constexpr, NAN: tl.constexpr):
    """x as the 8-bit float `kind`; from LIMIT on the code BEYOND, with SIGN for negative numbers; NaN has the code NAN."""
    unknown = x != x
    code = tl.where(unknown, 0.0, x).to(kind).to(tl.uint8, bitcast=True)
    beyond = tl.where(x < 0, BEYOND | SIGN, BEYOND).to(tl.uint8)
    code = tl.where(tl.abs(x) >= LIMIT, beyond, code)
    return tl.where(unknown, NAN, code).to(tl.uint8).to(kind, bitcast=True)


@tilefw.jit
def power_of_exponent(code):
    """2 to the (code - 127): the code is fp32's exponent, the least one a subnormal number and 255 NaN."""
    bits = tl.where(code == 0, 1 << 22, tl.where(code == 255, 0x7FC00000, code.to(tl.int32) << 23))
    return bits.to(tl.float32, bitcast=True)


@tilefw.jit
def exponent_above(x):
    """The E8M0 code of the least power of two that is at least |x|, at most 2 to the 127; NaN has 255."""
    bits = tl.abs(x).to(tl.int32, bitcast=True)
    up = tl.where((bits & 0x7FFFFF) != 0, (bits >> 23) + 1, bits >> 23)
    tiny = tl.where(bits <= 1 << 22, 0, 1)  # subnormals: 2 to the -127 has the code 0
    code = tl.where(bits < 1 << 23, tiny, tl.minimum(up, 254))
    return tl.where(x != x, 255, code).to(tl.uint8)


@tilefw.jit
def log_sum_exp(x):
    """log of the sum of exp along rows, less and plus the largest; of no element, minus infinity."""
    peak = tl.max(x, axis=1, keep_dims=True)
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    return peak + tl.log(tl.sum(tl.exp(x - peak), axis=1, keep_dims=True))


@tilefw.jit
def softmax_rows(x):
    powers = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    return powers / tl.sum(powers, axis=1, keep_dims=True)


@tilefw.jit
def log_softmax_rows(x):
    centered = x - tl.max(x, axis=1, keep_dims=True)
    return centered - tl.log(tl.sum(tl.exp(centered), axis=1, keep_dims=True))


@tilefw.jit
def over_sum_of_magnitudes(x):
    size = tl.sum(tl.abs(x), axis=1, keep_dims=True)
    return x / tl.where(size == 0, 1.0, size)


@tilefw.jit
def over_root_of_squares(x):
    size = tl.sqrt_rn(tl.sum(x * x, axis=1, keep_dims=True))
    return x / tl.where(size == 0, 1.0, size)
