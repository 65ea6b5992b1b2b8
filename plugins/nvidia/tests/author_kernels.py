"""Kernels as authors outside the project write them: what the library lacks, in one language feature after another."""

import tilefw
import tilefw.language as tl


@tilefw.jit
def flash(q, k, v, o, slopes, T, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIBI: tl.constexpr, WINDOW: tl.constexpr):
    """Causal attention over (heads, T, D) with slopes for distance (ALiBi) or a sliding window."""
    h, m, d = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + (h * T + m[:, None]) * D + d[None, :], m[:, None] < T, 0.0)
    peak, total = tl.full([BM], -1.0e30, tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for s in range(0, S, BN):
        n = s + tl.arange(0, BN)
        scores = tl.dot(queries, tl.load(k + (h * S + n[None, :]) * D + d[:, None], n[None, :] < S, 0.0)) * 0.125
        if ALIBI:
            scores += tl.load(slopes + h) * (n[None, :] - m[:, None]).to(tl.float32)
        seen = (n[None, :] < S) & (n[None, :] <= m[:, None])
        if WINDOW > 0:
            seen &= m[:, None] - n[None, :] < WINDOW
        scores = tl.where(seen, scores, -1.0e30)
        higher = tl.maximum(peak, tl.max(scores, 1))
        p, shrink = tl.where(seen, tl.exp(scores - higher[:, None]), 0.0), tl.exp(peak - higher)
        values = tl.load(v + (h * S + n[:, None]) * D + d[None, :], n[:, None] < S, 0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * shrink[:, None])
        total, peak = total * shrink + tl.sum(p, 1), higher
    tl.store(o + (h * T + m[:, None]) * D + d[None, :], acc / total[:, None], m[:, None] < T)


@tilefw.jit
def decode(q, k, v, part, lse, S, HEADS: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr):
    """One query a head in groups of G (GQA), keys split over programs: partial results and their log-sum-exp."""
    h, split, g, d = tl.program_id(0), tl.program_id(1), tl.arange(0, 16), tl.arange(0, D)
    share = tl.cdiv(tl.cdiv(S, SPLITS), BN) * BN
    queries = tl.load(q + (h * G + g[:, None]) * D + d[None, :], g[:, None] < G, 0.0)
    peak, total = tl.full((16,), -1e30, tl.float32), tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for s in tl.range(split * share, tl.minimum(split * share + share, S), BN, num_stages=3):
        n = s + tl.arange(0, BN)
        at = (h * S + n[:, None]) * D + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + at, n[:, None] < S, 0.0)))
        scores = tl.where(n[None, :] < S, scores, -1e30)
        higher = tl.maximum(peak, tl.max(scores, 1))
        p, shrink = tl.exp(scores - higher[:, None]), tl.exp(peak - higher)
        acc = tl.dot(p.to(tl.bfloat16), tl.load(v + at, n[:, None] < S, 0.0), acc * shrink[:, None])
        total, peak = total * shrink + tl.sum(p, 1), higher
    row = (split * HEADS + h) * G + g
    tl.store(part + row[:, None] * D + d[None, :], acc / total[:, None], g[:, None] < G)
    tl.store(lse + row, peak + tl.log(total), g < G)


