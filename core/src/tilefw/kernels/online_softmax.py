"""The step of an online softmax that several kernels of attention take, and NumPy's own over the same blocks of keys.

Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. Scores are in powers of two, which chips have.
"""

from __future__ import annotations

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@tilefw.jit
def take_scores(scores, peak, total):
    """(weights of a block of keys, the factor by which sums so far shrink, peak, total) of rows that may have seen no key yet."""
    higher = tl.maximum(peak, tl.max(scores, axis=1))
    origin = tl.where(higher == -float("inf"), 0.0, higher)  # else a row without keys would be inf - inf
    weights = tl.exp2(scores - origin[:, None])
    shrink = tl.exp2(peak - origin)
    return weights, shrink, higher, total * shrink + tl.sum(weights, axis=1)


def base_two(factor: float) -> float:
    """`factor` for powers of two, one fp32 number that was rounded twice: a kernel has no other choice."""
    return float(np.float32(factor) * np.float32(LOG2_E.value))


def attend(
    scores: np.ndarray, v: np.ndarray, block: int, name: str, peak: np.ndarray, total: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sums, peak, total) over blocks of keys from this peak and total on; each block's weights are rounded to type `name`."""
    acc = np.zeros((*scores.shape[:-1], v.shape[-1]))
    for start in range(0, scores.shape[-1], block):
        part = scores[..., start : start + block]
        higher = np.maximum(peak, part.max(axis=-1))
        origin = np.where(np.isneginf(higher), 0.0, higher)
        weights, shrink = np.exp2(part - origin[..., None]), np.exp2(peak - origin)
        total = total * shrink + weights.sum(axis=-1)
        rounded = formats.decode(formats.encode(weights, name), name)
        acc = acc * shrink[..., None] + rounded @ v[..., start : start + block, :]
        peak = higher
    return acc, peak, total
