"""What kernels of attention over ranks share: a tile of queries takes in the keys and values of one part."""

from __future__ import annotations

import tilefw
import tilefw.language as tl
from tilefw.kernels.online_softmax import take_scores


@tilefw.jit
def take_part(
    q, k_ptr, v_ptr, acc, peak, total, head, queries, first_key, s, d, end, scale, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """(acc, peak, total) of a tile of queries behind one part's keys."""
    dims = tl.arange(0, BLOCK_D)
    for begin in range(0, end, BLOCK_N):
        keys = begin + tl.arange(0, BLOCK_N)
        offsets = (head * s + keys[:, None]) * d + dims[None, :]
        inside = (keys[:, None] < s) & (dims[None, :] < d)
        k, v = tl.load(k_ptr + offsets, mask=inside, other=0), tl.load(v_ptr + offsets, mask=inside, other=0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = keys[None, :] < s
        if CAUSAL:
            seen = seen & (first_key + keys[None, :] <= queries[:, None])
        weights, shrink, peak, total = take_scores(tl.where(seen, scores, -float("inf")), peak, total)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
    return acc, peak, total
