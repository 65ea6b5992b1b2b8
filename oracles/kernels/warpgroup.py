"""Matrix products in Triton's language whose tiles are large enough for products of warpgroups, beside those of `matrix`."""


import triton
import triton.language as tl


@triton.jit
def two_products(a_ptr, b_ptr, c_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HEAD: tl.constexpr):
    """(A B) C, the sums of the first product rounded and taken as the left factor of the second."""
    m, n, k, head = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, HEAD)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.load(c_ptr + n[:, None] * HEAD + head[None, :])
    inner = tl.dot(a, b).to(c.dtype)
    tl.store(out_ptr + m[:, None] * HEAD + head[None, :], tl.dot(inner, c))


@triton.jit
def attention_backward_keys(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, delta_ptr, grad_k_ptr, grad_v_ptr, length, scale, HEAD: tl.constexpr,
    TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):
    """Gradients of keys and values; `lse` is in powers of two, `delta` the sum over each row of gradient times output."""
    rows = tl.program_id(1) * length
    key = tl.program_id(0) * TILE_K + tl.arange(0, TILE_K)
    lane = tl.arange(0, HEAD)
    at_keys = (rows + key[:, None]) * HEAD + lane[None, :]
    k = tl.load(k_ptr + at_keys, mask=key[:, None] < length, other=0.0)
    v = tl.load(v_ptr + at_keys, mask=key[:, None] < length, other=0.0)
    grad_k = tl.zeros((TILE_K, HEAD), tl.float32)
    grad_v = tl.zeros((TILE_K, HEAD), tl.float32)
    for start in range(0, length, TILE_Q):
        query = start + tl.arange(0, TILE_Q)
        at = (rows + query[:, None]) * HEAD + lane[None, :]
        q = tl.load(q_ptr + at, mask=query[:, None] < length, other=0.0)
        grad = tl.load(grad_ptr + at, mask=query[:, None] < length, other=0.0)
        lse = tl.load(lse_ptr + rows + query, mask=query < length, other=float("inf"))
        delta = tl.load(delta_ptr + rows + query, mask=query < length, other=0.0)
        weight = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * 1.4426950408889634) - lse[None, :])
        grad_v = tl.dot(weight.to(q.dtype), grad, grad_v)
        grad_score = weight * (tl.dot(v, tl.trans(grad)) - delta[None, :])
        grad_k = tl.dot(grad_score.to(q.dtype), q, grad_k)
    tl.store(grad_v_ptr + at_keys, grad_v.to(v.dtype), mask=key[:, None] < length)
    tl.store(grad_k_ptr + at_keys, (grad_k * scale).to(k.dtype), mask=key[:, None] < length)


@triton.jit
def attention_backward_queries(
    q_ptr, k_ptr, v_ptr, grad_ptr, lse_ptr, delta_ptr, grad_q_ptr, length, scale, HEAD: tl.constexpr, TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
):
    rows = tl.program_id(1) * length
    query = tl.program_id(0) * TILE_Q + tl.arange(0, TILE_Q)
    lane = tl.arange(0, HEAD)
    at_queries = (rows + query[:, None]) * HEAD + lane[None, :]
    inside = query < length
    q = tl.load(q_ptr + at_queries, mask=inside[:, None], other=0.0)
    grad = tl.load(grad_ptr + at_queries, mask=inside[:, None], other=0.0)
    lse = tl.load(lse_ptr + rows + query, mask=inside, other=float("inf"))
    delta = tl.load(delta_ptr + rows + query, mask=inside, other=0.0)
    total = tl.zeros((TILE_Q, HEAD), tl.float32)
    for start in range(0, length, TILE_K):
        key = start + tl.arange(0, TILE_K)
        at = (rows + key[:, None]) * HEAD + lane[None, :]
        k = tl.load(k_ptr + at, mask=key[:, None] < length, other=0.0)
        v = tl.load(v_ptr + at, mask=key[:, None] < length, other=0.0)
        weight = tl.exp2(tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634) - lse[:, None])
        weight = tl.where(key[None, :] < length, weight, 0.0)
        grad_score = weight * (tl.dot(grad, tl.trans(v)) - delta[:, None])
        total = tl.dot(grad_score.to(k.dtype), k, total)
    tl.store(grad_q_ptr + at_queries, (total * scale).to(q.dtype), mask=inside[:, None])


@triton.jit
def experts(
    x_ptr, w_ptr, out_ptr, rows_ptr, expert_ptr, tokens, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    """Tiles of rows in the order of their experts, each row found by its number, multiplied by its tile's expert."""
    row = tl.load(rows_ptr + tl.program_id(0) * TILE_M + tl.arange(0, TILE_M))
    expert = tl.load(expert_ptr + tl.program_id(0)).to(tl.int64)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    k = tl.arange(0, TILE_K)
    here = row < tokens
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, K, TILE_K):
        x = tl.load(x_ptr + row[:, None] * K + (start + k)[None, :], mask=here[:, None], other=0.0)
        w = tl.load(w_ptr + expert * K * N + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(x, w, total)
    tl.store(out_ptr + row[:, None] * N + n[None, :], total.to(out_ptr.dtype.element_ty), mask=here[:, None])
