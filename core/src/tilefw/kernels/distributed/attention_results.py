"""Attention in float64 over keys of all ranks, with the greatest error of a kernel that goes through them block by block."""

from __future__ import annotations

import numpy as np

from tilefw.kernels.distributed.rank_results import ROUNDING, SINGLE, TINY, RankResult, wide

_WEIGHTS = {**ROUNDING, "float32": (0.0, 0.0)}  # of weights that go to a matrix unit; fp32 stays as it is


def attended(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, sight: np.ndarray | bool = True, roundings: int = 0
) -> RankResult:
    """softmax(q · kᵀ · scale) · v over the last two axes, of keys in `sight`; nought where none is.

    A score of d terms has 2d roundings (a matrix unit may cut) and 8 more of scale, subtraction and exp2; a relative error of its
    weight is as large. Weights are rounded to v's type; sums of as many terms as keys, and a factor for each block, are in fp32.
    `roundings` more of a weight are the caller's.
    """
    half, least = _WEIGHTS[v.dtype.name]
    q, k, v = wide(q), wide(k), wide(v)
    scores = np.where(sight, q @ k.swapaxes(-1, -2) * scale, -np.inf)
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    origin = np.where(np.isneginf(peak), 0.0, peak)
    shares = np.exp(scores - origin)
    total = shares.sum(-1, keepdims=True)
    shares = shares / np.where(total > 0, total, 1.0)
    value = shares @ v
    terms = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * scale
    of_scores = (2 * q.shape[-1] + 8) * SINGLE * terms + (8 + roundings) * SINGLE * (1 + np.abs(origin))
    relative = np.expm1(of_scores) + 4 * k.shape[-2] * SINGLE
    magnitudes = shares * relative
    bound = magnitudes @ np.abs(v) + magnitudes.sum(-1, keepdims=True) * np.abs(value)
    bound += (shares * half + np.where(shares > 0, least, 0)) @ np.abs(v)
    return RankResult(value, 1.01 * bound + TINY)
