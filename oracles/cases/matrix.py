"""Cases of the matrix products and of attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import ml_dtypes
import numpy as np

from oracles import bounded as bd
from oracles.case import Case, Input, Number, Output, Problem, Variant
from oracles.chips import AMD, GFX942, GFX950, NVIDIA, SM89, SM90A

Make = Callable[[np.random.Generator], Problem]


def random_array(rng: np.random.Generator, dtype: object, *shape: int) -> np.ndarray:
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.integers(-128, 128, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _tf32(array: np.ndarray) -> tuple[np.ndarray, float]:
    """The operand, and the relative error of reading only its upper 19 bits (PTX ISA: tf32 operands, 10-bit mantissa)."""
    return array, 2.0**-10


def _padded(array: np.ndarray, extra: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows lengthened by `extra` elements that are left uninitialised."""
    wide = np.pad(array, ((0, 0), (0, extra)))
    return wide, np.broadcast_to(np.arange(wide.shape[1]) < array.shape[1], wide.shape)


def _factor(array: np.ndarray) -> Input:
    """A factor as an argument; one without any element, of a sum without terms, as a buffer that nothing reads."""
    return Input(array if array.size else np.zeros(16, array.dtype))


def _product(a: np.ndarray, b: np.ndarray, tf32: bool) -> bd.Bounded | np.ndarray:
    if np.issubdtype(a.dtype, np.integer):
        return a.astype(np.int32) @ b.astype(np.int32)
    exact = bd.dot(a, b)
    if a.dtype == np.float64:
        # Each of k products and sums rounds in float64; so does NumPy's own.
        size = np.abs(a) @ np.abs(b)
        return bd.Bounded(a @ b, 2 * (a.shape[-1] + 1) * 2.0**-53 * size)
    if not tf32:
        return exact
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    return bd.Bounded(exact.value, exact.error + 2.01 * _tf32(a)[1] * size)


def matmul_problem(m: int, n: int, k: int, dtype: object, result: object, tf32: bool = False, pad: int = 0) -> Make:
    """Strides are a row's length plus `pad`."""

    def problem(rng: np.random.Generator) -> Problem:
        a, b = random_array(rng, dtype, m, k), random_array(rng, dtype, k, n)
        c = _product(a, b, tf32)
        if isinstance(c, bd.Bounded):
            c = bd.stored(c, result)
        (wide_a, in_a), (wide_b, in_b) = _padded(a, pad), _padded(b, pad)
        return Problem(
            {
                "a_ptr": Input(wide_a, in_a),
                "b_ptr": Input(wide_b, in_b),
                "c_ptr": Output((m, n), result),
                "M": Number(m, "i32"),
                "N": Number(n, "i32"),
                "K": Number(k, "i32"),
                "stride_a": Number(k + pad, "i32"),
                "stride_b": Number(n + pad, "i32"),
                "stride_c": Number(n, "i32"),
            },
            {"c_ptr": c},
        )

    return problem


def edges(sizes: Sequence[tuple[int, int, int]], dtype: object, result: object, tf32: bool = False) -> tuple[Variant, ...]:
    """Launches of one tile at these (M, N, K), with poison behind every row: each stage of the pipeline is some launch's last."""
    return tuple(Variant((1, 1), matmul_problem(m, n, k, dtype, result, tf32, pad=16)) for m, n, k in sizes)


def _transposed(rng: np.random.Generator, m: int = 96, n: int = 64, k: int = 128) -> Problem:
    a, b = random_array(rng, np.float16, m, k), random_array(rng, np.float16, n, k)
    c = bd.stored(bd.dot(a, b.T), np.float16)
    return Problem(
        {
            "a_ptr": _factor(a),
            "b_ptr": _factor(b),
            "c_ptr": Output((m, n), np.float16),
            "M": Number(m, "i32"),
            "N": Number(n, "i32"),
            "K": Number(k, "i32"),
        },
        {"c_ptr": bd.Bounded(np.maximum(c.value, 0), c.error)},
    )


