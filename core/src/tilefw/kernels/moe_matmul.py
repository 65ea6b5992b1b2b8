"""Each token's row times the matrices of its experts: rows are gathered by expert, products scattered back to their choices.

Choices lie in the order of their experts, as `moe_scatter` leaves them. A program finds its block of rows in the experts'
offsets itself, so that the host, which launches as many programs as there may be blocks, need not wait for the router.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.moe_choices import draw_choices, refuse_too_many
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def rows_of_block(block, offsets_ptr, experts, BLOCK_M: tl.constexpr, BLOCK_E: tl.constexpr):
    """(expert, first row, end of the expert's rows) of a block of rows; the expert is none where there is no such block."""
    expert = tl.arange(0, BLOCK_E)
    start = tl.load(offsets_ptr + expert, mask=expert < experts, other=0)
    end = tl.load(offsets_ptr + expert + 1, mask=expert < experts, other=0)
    blocks = tl.cdiv(end - start, BLOCK_M)
    until = tl.cumsum(blocks, axis=0)
    mine = tl.sum((until <= block).to(tl.int32), axis=0)
    first = tl.sum(tl.where(expert == mine, start + (block - until + blocks) * BLOCK_M, 0), axis=0)
    return mine, first, tl.sum(tl.where(expert == mine, end, 0), axis=0)


@tilefw.jit
def moe_matmul(
    a_ptr, b_ptr, choices_ptr, offsets_ptr, weights_ptr, out_ptr, experts, N, K,
    stride_am, stride_be, stride_bk, stride_bn, stride_om,
    PER_ROW: tl.constexpr, WEIGHTED: tl.constexpr, INPUT_PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_E: tl.constexpr,
):
    expert, first, end = rows_of_block(tl.program_id(0), offsets_ptr, experts, BLOCK_M, BLOCK_E)
    if expert >= experts:
        return
    row = first + tl.arange(0, BLOCK_M)
    choice = tl.load(choices_ptr + row, mask=row < end, other=0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (choice // PER_ROW)[:, None] * stride_am + k[None, :]
    b_ptrs = b_ptr + expert.to(tl.int64) * stride_be + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(row[:, None] < end) & (k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    if WEIGHTED:
        acc = acc * tl.load(weights_ptr + choice, mask=row < end, other=0.0)[:, None]
    out_ptrs = out_ptr + choice[:, None] * stride_om + n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(row[:, None] < end) & (n[None, :] < N))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    refuse_too_many("moe_matmul", p)
    tokens, experts, n, k, name = p["tokens"], p["experts"], p["n"], p["k"], p["dtype"]
    chosen = draw_choices(rng, p).reshape(-1)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(chosen, minlength=experts))])
    rows = chosen.size if p["rows"] == "choices" else tokens  # the second product's rows belong to choices already
    b = operands.matrix(rng, p["inputs"], (experts, k, n), name, p["b_layout"])
    steps = operands.strides(b)
    arguments = {
        "a_ptr": inputs.draw(rng, p["inputs"], (rows, k), name), "b_ptr": b,
        "choices_ptr": Buffer(np.argsort(chosen, kind="stable").astype(np.int32), "int32"),
        "offsets_ptr": Buffer(offsets.astype(np.int32), "int32"),
        "weights_ptr": Buffer(rng.uniform(0, 1, chosen.size).astype(np.float32), "fp32"),
        "out_ptr": inputs.empty((chosen.size, n), name), "experts": experts, "N": n, "K": k,
        "stride_am": k, "stride_be": steps[0], "stride_bk": steps[1], "stride_bn": steps[2], "stride_om": n,
    }
    constexprs = {
        "PER_ROW": chosen.size // rows, "WEIGHTED": p["weighted"],
        "INPUT_PRECISION": p["input_precision"] if name == "fp32" else "ieee",
        "BLOCK_M": p["block_m"], "BLOCK_N": p["block_n"], "BLOCK_K": p["block_k"], "BLOCK_E": tilefw.next_power_of_2(experts),
    }
    # Every expert may have one block that is not full, and no block is empty.
    blocks = min(chosen.size, ceil_div(chosen.size, p["block_m"]) + experts)
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, constexprs, (blocks, ceil_div(n, p["block_n"]), 1), ("out_ptr",), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    a, b = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("a_ptr", "b_ptr"))
    choices, offsets = (launch.buffer(name).array for name in ("choices_ptr", "offsets_ptr"))
    out = np.empty((choices.size, p["n"]))
    for expert, matrix in enumerate(b):
        mine = choices[offsets[expert] : offsets[expert + 1]]
        out[mine] = a[mine // launch.constexprs["PER_ROW"]] @ matrix
    out = out.astype(np.float32).astype(np.float64)
    return {"out_ptr": out * launch.buffer("weights_ptr").array[:, None] if p["weighted"] else out}


SPEC = KernelSpec("moe_matmul", moe_matmul, _prepare, _expected)
