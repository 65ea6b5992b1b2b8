"""Philox's random bits by Python's whole numbers, and the numbers made of them: no width of NumPy's takes part."""

from __future__ import annotations

import numpy as np

# Multipliers of a round and steps of the key (Salmon et al., SC11), by the width of a word.
_MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
_KEY_STEPS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


def philox(seed: int, offsets: np.ndarray, bits: int, rounds: int, split: bool) -> np.ndarray:
    """Four words of `bits` for each counter, an array of Python's integers; the counter's upper half is word 1 where `split`."""
    mask = (1 << bits) - 1
    zero = offsets * 0
    c0, c1, c2, c3 = offsets & mask, (offsets >> bits) & mask if split else zero, zero, zero
    k0, k1 = seed & mask, (seed >> 32) & mask if bits == 32 else 0
    for _ in range(rounds):
        low, high = _MULTIPLIERS[bits][0] * c0, _MULTIPLIERS[bits][1] * c2
        c0, c1, c2, c3 = (high >> bits) ^ c1 ^ k0, high & mask, (low >> bits) ^ c3 ^ k1, low & mask
        k0, k1 = (k0 + _KEY_STEPS[bits][0]) & mask, (k1 + _KEY_STEPS[bits][1]) & mask
    return np.stack([c0, c1, c2, c3])


def uniform(bits: np.ndarray) -> np.ndarray:
    """32 random bits as a number from 0 to below 1, exactly as `tl.rand` makes it."""
    signed = bits.astype(np.uint32).view(np.int32)
    return (np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)).astype(np.float64)


def rand4x(seed: int, counters: np.ndarray) -> np.ndarray:
    """`tl.rand4x` of whole numbers: four numbers for each, the first of which is `tl.rand`."""
    return uniform(philox(seed, counters.astype(object), 32, 10, split=True))
