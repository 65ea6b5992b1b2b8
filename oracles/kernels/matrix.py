"""Matrix products in Triton's language: every type of matrix instruction that the language reaches."""


import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_a,
    stride_b,
    stride_c,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """C = A B, ragged in every dimension; one program a tile of C."""
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    a_at = a_ptr + row[:, None] * stride_a + inner[None, :]
    b_at = b_ptr + inner[:, None] * stride_b + column[None, :]
    total = tl.zeros((TILE_M, TILE_N), ACCUMULATOR)
    for k in range(0, tl.cdiv(K, TILE_K)):
        left = K - k * TILE_K
        a = tl.load(a_at, mask=(row[:, None] < M) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_at, mask=(inner[:, None] < left) & (column[None, :] < N), other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_at += TILE_K
        b_at += TILE_K * stride_b
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c_ptr + row[:, None] * stride_c + column[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def matmul_transposed(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = relu(A B^T) with B stored by rows of N; unmasked, in groups of two rows of tiles for reuse of B."""
    tiles_m = M // TILE_M
    tiles_n = N // TILE_N
    group = tl.program_id(0) // (2 * tiles_n)
    height = min(tiles_m - group * 2, 2)
    within = tl.program_id(0) % (2 * tiles_n)
    row = (group * 2 + within % height) * TILE_M + tl.arange(0, TILE_M)
    column = (within // height) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for k in range(0, K, TILE_K):
        a = tl.load(a_ptr + row[:, None] * K + k + inner[None, :])
        b = tl.load(b_ptr + column[:, None] * K + k + inner[None, :])
        total = tl.dot(a, tl.trans(b), total)
    tl.store(c_ptr + row[:, None] * N + column[None, :], tl.maximum(total, 0.0).to(tl.float16))


@triton.jit
def batched_matmul(a_ptr, b_ptr, c_ptr, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    a_at = a_ptr + batch * M * K + row[:, None] * K + inner[None, :]
    b_at = b_ptr + batch * K * N + inner[:, None] * N + column[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for _ in range(0, K, TILE_K):
        total += tl.dot(tl.load(a_at), tl.load(b_at))
        a_at += TILE_K
        b_at += TILE_K * N
    tl.store(c_ptr + batch * M * N + row[:, None] * N + column[None, :], total.to(tl.float16))


@triton.jit
def grouped_matmul(a_ptr, b_ptr, c_ptr, starts_ptr, groups, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """Rows of A in ragged groups, each with its own B; the programs walk a group's tiles in strides of the grid."""
    inner = tl.arange(0, TILE_K)
    column = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    for group in range(groups):
        first = tl.load(starts_ptr + group)
        last = tl.load(starts_ptr + group + 1)
        for tile in range(first + tl.program_id(0) * TILE_M, last, tl.num_programs(0) * TILE_M):
            row = tile + tl.arange(0, TILE_M)
            total = tl.zeros((TILE_M, TILE_N), tl.float32)
            for k in range(0, K, TILE_K):
                a = tl.load(a_ptr + row[:, None] * K + (k + inner)[None, :], mask=row[:, None] < last, other=0.0)
                b = tl.load(b_ptr + group * K * N + (k + inner)[:, None] * N + column[None, :])
                total = tl.dot(a, b, total)
            tl.store(c_ptr + row[:, None] * N + column[None, :], total.to(tl.float16), mask=row[:, None] < last)


@triton.jit
def dot_3d(a_ptr, b_ptr, c_ptr, BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch = tl.arange(0, BATCH)[:, None, None]
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + batch * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + batch * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c_ptr + batch * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(a, b))


@triton.jit
def dot_scaled(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, A: tl.constexpr, B: tl.constexpr, A_BYTES: tl.constexpr, B_BYTES: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    a_k = tl.arange(0, A_BYTES)
    b_k = tl.arange(0, B_BYTES)
    group = tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * A_BYTES + a_k[None, :])
    b = tl.load(b_ptr + n[None, :] * B_BYTES + b_k[:, None])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + group[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + group[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot_scaled(a, a_scale, A, b, b_scale, B))


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    HEAD: tl.constexpr,
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Softmax(Q K^T scale) V with a running maximum and sum; one program a tile of queries of one head."""
    base = tl.program_id(1) * length * HEAD
    query = tl.program_id(0) * TILE_Q + tl.arange(0, TILE_Q)
    lane = tl.arange(0, HEAD)
    key = tl.arange(0, TILE_K)
    q = tl.load(q_ptr + base + query[:, None] * HEAD + lane[None, :], mask=query[:, None] < length, other=0.0)
    top = tl.full((TILE_Q,), -float("inf"), tl.float32)
    mass = tl.zeros((TILE_Q,), tl.float32)
    total = tl.zeros((TILE_Q, HEAD), tl.float32)
    end = length
    if CAUSAL:
        end = min(length, (tl.program_id(0) + 1) * TILE_Q)
    for start in range(0, end, TILE_K):
        at = start + key
        k = tl.load(k_ptr + base + at[:, None] * HEAD + lane[None, :], mask=at[:, None] < length, other=0.0)
        score = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)
        seen = at[None, :] < length
        if CAUSAL:
            seen = seen & (at[None, :] <= query[:, None])
        score = tl.where(seen, score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(top - higher)
        mass = mass * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + base + at[:, None] * HEAD + lane[None, :], mask=at[:, None] < length, other=0.0)
        total = tl.dot(weight.to(v.dtype), v, total * shrink[:, None])
        top = higher
    total = total / mass[:, None]
    tl.store(
        out_ptr + base + query[:, None] * HEAD + lane[None, :], total.to(out_ptr.dtype.element_ty), mask=query[:, None] < length
    )
