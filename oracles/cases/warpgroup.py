"""Cases whose tiles are so large that Triton takes products of warpgroups for them, where a chip has these."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from oracles import bounded as bd
from oracles.case import Case, Input, Number, Output, Problem, Variant
from oracles.cases.matrix import (
    BF16,
    F16,
    F32,
    QKV,
    QKV_BF16,
    M,
    Make,
    attention_problem,
    edges,
    matmul_problem,
    random_array,
    signature,
    tile,
)
from oracles.chips import SM90A

HOPPER = (SM90A,)
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
LOG2E = 1.4426950408889634


def _times(a: bd.Bounded, b: np.ndarray) -> bd.Bounded:
    """A product whose left factor brings errors."""
    right = b.astype(np.float64)
    size = a.magnitude @ np.abs(right)
    return bd.Bounded(a.value @ right, a.error @ np.abs(right) + (a.value.shape[-1] + 1) * 2 * bd.F32 * 1.01 * size)


def _two_products(rng: np.random.Generator, m: int, n: int, k: int, head: int) -> Problem:
    a, b, c = (random_array(rng, F16, *shape) for shape in ((m, k), (k, n), (n, head)))
    arguments = {"a_ptr": Input(a), "b_ptr": Input(b), "c_ptr": Input(c), "out_ptr": Output((m, head), F32)}
    return Problem(arguments, {"out_ptr": _times(bd.stored(bd.dot(a, b), F16), c)})


def _backward(of: str, heads: int, length: int, head: int, dtype: object) -> Make:
    """Gradients of attention for a gradient of its output that is drawn like the operands."""

    def problem(rng: np.random.Generator) -> Problem:
        q, k, v, grad = (random_array(rng, dtype, heads, length, head) for _ in range(4))
        scale = head**-0.5
        score = bd.dot(q, k.swapaxes(1, 2)) * (scale * LOG2E)
        lse = np.log2(np.exp2(score.value).sum(2)).astype(F32)
        weight = bd.exp2(score - lse[:, :, None])
        output = weight.value @ v.astype(np.float64)
        delta = (output * grad.astype(np.float64)).sum(2).astype(F32)
        grad_score = weight * (bd.dot(grad, v.swapaxes(1, 2)) - delta[:, :, None])
        narrow, narrow_score = (_turned(bd.stored(x, dtype), of == "keys") for x in (weight, grad_score))
        gradients = {
            "keys": lambda: {"grad_k_ptr": _times(narrow_score, q) * scale, "grad_v_ptr": _times(narrow, grad)},
            "queries": lambda: {"grad_q_ptr": _times(narrow_score, k) * scale},
        }[of]()
        inputs = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "grad_ptr": grad, "lse_ptr": lse, "delta_ptr": delta}
        return Problem(
            {
                **{name: Input(array) for name, array in inputs.items()},
                **{name: Output(q.shape, dtype) for name in gradients},
                "length": Number(length, "i32"), "scale": Number(scale, "fp32"),
            },
            {name: bd.stored(value, dtype) for name, value in gradients.items()},
        )

    return problem


def _turned(x: bd.Bounded, turn: bool) -> bd.Bounded:
    return bd.Bounded(x.value.swapaxes(1, 2), x.error.swapaxes(1, 2)) if turn else x


def _backward_signature(*gradients: str) -> dict[str, str]:
    arrays = {f"{name}_ptr": "*fp16:16" for name in ("q", "k", "v", "grad")}
    return {
        **arrays, "lse_ptr": "*fp32:16", "delta_ptr": "*fp32:16", **{f"{name}_ptr": "*fp16:16" for name in gradients},
        "length": "i32", "scale": "fp32",
    }


def _product(
    name: str, element: str, result: str, types: tuple[object, object], size: tuple[int, int, int], stages: int = 3, warps: int = 4,
    fast: bool = False, accumulator: str = "fp32", precision: str = "ieee",
) -> Case:
    m, n, k = size
    tf32 = precision == "tf32"
    return Case(
        f"warpgroup_{name}", M, signature(element, result), tile(m, n, k, accumulator, precision), (1, 2),
        matmul_problem(m - 8, 2 * n, 5 * k // 2, *types, tf32=tf32, pad=16), num_warps=warps, num_stages=stages, fast=fast,
        chips=HOPPER,
        variants=edges(((m, n, k), (17, 16, 32), (m, n - 16, 4 * k), (9, 16, 0)), *types, tf32=tf32),
    )


def _attending(name: str, head: int, q: int, keys: int, causal: bool, warps: int = 4, stages: int = 2, fast: bool = False) -> Case:
    length = 2 * q - 24
    return Case(
        f"warpgroup_attention_{name}", "matrix.attention", QKV_BF16 if "bf16" in name else QKV,
        {"HEAD": head, "TILE_Q": q, "TILE_K": keys, "CAUSAL": causal}, (2, 1),
        attention_problem(1, length, head, causal, BF16 if "bf16" in name else F16), num_warps=warps, num_stages=stages, fast=fast,
        chips=HOPPER,
        variants=(Variant((2, 1), attention_problem(1, 2 * q, head, causal, BF16 if "bf16" in name else F16)),),
    )


def _experts(rng: np.random.Generator, tile: int, n: int, k: int) -> Problem:
    """Rows of three experts in tiles, which the last rows of each expert do not fill."""
    counts, tokens = (tile + 7, 0, 20), tile + 40
    rows, expert = [], []
    for number, count in enumerate(counts):
        padded = -(-count // tile) * tile
        rows += [*rng.permutation(tokens)[:count].tolist(), *[tokens] * (padded - count)]
        expert += [number] * (padded // tile)
    # A row that two experts have would be written twice; here each row has one.
    order, seen = np.array(rows, np.int32), set()
    for place, row in enumerate(order.tolist()):
        order[place] = tokens if row in seen else row
        seen.add(row)
    x, w = random_array(rng, F16, tokens, k), random_array(rng, F16, len(counts), k, n)
    value, error, covered = np.zeros((tokens, n)), np.zeros((tokens, n)), np.zeros((tokens, n), bool)
    for place, row in enumerate(order.tolist()):
        if row < tokens:
            product = bd.dot(x[row : row + 1], w[expert[place // tile]])
            value[row], error[row], covered[row] = product.value[0], product.error[0], True
    arguments = {
        "x_ptr": Input(x), "w_ptr": Input(w), "out_ptr": Output((tokens, n), F16), "rows_ptr": Input(order),
        "expert_ptr": Input(np.array(expert, np.int32)), "tokens": Number(tokens, "i32"), "N": Number(n, "i32"),
        "K": Number(k, "i32"),
    }
    return Problem(arguments, {"out_ptr": bd.stored(bd.Bounded(value, error), F16)}, {"out_ptr": covered})


CASES = [
    _product("f16", "fp16", "fp16", (F16, F16), (64, 64, 64), fast=True),
    _product("f16_128", "fp16", "fp32", (F16, F32), (128, 128, 64)),
    _product("f16_256", "fp16", "fp16", (F16, F16), (128, 256, 64), warps=8),
    _product("f16_rows", "fp16", "fp16", (F16, F16), (256, 64, 32), warps=8, stages=2),
    _product("f16_4_stages", "fp16", "fp32", (F16, F32), (64, 128, 32), stages=4),
    _product("f16_1_stage", "fp16", "fp32", (F16, F32), (64, 32, 64), stages=1),
    _product("bf16", "bf16", "bf16", (BF16, BF16), (128, 64, 32)),
    _product("bf16_256", "bf16", "fp32", (BF16, F32), (64, 256, 32)),
    _product("tf32", "fp32", "fp32", (F32, F32), (64, 64, 32), precision="tf32"),
    _product("tf32_8_warps", "fp32", "fp32", (F32, F32), (128, 64, 32), precision="tf32", warps=8),
    _product("i8", "i8", "i32", (np.int8, np.int32), (64, 64, 64), accumulator="int32"),
    _product("i8_128", "i8", "i32", (np.int8, np.int32), (128, 128, 64), accumulator="int32"),
    _product("fp8e4nv", "fp8e4nv", "fp32", (E4M3, F32), (64, 64, 64), fast=True),
    _product("fp8e5", "fp8e5", "fp32", (E5M2, F32), (64, 128, 64)),
    _product("fp8e4nv_128", "fp8e4nv", "fp32", (E4M3, F32), (128, 128, 128), warps=8),
    _attending("f16", 64, 64, 64, causal=False),
    _attending("f16_causal", 64, 64, 64, causal=True, fast=True),
    _attending("bf16_128", 128, 128, 64, causal=True, warps=8),
    _attending("f16_128", 128, 64, 64, causal=False, stages=3),
    *(
        Case(
            f"warpgroup_two_products_{m}_{n}", "warpgroup.two_products",
            {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp16:16", "out_ptr": "*fp32:16"},
            {"M": m, "N": n, "K": 32, "HEAD": 64}, (1,), partial(_two_products, m=m, n=n, k=32, head=64), fast=False,
            chips=HOPPER,
        )
        for m, n in ((64, 32), (128, 64))
    ),
    *(
        Case(
            f"warpgroup_attention_backward_{of}", f"warpgroup.attention_backward_{of}", _backward_signature(*gradients),
            {"HEAD": 64, "TILE_Q": 64, "TILE_K": 64}, (2, 1), _backward(of, 1, 104, 64, F16), fast=False, num_stages=2,
            chips=HOPPER, variants=(Variant((1, 2), _backward(of, 2, 64, 64, F16)),),
        )
        for of, gradients in (("keys", ("grad_k", "grad_v")), ("queries", ("grad_q",)))
    ),
    *(
        Case(
            f"warpgroup_experts_{tile_m}", "warpgroup.experts", {
                "x_ptr": "*fp16:16", "w_ptr": "*fp16:16", "out_ptr": "*fp16:16", "rows_ptr": "*i32:16", "expert_ptr": "*i32:16",
                "tokens": "i32", "N": "i32:16", "K": "i32:16",
            }, {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": 32}, (3, 2), partial(_experts, tile=tile_m, n=2 * tile_n, k=96),
            fast=tile_m == 64, chips=HOPPER,
        )
        for tile_m, tile_n in ((64, 64), (128, 32))
    ),
    *(
        Case(
            f"warpgroup_cluster_{m}", M, signature("fp16", "fp16"), tile(m, n, 64), (1, 2),
            matmul_problem(m - 8, 2 * n, 160, F16, F16, pad=16), num_ctas=2, fast=m == 128, chips=HOPPER,
        )
        for m, n in ((128, 64), (64, 128))
    ),
]
