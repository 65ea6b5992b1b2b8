"""Kernels of outside authors: each chip within the reference's bounds, with every check; the reference as NumPy has it."""

import author_kernels as kernels
import ml_dtypes
import numpy as np
import pytest

import tilefw

RNG = np.random.default_rng(7)
F16, BF16, F32 = np.float16, ml_dtypes.bfloat16, np.float32


def normal(*shape, dtype=F32, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def flash(alibi, window):
    heads, t, d = 2, 75, 32
    q, k, v = (normal(heads, t, d, dtype=F16) for _ in range(3))
    slopes, i = np.array([0.1, 0.3], F32), np.arange(t)
    scores = np.einsum("htd,hsd->hts", q.astype(float), k.astype(float)) * 0.125
    scores = scores + slopes[:, None, None] * (i[None, :] - i[:, None]) * alibi
    seen = (i[None, :] <= i[:, None]) & (i[:, None] - i[None, :] < (window or t))
    out = np.einsum("hts,hsd->htd", softmax(np.where(seen, scores, -1e30)), v.astype(float))
    constants = {"T": t, "S": t, "D": d, "BM": 64, "BN": 32, "ALIBI": alibi, "WINDOW": window}
    arrays = {"q": q, "k": k, "v": v, "o": np.empty((heads, t, d), F32), "slopes": slopes}
    return kernels.flash, (2, heads), arrays, constants, {"o": out}, F16


def decode():
    heads, group, s, d, splits, share = 2, 6, 201, 64, 3, 96
    q, k, v = normal(heads, group, d, dtype=BF16), normal(heads, s, d, dtype=BF16, scale=0.2), normal(heads, s, d, dtype=BF16)
    scores = np.einsum("hgd,hsd->hgs", q.astype(float), k.astype(float))
    parts = [slice(p * share, p * share + share) for p in range(splits)]
    part = np.stack([np.einsum("hgs,hsd->hgd", softmax(scores[..., p]), v.astype(float)[:, p]) for p in parts])
    lse = np.stack([np.log(np.exp(scores[..., p]).sum(-1)) for p in parts])
    arrays = {"q": q, "k": k, "v": v, "part": np.empty(part.shape, F32), "lse": np.empty(lse.shape, F32)}
    sizes = {"S": s, "HEADS": heads, "G": group, "D": d, "BN": 32, "SPLITS": splits}
    return kernels.decode, (heads, splits), arrays, sizes, {"part": part, "lse": lse}, BF16


def rope_matmul():
    m, k, n = 45, 72, 64
    x, w, angle = normal(m, k, dtype=F16), normal(k, n, dtype=F16), RNG.random((m, n // 2))
    cos, sin = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    y = x.astype(float) @ w.astype(float)
    even, odd, c, s = y[:, ::2], y[:, 1::2], cos.astype(float), sin.astype(float)
    out = np.stack([even * c - odd * s, even * s + odd * c], -1).reshape(m, n)
    arrays = {"x": x, "w": w, "cos": cos, "sin": sin, "o": np.empty((m, n), F32)}
    return kernels.rope_matmul, (2,), arrays, {"M": m, "K": k, "N": n, "BM": 32, "BK": 32}, {"o": out}, F32


def w4a16():
    m, n, k = 20, 48, 128
    x, w, scales = normal(m, k, dtype=F16), RNG.integers(0, 256, (k // 2, n)).astype(np.uint8), RNG.random((k // 32, n)).astype(F32)
    whole = (np.stack([w & 15, w >> 4], 1).reshape(k, n).astype(float) - 8) * np.repeat(scales.astype(float), 32, 0)
    arrays = {"x": x, "w": w, "scales": scales, "o": np.empty((m, n), F32)}
    return kernels.w4a16, (1,), arrays, {"M": m, "N": n, "K": k, "BM": 32, "BN": 64, "BK": 32}, {"o": x.astype(float) @ whole}, F32


def batch_statistics():
    x = normal(77, 37) + F32(3)
    arrays = {"x": x, "mean": np.empty(37, F32), "variance": np.empty(37, F32)}
    out = {"mean": x.astype(float).mean(0), "variance": x.astype(float).var(0)}
    return kernels.batch_statistics, (3,), arrays, {"N": 77, "C": 37, "BN": 128, "BC": 16}, out, F32


def top_two():
    x = RNG.integers(0, 9, (30, 16)).astype(F32)
    arrays = {"x": x, "index": np.empty((30, 2), np.int32), "weight": np.empty(30, F32)}
    out = {"index": np.argsort(-x, 1, kind="stable")[:, :2], "weight": softmax(x.astype(float)).max(1)}
    return kernels.top_two, (2,), arrays, {"n": 30, "E": 16, "B": 16}, out, F32


def experts():
    tokens, n, k = 40, 50, 72
    x, w, order = normal(tokens, k, dtype=F16), normal(3, k, n, dtype=F16), RNG.permutation(tokens)
    rows, expert, out = np.full((4, 16), tokens, np.int32), np.array([2, 0, -1, 1], np.int32), np.zeros((tokens, n))
    for block, part in enumerate(np.split(order, [14, 24, 26])):
        rows[block, : len(part)] = part
        if expert[block] >= 0:
            out[part] = x[part].astype(float) @ w[expert[block]].astype(float)
    arrays = {"x": x, "w": w, "rows": rows, "expert": expert, "o": np.empty((tokens, n), F32)}
    return kernels.experts, (4,), arrays, {"N": n, "K": k, "TOKENS": tokens, "BM": 16, "BN": 64, "BK": 32}, {"o": out}, F32


def convolution():
    n, c, h, w, f = 2, 5, 7, 9, 17
    x, weights = normal(n, c, h, w, dtype=F16), normal(f, c, 3, 3, dtype=F16)
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    arrays = {"x": x, "w": weights, "o": np.empty((n, f, h, w), F32)}
    sizes = {"N": n, "C": c, "H": h, "W": w, "F": f, "BM": 64, "BN": 32, "BK": 32}
    return kernels.convolution, (2,), arrays, sizes, {"o": np.einsum("nchwij,fcij->nfhw", windows, weights.astype(float))}, F32


def gram(dtype):
    x = normal(101, 32, dtype=dtype)
    out = x.astype(float).T @ x.astype(float)
    return kernels.gram, (1,), {"x": x, "o": np.empty((32, 32), F32)}, {"N": 101, "D": 32, "BN": 32}, {"o": out}, F32


def running_sum():
    x = normal(70, 16, dtype=F16)
    arrays = {"x": x, "o": np.empty((70, 16), F32)}
    return kernels.running_sum, (1,), arrays, {"n": 70, "B": 32, "W": 16}, {"o": x.astype(float).cumsum(0)}, F32


def block_sparse():
    mask = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    values, b = normal(int(mask.sum()), 16, 16, dtype=F16), normal(80, 40, dtype=F16)
    whole = np.zeros((64, 80))
    for value, (r, c) in zip(values, np.argwhere(mask), strict=True):
        whole[r * 16 : r * 16 + 16, c * 16 : c * 16 + 16] = value
    first, columns = np.r_[0, mask.sum(1).cumsum()].astype(np.int32), np.nonzero(mask)[1].astype(np.int32)
    arrays = {"values": values, "columns": columns, "first": first, "b": b, "o": np.empty((64, 40), F32)}
    return kernels.block_sparse, (4,), arrays, {"N": 40, "BS": 16, "BN": 64}, {"o": whole @ b.astype(float)}, F32


def pack_signs():
    x = normal(700)
    out = {"o": np.packbits(x > 0, bitorder="little"), "parity": [(x[i : i + 256] > 0).sum() % 2 for i in range(0, 700, 256)]}
    arrays = {"x": x, "o": np.empty(88, np.uint8), "parity": np.empty(3, np.int32)}
    return kernels.pack_signs, (3,), arrays, {"n": 700, "B": 32}, out, None


def apart(actual, expected):
    """Where an element is further from the reference than its bound: by how much. Without a bound none may be."""
    assert not expected.free.any() and np.isfinite(expected.bound).all()
    return np.maximum(np.abs(np.asarray(actual, np.float64) - expected.value) - expected.bound, 0).max()


@pytest.mark.parametrize(
    "make, options, warps, stages",
    [
        (flash, (True, 0), 4, 3), (flash, (False, 20), 2, 2), (decode, (), 4, 3), (decode, (), 16, 3), (rope_matmul, (), 2, 4),
        (w4a16, (), 4, 3), (batch_statistics, (), 8, 3), (top_two, (), 1, 3), (top_two, (), 4, 3),
        (experts, (), 8, 5), (experts, (), 1, 2),
        (convolution, (), 4, 2), (gram, (F16,), 4, 3), (gram, (F32,), 4, 2), (gram, (BF16,), 8, 4), (running_sum, (), 4, 3),
        (block_sparse, (), 4, 3), (block_sparse, (), 2, 1), (pack_signs, (), 2, 3),
    ],
)
def test_a_kernel_agrees_with_the_reference_and_with_numpy(make, options, warps, stages, chip):
    kernel, grid, arrays, others, expected, narrowest = make(*options)
    reference = tilefw.reference(kernel, grid, **arrays, **others)
    kernel[grid](**arrays, **others, num_warps=warps, num_stages=stages, target=chip.target, checks="all")
    for name, value in expected.items():
        assert apart(arrays[name], reference[name]) == 0, f"{chip}'s {name}"
        # The reference rounds where the kernel does; NumPy does not: a few units of the narrowest type that the kernel rounds to.
        unit = 0 if narrowest is None else float(ml_dtypes.finfo(narrowest).eps)
        assert apart(value, reference[name]) <= 4 * unit * np.abs(value).max(), f"NumPy's {name}"