def _batched(rng: np.random.Generator, batch: int = 3, m: int = 32, n: int = 64, k: int = 64) -> Problem:
    a, b = random_array(rng, np.float16, batch, m, k), random_array(rng, np.float16, batch, k, n)
    return Problem(
        {
            "a_ptr": _factor(a),
            "b_ptr": _factor(b),
            "c_ptr": Output((batch, m, n), np.float16),
            "M": Number(m, "i32"),
            "N": Number(n, "i32"),
            "K": Number(k, "i32"),
        },
        {"c_ptr": bd.stored(bd.dot(a, b), np.float16)},
    )


def _grouped(rng: np.random.Generator, n: int = 32, k: int = 64) -> Problem:
    starts = np.array([0, 40, 40, 57, 100], np.int32)
    groups, rows = len(starts) - 1, int(starts[-1])
    a, b = random_array(rng, np.float16, rows, k), random_array(rng, np.float16, groups, k, n)
    parts = [bd.dot(a[starts[g] : starts[g + 1]], b[g]) for g in range(groups)]
    c = bd.Bounded(np.concatenate([p.value for p in parts]), np.concatenate([p.error for p in parts]))
    return Problem(
        {
            "a_ptr": _factor(a),
            "b_ptr": _factor(b),
            "c_ptr": Output((rows, n), np.float16),
            "starts_ptr": Input(starts),
            "groups": Number(groups, "i32"),
            "N": Number(n, "i32"),
            "K": Number(k, "i32"),
        },
        {"c_ptr": bd.stored(c, np.float16)},
    )


def _dot_3d(rng: np.random.Generator, batch: int = 4, m: int = 16, n: int = 32, k: int = 32) -> Problem:
    a, b = random_array(rng, np.float16, batch, m, k), random_array(rng, np.float16, batch, k, n)
    return Problem({"a_ptr": Input(a), "b_ptr": Input(b), "c_ptr": Output((batch, m, n), np.float32)}, {"c_ptr": bd.dot(a, b)})


_SCALED = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}


