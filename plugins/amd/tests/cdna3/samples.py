"""Operands that are hard to sum: wide exponents, cancellation, subnormals, zeros of both signs, infinities, NaN, overflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cdna3.matrices import NUMPY

Sample = Callable[[np.random.Generator, str, tuple[int, ...]], np.ndarray]
BITS = {"f16": 16, "bf16": 16, "xf32": 32, "f32": 32, "f64": 64, "fp8": 8, "bf8": 8}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
# Exponent bits and all bits below the sign, to make patterns by hand.
_MANTISSA = {"f16": 10, "bf16": 7, "xf32": 23, "f32": 23, "f64": 52, "fp8": 3, "bf8": 2}


def values(patterns: np.ndarray, element: str) -> np.ndarray:
    return np.ascontiguousarray(patterns.astype(UNSIGNED[BITS[element]])).view(NUMPY[element])


def ordinary(rng: np.random.Generator, element: str, size: tuple[int, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return rng.standard_normal(size).astype(NUMPY[element])


def wide(rng: np.random.Generator, element: str, size: tuple[int, ...]) -> np.ndarray:
    """Exponents over most of what f16 has, so that small terms fall off the end of the adder."""
    with np.errstate(all="ignore"):
        return (rng.standard_normal(size) * 2.0 ** rng.integers(-13, 14, size)).astype(NUMPY[element])


def anything(rng: np.random.Generator, element: str, size: tuple[int, ...]) -> np.ndarray:
    """Random bits: all exponents, so that products over- and underflow, and NaN now and then."""
    return values(rng.integers(0, 1 << min(63, BITS[element]), size, np.uint64), element)


def subnormal(rng: np.random.Generator, element: str, size: tuple[int, ...]) -> np.ndarray:
    """The least exponents only: subnormals and the smallest normal numbers."""
    low = rng.integers(0, 1 << _MANTISSA[element] + 2, size, np.uint64)
    sign = rng.integers(0, 2, size, np.uint64) << np.uint64(BITS[element] - 1)
    return values(low | sign, element)


def special(rng: np.random.Generator, element: str, size: tuple[int, ...]) -> np.ndarray:
    """Mostly ordinary, with zeros of both signs, infinities and NaN (where the format has them) strewn in."""
    chosen = ordinary(rng, element, size)
    with np.errstate(all="ignore"):
        odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]).astype(NUMPY[element])
    return np.where(rng.random(size) < 0.04, rng.choice(odd, size), chosen)


SAMPLES: dict[str, Sample] = {f.__name__: f for f in (ordinary, wide, anything, subnormal, special)}


def cancelling(rng: np.random.Generator, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and B [.., m, k], [.., k, n] whose products of even and odd k cancel, but for a little."""
    a, b = a.copy(), b.copy()
    half = a.shape[-1] // 2
    a[..., 1::2], b[..., 1::2, :] = -a[..., : 2 * half : 2], b[..., : 2 * half : 2, :]
    kept = rng.random(a.shape) < 0.1
    with np.errstate(all="ignore"):
        a[kept] = (a[kept].astype(np.float64) * 1.25).astype(a.dtype)
    return a, b
