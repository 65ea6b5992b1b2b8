"""Kernels as people write them for Triton run with only the import changed: softmax, matmul, layer norm, attention.

They use what such kernels use: grouped program ids, autotune and heuristics, activations by name, loops with stages and hints,
helpers with constexpr stages that hand several tiles back, pointers that walk, wrapped and masked rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw as triton
import tilefw.language as tl
from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target


@pytest.fixture(autouse=True, params=["reference", "nvidia-sm80", "amd-cdna3"])
def _on_each_target(request: Any) -> Any:
    try:
        find_target(request.param)
    except KernelError:
        pytest.skip(f"{request.param} is not installed")
    with triton.target(request.param):
        yield


def normal(*shape: int, dtype: Any = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@triton.jit
def softmax_rows(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        cols = tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
        shifted = x - tl.max(x, axis=0)
        powers = tl.exp(shifted)
        tl.store(out_ptr + row * out_stride + cols, powers / tl.sum(powers, axis=0), mask=mask)


def test_softmax_over_a_persistent_grid() -> None:
    x = normal(7, 100, dtype=np.float32)
    y = np.zeros_like(x)
    softmax_rows[(3,)](y, x, 100, 100, 7, 100, BLOCK=triton.next_power_of_2(100), num_stages=4, num_warps=8)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def configurations() -> list[triton.Config]:
    return [
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 2}, num_stages=3, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP_M": 8}, num_stages=4, num_warps=2),
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, bias_ptr,
    M, N, K,
    stride_am, stride_ak,  #
    stride_bk, stride_bn,  #
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,  #
    GROUP_M: tl.constexpr,  #
    EVEN_K: tl.constexpr,  #
    ACTIVATION: tl.constexpr  #
):
    """C = activation(A x B + bias)."""
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    tl.assume(stride_am > 0)

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    if bias_ptr is not None:
        accumulator += tl.load(bias_ptr + offs_cn, mask=offs_cn < N)[None, :]
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float16)

    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@pytest.mark.parametrize(("k", "activation", "bias"), [(64, "", False), (50, "leaky_relu", True)])
def test_matmul_with_groups_configurations_and_an_activation(k: int, activation: str, bias: bool) -> None:
    m, n = 70, 90
    a, b, c = normal(m, k), normal(n, k, seed=1).T, np.zeros((m, n), np.float16)
    added = normal(n, seed=2)

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    matmul[grid](a, np.ascontiguousarray(b.T), c, added if bias else None, m, n, k, k, 1, 1, k, n, 1, ACTIVATION=activation)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    wanted = wide @ other + (added if bias else 0)
    if activation:
        wanted = np.where(wanted >= 0, wanted, 0.01 * wanted)
    # Products of float16 are exact in float32, their sums off by 2^-24 a step; the result is rounded to float16 once.
    sums = (k + 4) * 2.0**-24 * (np.abs(wide) @ np.abs(other) + np.abs(added))
    assert (np.abs(c - wanted) <= sums + 2.0**-11 * np.abs(wanted) + 2.0**-25).all()


@triton.jit
def layer_norm_forward(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    rstd = 1 / tl.sqrt(tl.sum(_var, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x_hat = (tl.load(X + cols, mask=mask, other=0.0).to(tl.float32) - mean) * rstd
        tl.store(Y + cols, x_hat * tl.load(W + cols, mask=mask) + tl.load(B + cols, mask=mask), mask=mask)


@triton.jit
def layer_norm_backward(DX, DY, DW, DB, X, W, Mean, Rstd, stride, n_rows, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """dx of every row; dw and db of the rows of a program, each program in a row of its own."""
    group = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    partial_dw = tl.zeros((BLOCK,), tl.float32)
    partial_db = tl.zeros((BLOCK,), tl.float32)
    for row in range(group * ROWS, min((group + 1) * ROWS, n_rows)):
        x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
        dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
        rstd = tl.load(Rstd + row)
        xhat = tl.where(mask, (x - tl.load(Mean + row)) * rstd, 0.0)
        wdy = tl.where(mask, w * dy, 0.0)
        c1 = tl.sum(xhat * wdy, axis=0) / N
        c2 = tl.sum(wdy, axis=0) / N
        tl.store(DX + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
        partial_dw += (dy * xhat).to(tl.float16)
        partial_db += dy
    tl.store(DW + group * N + cols, partial_dw, mask=mask)
    tl.store(DB + group * N + cols, partial_db, mask=mask)


@triton.jit
def sum_columns(DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.0)
        db += tl.load(DB + offs, mask=mask, other=0.0)
    tl.store(FINAL_DW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(FINAL_DB + cols, tl.sum(db, axis=0), mask=cols < N)


def test_layer_norm_and_its_gradients() -> None:
    m, n, rows = 10, 100, 4
    x, dy, w, b = normal(m, n), normal(m, n, seed=1), normal(n, seed=2), normal(n, seed=3)
    y, dx, mean, rstd = np.zeros_like(x), np.zeros((m, n), np.float32), np.zeros(m, np.float32), np.zeros(m, np.float32)
    layer_norm_forward[(m,)](x, y, w, b, mean, rstd, n, n, 1e-5, BLOCK=32)
    groups = triton.cdiv(m, rows)
    dw, db, final = np.zeros((groups, n), np.float32), np.zeros((groups, n), np.float32), np.zeros((2, n), np.float32)
    layer_norm_backward[(groups,)](dx, dy, dw, db, x, w, mean, rstd, n, m, n, ROWS=rows, BLOCK=128)
    sum_columns[lambda meta: (triton.cdiv(n, meta["BLOCK_N"]),)](dw, db, final[0], final[1], groups, n, BLOCK_M=2, BLOCK_N=64)

    wide, grad = x.astype(np.float64), dy.astype(np.float64)
    spread = np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    xhat = (wide - wide.mean(axis=1, keepdims=True)) / spread
    # Every sum over n is off by n units of float32 of its terms' magnitudes, and so are mean, 1 / spread and what is made of them.
    unit = 4 * (n + 8) * 2.0**-24
    reach = (np.abs(wide) + np.abs(wide).mean(axis=1, keepdims=True)) / spread
    wanted = xhat * w + b
    assert (np.abs(y - wanted) <= unit * (reach * np.abs(w) + np.abs(b)) + 2.0**-11 * np.abs(wanted)).all()
    wdy = grad * w
    wanted = (wdy - xhat * (xhat * wdy).mean(axis=1, keepdims=True) - wdy.mean(axis=1, keepdims=True)) / spread
    size = np.abs(wdy)
    terms = size + reach * (reach * size).mean(axis=1, keepdims=True) + size.mean(axis=1, keepdims=True)
    assert (np.abs(dx - wanted) <= unit * terms / spread).all()
    part = np.abs(grad) * reach  # the kernel rounds each to float16 before it adds them up
    assert (np.abs(final[0] - (grad * xhat).sum(axis=0)) <= (unit + 2.0**-11) * part.sum(axis=0)).all()
    assert (np.abs(final[1] - grad.sum(axis=0)) <= m * 2.0**-24 * np.abs(grad).sum(axis=0)).all()


@triton.jit
def attention_inner(
    acc, l_i, m_i, q,  #
    k_ptrs, v_ptrs, stride_kn, stride_vn,  #
    start_m, qk_scale,  #
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  #
    STAGE: tl.constexpr, offs_m: tl.constexpr, offs_n: tl.constexpr,  #
    N_CTX: tl.constexpr, warp_specialize: tl.constexpr
):
    # Stage 1: blocks left of the diagonal; stage 2: the diagonal; stage 3: all of it.
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    k_ptrs += lo * stride_kn
    v_ptrs += lo * stride_vn
    for start_n in tl.range(lo, hi, BLOCK_N, warp_specialize=warp_specialize, num_stages=2):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)
        if STAGE == 2:
            mask = offs_m[:, None] >= (start_n + offs_n[None, :])
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc)
        l_i = l_i * alpha + l_ij
        m_i = m_ij
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn
    return acc, l_i, m_i


@triton.jit
def attention_forward(
    Q, K, V, sm_scale, M, Out,  #
    stride_h, stride_n, stride_d,  #
    H, N_CTX: tl.constexpr, HEAD_DIM: tl.constexpr,  #
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  #
    STAGE: tl.constexpr, warp_specialize: tl.constexpr = False
):
    tl.static_assert(BLOCK_N <= HEAD_DIM)
    dtype = tl.float16 if Q.dtype.element_ty == tl.float16 else tl.float32
    start_m = tl.program_id(0)
    off_h = tl.program_id(1)
    base = off_h.to(tl.int64) * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + base + offs_m[:, None] * stride_n + offs_d[None, :] * stride_d)
    k_ptrs = K + base + offs_d[:, None] * stride_d + offs_n[None, :] * stride_n
    v_ptrs = V + base + offs_n[:, None] * stride_n + offs_d[None, :] * stride_d
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = sm_scale
    qk_scale *= 1.44269504  # 1/log(2)
    if STAGE & 1:
        acc, l_i, m_i = attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_n, stride_n, start_m, qk_scale,  #
                                        BLOCK_M, BLOCK_N, 4 - STAGE, offs_m, offs_n, N_CTX, warp_specialize)
    if STAGE & 2:
        acc, l_i, m_i = attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_n, stride_n, start_m, qk_scale,  #
                                        BLOCK_M, BLOCK_N, 2, offs_m, offs_n, N_CTX, warp_specialize)
    m_i += tl.math.log2(l_i)
    acc = acc / l_i[:, None]
    tl.store(M + off_h * N_CTX + offs_m, m_i)
    tl.store(Out + base + offs_m[:, None] * stride_n + offs_d[None, :] * stride_d, acc.to(dtype))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_attention_in_two_stages(causal: bool, dtype: Any) -> None:
    heads, length, dim = 2, 64, 32
    q, k, v = (normal(heads, length, dim, dtype=dtype, seed=seed) for seed in range(3))
    out, lse = np.zeros_like(q), np.zeros((heads, length), np.float32)
    attention_forward[lambda meta: (triton.cdiv(length, meta["BLOCK_M"]), heads, 1)](
        q, k, v, 0.5, lse, out, length * dim, dim, 1, heads,
        N_CTX=length, HEAD_DIM=dim, BLOCK_M=32, BLOCK_N=16, STAGE=3 if causal else 1, warp_specialize=True,
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.5
    if causal:
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = powers.sum(axis=-1, keepdims=True)
    # Operands of 10 bits of mantissa (float16 as it is stored, float32 in tf32): errors of 2^-11 in each, and in sums of them.
    np.testing.assert_allclose(out, powers / total @ v.astype(np.float64), atol=1e-2)
    wanted = ((scores.max(axis=-1, keepdims=True) + np.log(total)) / np.log(2))[..., 0]
    np.testing.assert_allclose(lse, wanted, rtol=2.0**-9, atol=1e-2)
