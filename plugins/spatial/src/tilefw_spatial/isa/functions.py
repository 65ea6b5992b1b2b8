"""EX2, LG2, RCP, RSQ and SQR on fp32, defined to the bit.

RCP, RSQ and SQR are the correctly rounded results. EX2 and LG2 are what the steps below give, each one operation of IEEE double
(no fused ones), rounded once to fp32; their error is below 0.501 ulp.

EX2: n = x rounded to an integer, ties to even; r = x - n, exact; p = c0 + r·(c1 + r·(… + r·c13)), c_k = (ln 2)^k / k!; the result
is p·2^n. |r| is at most a half, so what is left out is below 2^-57.

LG2: x = m·2^e with m from √½ (its nearest double) to √2; s = (m - 1) / (m + 1), z = s·s; q = d0 + z·(d1 + z·(… + z·d10)),
d_k = 2 / ((2k + 1)·ln 2); the result is e + s·q. |s| is at most 0.1716, so what is left out is below 2^-58 of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Doubles = NDArray[np.float64]

# (ln 2)^k / k!, each rounded to double; tests/isa computes them with 60 digits.
EX2 = tuple(map(float.fromhex, (
    "0x1.0000000000000p+0", "0x1.62e42fefa39efp-1", "0x1.ebfbdff82c58fp-3", "0x1.c6b08d704a0c0p-5",
    "0x1.3b2ab6fba4e77p-7", "0x1.5d87fe78a6731p-10", "0x1.430912f86c787p-13", "0x1.ffcbfc588b0c7p-17",
    "0x1.62c0223a5c824p-20", "0x1.b5253d395e7c4p-24", "0x1.e4cf5158b8ecap-28", "0x1.e8cac7351bb25p-32",
    "0x1.c3bd650fc2986p-36", "0x1.816193166d0f9p-40",
)))
# 2 / ((2k + 1) ln 2), each rounded to double.
LG2 = tuple(map(float.fromhex, (
    "0x1.71547652b82fep+1", "0x1.ec709dc3a03fdp-1", "0x1.2776c50ef9bfep-1", "0x1.a61762a7aded9p-2",
    "0x1.484b13d7c02a9p-2", "0x1.0c9a84994022dp-2", "0x1.c68f568d31760p-3", "0x1.89f3b1694cffep-3",
    "0x1.5b9ac9b743f0dp-3", "0x1.3703c1f4d0ffep-3", "0x1.1964ec6fc9491p-3",
)))
ROOT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
# Beyond these exponents of 2 an fp32 is infinity, or zero.
_FAR = 200.0


def _horner(coefficients: tuple[float, ...], x: Doubles) -> Doubles:
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + x * total
    return total


def exp2(x: Array) -> Array:
    """2 to the power x; 0 for -infinity, infinity for infinity and overflow, subnormals kept."""
    wide = np.clip(x.astype(np.float64), -_FAR, _FAR)
    whole = np.rint(wide)
    power = np.ldexp(1.0, np.where(np.isnan(whole), 0, whole).astype(np.int32))
    return (_horner(EX2, wide - whole) * power).astype(np.float32)


def log2(x: Array) -> Array:
    """The logarithm to base 2; -infinity for zeros, NaN below them."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    low = fraction < ROOT_HALF
    m = np.where(low, fraction * 2, fraction)
    s = (m - 1) / (m + 1)
    found = np.where(low, exponent - 1, exponent) + s * _horner(LG2, s * s)
    special = np.where(x == 0, -np.inf, np.where(x > 0, np.inf, np.nan))
    return np.where((x > 0) & np.isfinite(x), found, special).astype(np.float32)


def reciprocal(x: Array) -> Array:
    """1 / x; infinity of its sign for a zero."""
    return np.float32(1) / x.astype(np.float32)


def reciprocal_root(x: Array) -> Array:
    """1 / √x; infinity of its sign for a zero, NaN below. The root and the quotient are each rounded to double, which moves the
    result by less than 1.5 units there: of all fp32 of [1, 4), which stand for the others, one (0x403a18e3) comes within 4 units of
    a midpoint between two fp32, and that one is rounded rightly. tests/isa looks at all of them."""
    return (1.0 / np.sqrt(x.astype(np.float64))).astype(np.float32)


def root(x: Array) -> Array:
    """√x; -0 for -0, NaN below."""
    return np.sqrt(x.astype(np.float32))
