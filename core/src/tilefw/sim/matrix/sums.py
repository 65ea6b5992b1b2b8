"""How matrix units of real chips sum (`numerics="hw"`): aligned, cut, added exactly, rounded once a block; or fused step by step.

The model is MMA-Sim's (arXiv 2511.10909, "T-FDPA"): a product's exponent is the sum of its factors' exponents, not normalised
again, so a product's significand lies in [1, 4); subnormal factors have the least normal exponent.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.floats import Array, decode, encode, fma_f32, fma_f64
from tilefw.sim.matrix.fragments import Accumulation, Fragment
from tilefw.sim.matrix.stages import staged_sum

# Least normal exponent of a format.
_LEAST = {
    "f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "f8E5M2": -14, "f8E4M3FN": -6, "f8E5M2FNUZ": -15, "f8E4M3FNUZ": -7,
}
# What MMA-Sim's sums give for NaN, in f32: all ones but the sign.
_NAN = np.array([0x7FFFFFFF], np.uint32).view(np.float32).astype(np.float64)[0]
# A zero term still has an exponent: MMA-Sim's table has -131, -132, -133 for 23, 24, 25 fraction bits and f32 (-19, -20, -21, f16).
_ZERO_TERM = 18


def hardware_sum(a: Array, b: Array, c: Array, maps: tuple[Fragment, ...], accumulation: Accumulation) -> Array:
    """A x B + C, each [waves, rows, columns], block after block of k; the result as f64 holding values of the result's format."""
    total = np.broadcast_to(c.astype(np.float64), (max(len(a), len(b), len(c)), *c.shape[1:]))
    if not accumulation.fraction_bits:
        return _chain(a, b, c)
    k, fmt = a.shape[2], maps[2].fmt
    block = accumulation.block or k
    exponents_a, exponents_b = _exponents(a, maps[0].fmt), _exponents(b, maps[1].fmt)
    for first in range(0, k, block):
        span = slice(first, first + block)
        terms = a[:, :, span, None].astype(np.float64) * b[:, None, span, :]
        exponents = exponents_a[:, :, span, None] + exponents_b[:, None, span, :]
        shape = (len(total), *terms.shape[1:])
        if accumulation.stages is not None:
            total = staged_sum(np.broadcast_to(terms, shape), np.broadcast_to(exponents, shape), total, accumulation)
            continue
        total = _aligned_sum(
            np.concatenate([np.broadcast_to(terms, shape), total[:, :, None, :]], axis=2),
            np.concatenate([np.broadcast_to(exponents, shape), _exponents(total, fmt)[:, :, None, :]], axis=2),
            accumulation,
        )
        fmt = accumulation.result
    return np.where(np.isnan(total), _NAN, total)


def _chain(a: Array, b: Array, total: Array) -> Array:
    """One fused multiply-add after the other, in the order of k, in the operands' own format (f32 or f64)."""
    fused = fma_f32 if total.dtype == np.float32 else fma_f64
    for place in range(a.shape[2]):
        x, y, z = np.broadcast_arrays(a[:, :, place, None], b[:, None, place, :], total)
        total = fused(np.ascontiguousarray(x), np.ascontiguousarray(y), np.ascontiguousarray(z))
    return total


def _exponents(values: Array, fmt: str) -> Array:
    """Exponent of each value with its significand in [1, 2), not below the format's least."""
    _, exponents = np.frexp(np.where(np.isfinite(values), values, 1.0))
    return np.maximum(exponents - 1, _LEAST[fmt])


def _aligned_sum(terms: Array, exponents: Array, accumulation: Accumulation) -> Array:
    """The sum over axis 2, cut `fraction_bits` below the largest exponent and rounded to the result's format."""
    zero = _LEAST[accumulation.result] - (accumulation.zero_fraction_bits or accumulation.fraction_bits) + _ZERO_TERM
    largest = np.where(terms != 0, exponents, zero).max(axis=2)
    unit = largest - accumulation.fraction_bits
    finite = np.isfinite(terms).all(axis=2)
    scaled = np.ldexp(np.where(np.isfinite(terms), terms, 0.0), -unit[:, :, None])
    cut = np.trunc(scaled) if accumulation.alignment_rounding == "rz" else np.rint(scaled)
    exact = np.ldexp(cut.sum(axis=2), unit)
    rounded = _round(exact, accumulation) + 0.0  # a sum of zero is +0
    return np.where(finite, rounded, terms.sum(axis=2))


def _round(exact: Array, accumulation: Accumulation) -> Array:
    fmt = accumulation.result
    if accumulation.result_fraction_bits:
        exact = _shortened(exact, accumulation.result_fraction_bits, _LEAST[fmt])
    rounded = decode(encode(exact, fmt, accumulation.result_rounding), fmt).astype(np.float64)
    if accumulation.result_rounding == "rn":
        return rounded
    # What is too large overflows to infinity even when rounded toward zero.
    return np.where(np.abs(exact) >= 2.0 ** (1 - _LEAST[fmt] + 1), np.copysign(np.inf, exact), rounded)


def _shortened(values: Array, fraction_bits: int, least: int) -> Array:
    """Values cut toward zero to `fraction_bits` bits behind the first, as subnormals below 2^least."""
    _, exponents = np.frexp(values)
    unit = np.maximum(exponents - 1, least) - fraction_bits
    return np.ldexp(np.trunc(np.ldexp(values, -unit)), unit)