def _dot_scaled(a: str, b: str, m: int, n: int, k: int) -> Make:
    """Elements of two formats, those of e2m1 two in a byte, and scales of e8m0 over most of their range: those of b are for the
    same k as far from one as those of a, on the other side."""

    def side(rng: np.random.Generator, format: str, rows: int, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        elements = rng.standard_normal((rows, k)).astype(_SCALED[format])
        codes = elements.view(np.uint8)
        packed = codes[:, ::2] | codes[:, 1::2] << 4 if format == "e2m1" else codes
        scales = (middle + rng.integers(-7, 8, (rows, k // 32))).astype(np.uint8)
        return packed, scales, elements.astype(np.float64) * np.repeat(2.0 ** (scales - 127.0), 32, axis=1)

    def problem(rng: np.random.Generator) -> Problem:
        away = rng.integers(-100, 101, k // 32)
        left, left_scales, left_values = side(rng, a, m, 127 + away)
        right, right_scales, right_values = side(rng, b, n, 127 - away)
        arguments = {
            "a_ptr": Input(left), "b_ptr": Input(right), "a_scale_ptr": Input(left_scales), "b_scale_ptr": Input(right_scales),
            "c_ptr": Output((m, n), np.float32),
        }
        return Problem(arguments, {"c_ptr": bd.dot(left_values, right_values.T)})

    return problem


def attention_problem(heads: int, length: int, head: int, causal: bool, dtype: object) -> Make:
    """The bound: scores in float32, weights rounded to the element type before the second product, a final division."""

    def problem(rng: np.random.Generator) -> Problem:
        q, k, v = (random_array(rng, dtype, heads, length, head) for _ in range(3))
        scale = head**-0.5
        score = bd.dot(q, k.swapaxes(1, 2)) * scale
        seen = np.tril(np.ones((length, length), bool)) if causal else np.ones((length, length), bool)
        score = bd.Bounded(np.where(seen, score.value, -np.inf), np.where(seen, score.error, 0.0))
        top = score.max(2, keepdims=True)
        gap = bd.Bounded(score.value - top.value, np.where(seen, score.error + top.error + 4 * bd.F32 * np.abs(top.value), 0.0))
        value = np.exp(gap.value)
        # Each of the running maximum's steps rescales what was summed: its factor rounds once more per block of keys.
        weight = bd.Bounded(value, value * (np.expm1(np.minimum(gap.error, 1)) + 32 * bd.F32))
        mass = weight.sum(2, keepdims=True)
        narrow = bd.stored(weight, dtype)
        size = np.abs(v.astype(np.float64))
        total = bd.Bounded(
            narrow.value @ v.astype(np.float64), narrow.error @ size + (length + 2) * 4 * bd.F32 * (narrow.value @ size)
        )
        return Problem(
            {
                "q_ptr": Input(q),
                "k_ptr": Input(k),
                "v_ptr": Input(v),
                "out_ptr": Output(q.shape, dtype),
                "length": Number(length, "i32"),
                "scale": Number(scale, "fp32"),
            },
            {"out_ptr": bd.stored(total / mass, dtype)},
        )

    return problem


def signature(element: str, result: str, hint: str = ":16") -> dict[str, str]:
    """`hint` on N, K and the strides is what lets Triton copy 16 bytes at a time, and so pipeline with `cp.async`."""
    return {
        "a_ptr": f"*{element}:16",
        "b_ptr": f"*{element}:16",
        "c_ptr": f"*{result}:16",
        "M": "i32",
        **{name: "i32" + hint for name in ("N", "K", "stride_a", "stride_b", "stride_c")},
    }


def tile(m: int, n: int, k: int, accumulator: str = "fp32", precision: str = "ieee") -> dict[str, object]:
    return {"TILE_M": m, "TILE_N": n, "TILE_K": k, "ACCUMULATOR": accumulator, "PRECISION": precision}


BF16 = ml_dtypes.bfloat16
F16, F32 = np.float16, np.float32
M = "matrix.matmul"
H16 = signature("fp16", "fp16")
QKV = {**{f"{x}_ptr": "*fp16:16" for x in ("q", "k", "v", "out")}, "length": "i32", "scale": "fp32"}
QKV_BF16 = {**QKV, **{f"{x}_ptr": "*bf16:16" for x in ("q", "k", "v", "out")}}
SMALL = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 32}

CASES = [
    Case(
        "matmul_f16",
        M,
        H16,
        tile(32, 32, 32),
        (2, 2),
        matmul_problem(50, 48, 96, F16, F16, pad=16),
        variants=edges(((17, 16, 16), (32, 32, 32), (32, 16, 64), (9, 32, 160), (9, 16, 0)), F16, F16),
    ),
    *(
        Case(
            f"matmul_f16_stages{stages}",
            M,
            H16,
            tile(32, 64, 32),
            (2, 1),
            matmul_problem(64, 64, 160, F16, F16),
            num_stages=stages,
            fast=stages == 4,
            # waves without a row for some of their loads, fewer blocks of k than stages, and no term of a sum
            variants=edges(((9, 64, 160), (17, 16, 16), (9, 32, 48), (32, 64, 64), (5, 16, 0)), F16, F16),
        )
        for stages in (1, 2, 4)
    ),
    Case("matmul_f16_8_warps", M, H16, tile(128, 64, 64), (1, 1), matmul_problem(120, 64, 128, F16, F16), num_warps=8, fast=False,
         variants=edges(((128, 64, 64), (100, 64, 320), (128, 48, 384)), F16, F16)),
    Case("matmul_f16_1_warp", M, H16, tile(16, 32, 16), (2, 1), matmul_problem(31, 32, 64, F16, F16), num_warps=1,
         # the last ones: no row for the second half of the lanes' loads, and no term of a sum
         variants=edges(((16, 32, 16), (16, 16, 32), (9, 32, 48), (16, 32, 80), (16, 32, 96), (5, 8, 64), (9, 16, 0)), F16, F16)),
    Case(
        "matmul_f16_unaligned",
        M,
        signature("fp16", "fp32", hint=""),
        tile(32, 32, 32),
        (1, 2),
        matmul_problem(30, 37, 41, F16, F32, pad=2),
        variants=edges(((30, 30, 137), (9, 7, 100), (17, 5, 0)), F16, F32),
    ),
    Case(
        "matmul_bf16",
        M,
        signature("bf16", "bf16"),
        tile(32, 64, 32),
        (1, 1),
        matmul_problem(32, 64, 96, BF16, BF16, pad=16),
        variants=edges(((17, 16, 16), (32, 48, 32), (32, 64, 64), (9, 32, 160), (9, 64, 144), (9, 16, 0)), BF16, BF16),
    ),
    Case(
        "matmul_tf32",
        M,
        signature("fp32", "fp32"),
        tile(32, 32, 32, precision="tf32"),
        (1, 1),
        matmul_problem(32, 32, 64, F32, F32, tf32=True, pad=16),
        variants=edges(((17, 16, 16), (8, 32, 32), (16, 16, 96), (25, 32, 160)), F32, F32, tf32=True),
        chips=(*NVIDIA, GFX942),  # Triton has no tf32 for gfx950
    ),
    Case(
        "matmul_tf32x3",
        M,
        signature("fp32", "fp32"),
        tile(32, 32, 32, precision="tf32x3"),
        (1, 1),
        matmul_problem(32, 32, 64, F32, F32),
        fast=False,
        chips=NVIDIA,  # Triton has no tf32x3 for gfx942
    ),
    Case("matmul_f32", M, signature("fp32", "fp32"), tile(32, 32, 16), (1, 1), matmul_problem(32, 32, 48, F32, F32), fast=False,
         variants=edges(((17, 16, 16), (32, 32, 32), (32, 16, 64), (25, 32, 80), (32, 32, 96), (9, 16, 0)), F32, F32)),
    Case(
        "matmul_i8",
        M,
        signature("i8", "i32"),
        tile(32, 32, 64, "int32"),
        (1, 1),
        matmul_problem(32, 32, 128, np.int8, np.int32, pad=16),
        variants=edges(((17, 16, 32), (8, 32, 64), (16, 16, 192), (25, 32, 320), (8, 32, 208), (9, 16, 0)), np.int8, np.int32),
    ),
    Case(
        "matmul_f64",
        M,
        signature("fp64", "fp64"),
        tile(32, 32, 16, "fp64"),
        (1, 1),
        matmul_problem(25, 32, 48, np.float64, np.float64, pad=16),
        variants=edges(((17, 16, 16), (32, 32, 32), (32, 16, 64), (25, 32, 80), (32, 32, 96), (9, 16, 0)), np.float64, np.float64),
        chips=AMD,
    ),
    *(
        Case(
            f"matmul_{name}",
            M,
            signature(name, "fp32"),
            tile(32, 32, 64),
            (1, 2),
            matmul_problem(30, 64, 128, dtype, F32, pad=16),
            # (8, 32, 208): some waves load nothing of the last terms
            variants=edges(((17, 16, 32), (8, 32, 64), (16, 16, 192), (25, 32, 320), (8, 32, 208), (9, 16, 0)), dtype, F32),
            chips=chips,
        )
        for name, dtype, chips in (
            ("fp8e4b8", ml_dtypes.float8_e4m3fnuz, AMD), ("fp8e5b16", ml_dtypes.float8_e5m2fnuz, AMD),
            ("fp8e4nv", ml_dtypes.float8_e4m3fn, (SM89, SM90A, GFX950)), ("fp8e5", ml_dtypes.float8_e5m2, (*NVIDIA, GFX950)),
        )
    ),
    Case(
        "matmul_f16_128",
        M,
        H16,
        tile(128, 128, 32),
        (1, 2),
        matmul_problem(120, 256, 96, F16, F16, pad=16),
        num_stages=2,
        chips=AMD,
        variants=edges(((17, 16, 16), (128, 64, 160), (9, 16, 0)), F16, F16),
    ),
    Case(  # so many accumulators that some values are spilled to scratch memory
        "matmul_f16_256",
        M,
        H16,
        tile(256, 256, 64),
        (1, 1),
        matmul_problem(200, 256, 128, F16, F16, pad=16),
        num_stages=2,
        chips=AMD,
        variants=edges(((250, 240, 192), (9, 16, 0)), F16, F16),
    ),
    Case(
        "matmul_transposed",
        "matrix.matmul_transposed",
        {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp16:16", "M": "i32:16", "N": "i32:16", "K": "i32:16"},
        SMALL,
        (6,),
        _transposed,
        variants=tuple(Variant((1,), partial(_transposed, m=32, n=32, k=k)) for k in (0, 32, 64, 160)),
    ),
    Case(
        "batched_matmul",
        "matrix.batched_matmul",
        {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp16:16", "M": "i32:16", "N": "i32:16", "K": "i32:16"},
        SMALL,
        (1, 2, 3),
        _batched,
        variants=tuple(Variant((1, 1, 1), partial(_batched, batch=1, m=32, n=32, k=k)) for k in (0, 32, 96, 128, 160)),
    ),
    Case(
        "grouped_matmul",
        "matrix.grouped_matmul",
        {
            "a_ptr": "*fp16:16",
            "b_ptr": "*fp16:16",
            "c_ptr": "*fp16:16",
            "starts_ptr": "*i32:16",
            "groups": "i32",
            "N": "i32:16",
            "K": "i32:16",
        },
        {"TILE_M": 16, "TILE_N": 32, "TILE_K": 32},
        (2, 1),
        _grouped,
        variants=tuple(Variant((2, 1), partial(_grouped, k=k)) for k in (0, 32, 96, 128, 160)),
    ),
    Case(
        "dot_3d",
        "matrix.dot_3d",
        {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp32:16"},
        {"BATCH": 4, "M": 16, "N": 32, "K": 32},
        (1,),
        _dot_3d,
    ),
    *(
        Case(
            f"dot_scaled_{a}_{b}",
            "matrix.dot_scaled",
            dict.fromkeys(("a_ptr", "b_ptr", "a_scale_ptr", "b_scale_ptr"), "*u8:16") | {"c_ptr": "*fp32:16"},
            {
                "A": a, "B": b, "A_BYTES": 256 // (1 + (a == "e2m1")), "B_BYTES": 256 // (1 + (b == "e2m1")), "M": m, "N": n,
                "K": 256,
            },
            (1,),
            _dot_scaled(a, b, m, n, 256),
            chips=(GFX950,),
        )
        for a, b, m, n in (("e4m3", "e5m2", 32, 32), ("e2m1", "e2m1", 32, 64), ("e5m2", "e2m1", 64, 16))
    ),
    Case(
        "attention",
        "matrix.attention",
        QKV,
        {"HEAD": 32, "TILE_Q": 32, "TILE_K": 32, "CAUSAL": False},
        (2, 2),
        attention_problem(2, 61, 32, False, F16),
        variants=tuple(Variant((-(-n // 32), 1), attention_problem(1, n, 32, False, F16)) for n in (1, 32, 90, 100, 128, 160)),
    ),
    Case(
        "attention_causal",
        "matrix.attention",
        QKV,
        {"HEAD": 64, "TILE_Q": 32, "TILE_K": 32, "CAUSAL": True},
        (3, 1),
        attention_problem(1, 96, 64, True, F16),
        variants=tuple(Variant((-(-n // 32), 1), attention_problem(1, n, 64, True, F16)) for n in (1, 16, 32, 48, 64, 80)),
    ),
    Case(
        "attention_bf16_2_stages",
        "matrix.attention",
        QKV_BF16,
        {"HEAD": 32, "TILE_Q": 64, "TILE_K": 32, "CAUSAL": True},
        (2, 1),
        attention_problem(1, 100, 32, True, BF16),
        num_stages=2,
        variants=tuple(Variant((-(-n // 64), 1), attention_problem(1, n, 32, True, BF16)) for n in (1, 64, 130, 160)),
        fast=False,
    ),
]
