"""Matrix sums in stages (`numerics="hw"`): the products of a block first, then their sum with the running sum.

After MMA-Sim's TR-FDPA and GTR-FDPA (arXiv 2511.10909), its models of units that add so. Everything here is exact in f64 until a
cut says otherwise: sums of 16 products of 8 + 8 bits reach at most 5 + 25 bits, and the joined sum spans 33 bits below the larger
exponent.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.matrix.fragments import Accumulation, Stages

# The exponent of a sum of zeros: below every other one's.
_ZERO = -999
_F32_LEAST = -126
# A product from here on is infinite.
_OVERFLOW = 2.0**128


def staged_sum(products: Array, exponents: Array, running: Array, accumulation: Accumulation) -> Array:
    """f32 values (held in f64) of one block: products and their exponents [waves, rows, k, columns], running sum without k."""
    stages, bits = accumulation.stages, accumulation.fraction_bits
    assert stages is not None
    overflowed = np.abs(products) >= _OVERFLOW
    if overflowed.any():
        products = np.where(overflowed, np.copysign(np.inf, products), products)
    if stages.drops_far and not np.isfinite(running).all():
        # The model gives infinities and NaN the exponent -1, and so drops them as it drops numbers.
        far = _largest(products, exponents) > bits
        running = np.where(far & ~np.isfinite(running), 0.0, running)
    finite = np.isfinite(products).all(axis=2) & np.isfinite(running)
    if finite.all():
        return _finite(products, exponents, running, stages, bits)
    sums = _finite(np.where(np.isfinite(products), products, 0.0), exponents, np.where(finite, running, 0.0), stages, bits)
    return np.where(finite, sums, products.sum(axis=2) + running)


def _finite(products: Array, exponents: Array, running: Array, stages: Stages, bits: int) -> Array:
    groups = [_group(products[:, :, i :: stages.groups], exponents[:, :, i :: stages.groups], bits) for i in range(stages.groups)]
    dot, dot_exponent = groups[0]
    for other, exponent in groups[1:]:
        larger = np.maximum(dot_exponent, exponent)
        dot, dot_exponent = _down(dot, larger - bits) + _down(other, larger - bits), larger
    exponent = exponent_of(running)
    larger = np.maximum(dot_exponent, exponent)
    kept = _down(running, larger - bits)
    if stages.drops_far:
        kept = np.where(exponent < larger - bits - 1, 0.0, kept)
    total = _down(dot, larger - stages.joined_bits - 1) + kept
    total = _down(total, exponent_of(total) - stages.joined_bits)
    return total.astype(np.float32).astype(np.float64)


def _group(products: Array, exponents: Array, bits: int) -> tuple[Array, Array]:
    """Sum over axis 2 of products cut toward zero `bits` below the largest exponent, and that exponent."""
    largest = _largest(products, exponents)
    unit = largest - bits
    return np.ldexp(np.trunc(np.ldexp(products, -unit[:, :, None])).sum(axis=2), unit), largest


def _largest(products: Array, exponents: Array) -> Array:
    """The largest exponent along axis 2; zeros have none."""
    return np.where(products != 0, exponents, _ZERO).max(axis=2)


def _down(values: Array, unit: Array) -> Array:
    """Cut downwards to a multiple of 2**unit."""
    return np.ldexp(np.floor(np.ldexp(values, -unit)), unit)


def exponent_of(values: Array) -> Array:
    """The exponent of f32 values, of zero and subnormals the least normal one."""
    _, exponents = np.frexp(values)
    return np.where(values == 0, _F32_LEAST, np.maximum(exponents - 1, _F32_LEAST))
