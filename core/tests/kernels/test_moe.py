"""The kernels of a mixture of experts make one layer: route, sort by expert, multiply up and down, sum each token's choices."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilefw
from tilefw.kernels.moe_matmul import moe_matmul
from tilefw.kernels.moe_scatter import moe_scatter
from tilefw.kernels.moe_topk import moe_topk

TOKENS, EXPERTS, TOP_K, WIDTH, HIDDEN = 21, 6, 2, 24, 40
BLOCKS = {"INPUT_PRECISION": "ieee", "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "BLOCK_E": 8}


def product(rows: Any, matrices: Any, choices: Any, offsets: Any, weights: Any, per_row: int, weighted: bool) -> np.ndarray:
    experts, terms, columns = matrices.shape
    out = np.empty((choices.size, columns), np.float32)
    grid = (tilefw.cdiv(choices.size, 16) + experts, tilefw.cdiv(columns, 16))
    moe_matmul[grid](
        rows, matrices, choices, offsets, weights, out, experts, columns, terms, terms, terms * columns, columns, 1, columns,
        PER_ROW=per_row, WEIGHTED=weighted, **BLOCKS,
    )
    return out


def test_a_layer_is_the_weighted_sum_of_each_tokens_experts() -> None:
    rng = np.random.default_rng(3)
    x, router = rng.standard_normal((TOKENS, WIDTH), np.float32), rng.standard_normal((WIDTH, EXPERTS), np.float32)
    up, down = rng.standard_normal((EXPERTS, WIDTH, HIDDEN), np.float32), rng.standard_normal((EXPERTS, HIDDEN, WIDTH), np.float32)
    logits = x @ router
    size = TOKENS * TOP_K
    experts, weights = np.empty((TOKENS, TOP_K), np.int32), np.empty((TOKENS, TOP_K), np.float32)
    counts = np.empty((tilefw.cdiv(TOKENS, 8), EXPERTS), np.int32)
    places, choices, offsets = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(EXPERTS + 1, np.int32)
    with tilefw.target("reference"):
        moe_topk[(len(counts),)](
            logits, experts, weights, counts, TOKENS, EXPERTS, TOP_K=TOP_K, KEPT=TOP_K, AMONG_CHOSEN=True, BLOCK_T=8, BLOCK_E=8,
        )
        moe_scatter[(len(counts),)](
            experts, counts, places, choices, offsets, size, EXPERTS, len(counts), BLOCK=8 * TOP_K, BLOCK_E=8, BLOCK_B=2,
        )
        hidden = np.maximum(product(x, up, choices, offsets, weights, TOP_K, False), 0)
        out = product(hidden, down, choices, offsets, weights, 1, True).reshape(TOKENS, TOP_K, WIDTH).sum(axis=1)

    for token in range(TOKENS):
        mine = np.argsort(-logits[token])[:TOP_K]
        shares = np.exp(logits[token, mine] - logits[token].max())
        expected = sum(
            share * (np.maximum(x[token] @ up[e], 0) @ down[e]) for e, share in zip(mine, shares / shares.sum(), strict=True)
        )
        np.testing.assert_allclose(out[token], expected, rtol=1e-4, atol=1e-4)