@tilefw.jit
def rope_matmul(x, w, cos, sin, o, M, K, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """A projection whose neighbouring columns turn by an angle: split and interleave of an accumulator."""
    m, n, half = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N), tl.arange(0, N // 2)
    acc = tl.zeros((BM, N), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), 0.0)
        acc += tl.dot(a, tl.load(w + k[:, None] * N + n[None, :], k[:, None] < K, 0.0))
    even, odd = tl.split(tl.reshape(acc, (BM, N // 2, 2)))
    at = m[:, None] * (N // 2) + half[None, :]
    c, s = tl.load(cos + at, m[:, None] < M, 0.0), tl.load(sin + at, m[:, None] < M, 0.0)
    turned = tl.interleave(even * c - odd * s, even * s + odd * c)
    tl.store(o + m[:, None] * N + n[None, :], turned, m[:, None] < M)


@tilefw.jit
def w4a16(x, w, scales, o, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Weights of 4 bits, two rows a byte, with a scale for each BK rows: join, permute and reshape before a dot."""
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k, packed = start + tl.arange(0, BK), start // 2 + tl.arange(0, BK // 2)
        a = tl.load(x + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), 0.0)
        pair = tl.load(w + packed[:, None] * N + n[None, :], (packed[:, None] < K // 2) & (n[None, :] < N), 0)
        both = tl.join((pair & 15).to(tl.int8) - 8, (pair >> 4).to(tl.int8) - 8)
        b = tl.reshape(tl.permute(both, (0, 2, 1)), (BK, BN)).to(tl.float16)
        acc += tl.dot(a, b) * tl.load(scales + start // BK * N + n, n < N, 0.0)[None, :]
    tl.store(o + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


@tilefw.jit
def merge(mean, squares, count, mean_b, squares_b, count_b):
    total, apart = count + count_b, mean_b - mean
    part = tl.where(total > 0, count_b / tl.maximum(total, 1.0), 0.0)
    return mean + apart * part, squares + squares_b + apart * apart * count * part, total


@tilefw.jit
def batch_statistics(x, mean, variance, N, C, BN: tl.constexpr, BC: tl.constexpr):
    """Mean and variance of columns: a reduction of three tiles at once, by Chan's formula."""
    c, r = tl.program_id(0) * BC + tl.arange(0, BC), tl.arange(0, BN)
    inside = (r[:, None] < N) & (c[None, :] < C)
    values = tl.load(x + r[:, None] * C + c[None, :], inside, 0.0)
    m, squares, count = tl.reduce((values, tl.zeros((BN, BC), tl.float32), inside.to(tl.float32)), 0, merge)
    tl.store(mean + c, m, c < C)
    tl.store(variance + c, squares / count, c < C)


@tilefw.jit
def top_two(x, index, weight, n, E: tl.constexpr, B: tl.constexpr):
    """Routing: the two best of E experts (ties to the left) and the softmax weight of the best."""
    r, e = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, E)
    values = tl.load(x + r[:, None] * E + e[None, :], r[:, None] < n, 0.0)
    best, i = tl.max(values, 1, return_indices=True)
    j = tl.argmax(tl.where(e[None, :] == i[:, None], -float("inf"), values), 1)
    tl.store(index + r * 2, i, r < n)
    tl.store(index + r * 2 + 1, j, r < n)
    tl.store(weight + r, 1 / tl.sum(tl.exp(values - best[:, None]), 1), r < n)


@tilefw.jit
def experts(x, w, rows, expert, o, N, K, TOKENS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Blocks of gathered rows, each times its expert's matrix; a block without expert gives zeros."""
    block, n = tl.program_id(0), tl.arange(0, BN)
    e, r = tl.load(expert + block), tl.load(rows + block * BM + tl.arange(0, BM))
    acc = tl.zeros((BM, BN), tl.float32)
    if e >= 0:
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(x + r[:, None] * K + k[None, :], (r[:, None] < TOKENS) & (k[None, :] < K), 0.0)
            b = tl.load(w + (e * K + k[:, None]) * N + n[None, :], (k[:, None] < K) & (n[None, :] < N), 0.0)
            acc = tl.dot(a, b, acc)
    tl.store(o + r[:, None] * N + n[None, :], acc, (r[:, None] < TOKENS) & (n[None, :] < N))


@tilefw.jit
def convolution(x, w, o, N, C, H, W, F, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A 3x3 convolution with padding as an implicit GEMM: addresses by division, masks of four conditions."""
    m, f = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    image, row, column = m // (H * W), m % (H * W) // W, m % W
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, C * 9, BK):
        k = start + tl.arange(0, BK)
        y, z = row[:, None] + k[None, :] % 9 // 3 - 1, column[:, None] + k[None, :] % 3 - 1
        inside = (image[:, None] < N) & (k[None, :] < C * 9) & (y >= 0) & (y < H) & (z >= 0) & (z < W)
        a = tl.load(x + ((image[:, None] * C + k[None, :] // 9) * H + y) * W + z, inside, 0.0)
        acc = tl.dot(a, tl.load(w + f[None, :] * C * 9 + k[:, None], (f[None, :] < F) & (k[:, None] < C * 9), 0.0), acc)
    at = ((image[:, None] * F + f[None, :]) * H + row[:, None]) * W + column[:, None]
    tl.store(o + at, acc, (image[:, None] < N) & (f[None, :] < F))


@tilefw.jit
def gram(x, o, N, D: tl.constexpr, BN: tl.constexpr):
    """Xᵀ X, made symmetric: one loaded tile is both operands, once transposed, and so is the accumulator."""
    d, n = tl.arange(0, D), tl.arange(0, BN)
    acc = tl.zeros((D, D), tl.float32)
    for start in range(0, N, BN):
        rows = tl.load(x + (start + n[:, None]) * D + d[None, :], start + n[:, None] < N, 0.0)
        acc = tl.dot(rows.T, rows, acc)
    tl.store(o + d[:, None] * D + d[None, :], (acc + acc.T) * 0.5)


@tilefw.jit
def running_sum(x, o, n, B: tl.constexpr, W: tl.constexpr):
    """Sums down columns by a triangle of ones, the last row carried on from block to block."""
    i, w = tl.arange(0, B), tl.arange(0, W)
    carry, triangle = tl.zeros((W,), tl.float32), (i[:, None] >= i[None, :]).to(tl.float16)
    for start in range(0, n, B):
        at, inside = (start + i[:, None]) * W + w[None, :], start + i[:, None] < n
        sums = tl.dot(triangle, tl.load(x + at, inside, 0.0)) + carry[None, :]
        tl.store(o + at, sums, inside)
        carry = tl.sum(tl.where(i[:, None] == B - 1, sums, 0.0), 0)


@tilefw.jit
def block_sparse(values, columns, first, b, o, N, BS: tl.constexpr, BN: tl.constexpr):
    """Rows of blocks in CSR form: loop bounds and block addresses are loaded."""
    r, n, i = tl.program_id(0), tl.arange(0, BN), tl.arange(0, BS)
    acc = tl.zeros((BS, BN), tl.float32)
    for t in range(tl.load(first + r), tl.load(first + r + 1)):
        k = tl.load(columns + t) * BS + i[:, None]
        a = tl.load(values + t * BS * BS + i[:, None] * BS + i[None, :])
        acc = tl.dot(a, tl.load(b + k * N + n[None, :], n[None, :] < N, 0.0), acc)
    tl.store(o + (r * BS + i[:, None]) * N + n[None, :], acc, n[None, :] < N)


@tilefw.jit
def pack_signs(x, o, parity, n, B: tl.constexpr):
    """Eight signs a byte by xor_sum over shifted bits, and the parity of a whole block."""
    p = tl.program_id(0)
    i = p * B * 8 + tl.arange(0, B * 8)
    signs = (tl.load(x + i, i < n, 0.0) > 0).to(tl.int32)
    at = p * B + tl.arange(0, B)
    tl.store(o + at, tl.xor_sum(tl.reshape(signs, (B, 8)) << tl.arange(0, 8)[None, :], 1).to(tl.uint8), at < tl.cdiv(n, 8))
    tl.store(parity + p, tl.xor_sum(signs, 0))
