"""out = a @ b.T for operands in formats with scales (MXFP8, MXFP6, MXFP4, NVFP4), whose rows lie along k; one block a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.errors import UsageError
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, scaled_formats
from tilefw.kernels.grouped_blocks import grouped_block
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def block_scaled_matmul(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, out_ptr, M, N, K,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACKED: tl.constexpr, B_PACKED: tl.constexpr, GROUP: tl.constexpr,
    EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    block_m, block_n = grouped_block(M, N, BLOCK_M, BLOCK_N, GROUP_M)
    # Rows and columns past the end wrap around: they are computed and never stored, and their loads need no mask.
    m = (block_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (block_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    a_k = tl.arange(0, BLOCK_K // A_PACKED)
    b_k = tl.arange(0, BLOCK_K // B_PACKED)
    groups = tl.arange(0, BLOCK_K // GROUP)
    a_ptrs = a_ptr + (m[:, None] * (K // A_PACKED) + a_k[None, :])
    b_ptrs = b_ptr + (b_k[:, None] + n[None, :] * (K // B_PACKED))
    a_scale_ptrs = a_scale_ptr + (m[:, None] * (K // GROUP) + groups[None, :])
    b_scale_ptrs = b_scale_ptr + (n[:, None] * (K // GROUP) + groups[None, :])
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
            a_scale = tl.load(a_scale_ptrs)
            b_scale = tl.load(b_scale_ptrs)
        else:
            # Elements past the end are zero, whatever their scales.
            rest = K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=a_k[None, :] < rest // A_PACKED, other=0.0)
            b = tl.load(b_ptrs, mask=b_k[:, None] < rest // B_PACKED, other=0.0)
            a_scale = tl.load(a_scale_ptrs, mask=groups[None, :] < rest // GROUP, other=0.0)
            b_scale = tl.load(b_scale_ptrs, mask=groups[None, :] < rest // GROUP, other=0.0)
        acc = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc)
        a_ptrs += BLOCK_K // A_PACKED
        b_ptrs += BLOCK_K // B_PACKED
        a_scale_ptrs += BLOCK_K // GROUP
        b_scale_ptrs += BLOCK_K // GROUP

    m = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    out_ptrs = out_ptr + m[:, None] * N + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    m, n, k, group = p["m"], p["n"], p["k"], p["group"]
    if k % group or p["block_k"] % group:
        raise UsageError(
            f"block_scaled_matmul: groups of {group} of k={k} in blocks of {p['block_k']}", code="TFW0942",
            note="k and block_k are multiples of the group",
        )
    groups = k // group
    high = rng.random(groups) < 0.5
    arguments = {
        "a_ptr": scaled_formats.draw(rng, p["inputs"], (m, k), p["a_format"], -1),
        "b_ptr": scaled_formats.draw(rng, p["inputs"], (n, k), p["b_format"], -1),
        "a_scale_ptr": scaled_formats.scales(rng, p["scales"], (m, groups), high),
        "b_scale_ptr": scaled_formats.scales(rng, p["scales"], (n, groups), ~high),
        "out_ptr": inputs.empty((m, n), p["result"]), "M": m, "N": n, "K": k,
    }
    constexprs = {
        "A_FORMAT": p["a_format"], "B_FORMAT": p["b_format"],
        "A_PACKED": scaled_formats.packed(p["a_format"]), "B_PACKED": scaled_formats.packed(p["b_format"]),
        "GROUP": group, "EVEN_K": k % p["block_k"] == 0,
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"], "GROUP_M": p["group_m"],
    }
    grid = (ceil_div(m, p["block_m"]) * ceil_div(n, p["block_n"]), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (
        scaled_formats.decode(launch.buffer(f"{side}_ptr"), p[f"{side}_format"], -1)
        * np.repeat(scaled_formats.factors(launch.buffer(f"{side}_scale_ptr")), p["group"], -1)
        for side in ("a", "b")
    )
    return {"out_ptr": a @ b.T}


SPEC = KernelSpec("block_scaled_matmul", block_scaled_matmul, _prepare, _expected)
