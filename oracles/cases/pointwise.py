"""Cases of the elementwise kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import ml_dtypes
import numpy as np

from oracles import bounded as bd
from oracles.case import Case, InOut, Input, Number, Output, Problem, Variant
from oracles.chips import AMD, NVIDIA, SM89

N = 1000
BLOCK = 256
GRID = (-(-N // BLOCK),)
verf = np.vectorize(math.erf, otypes=[np.float64])


def _normal(rng: np.random.Generator, *shape: int, dtype: object = np.float32, scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(dtype)


def _vector_add(rng: np.random.Generator, n: int = N) -> Problem:
    x, y = _normal(rng, n), _normal(rng, n)
    return Problem(
        {"x_ptr": Input(x), "y_ptr": Input(y), "out_ptr": Output((n,), np.float32), "n": Number(n, "i32")}, {"out_ptr": x + y}
    )


def _doubled_in_place(rng: np.random.Generator, n: int = 48) -> Problem:
    x = _normal(rng, n)
    return Problem({"x_ptr": InOut(x)}, {"x_ptr": 2 * x})


def _gelu_erf(rng: np.random.Generator, columns: int = 200, rows: int = 3) -> Problem:
    x, bias, residual = _normal(rng, rows, columns), _normal(rng, columns), _normal(rng, rows, columns)
    z = bd.lift(x) + bd.lift(bias)
    phi = bd.lipschitz(verf, z * math.sqrt(0.5), ulps=2, slope=2 / math.sqrt(math.pi)) + 1.0
    expected = bd.lift(residual) + z * 0.5 * phi
    return Problem(
        {
            "x_ptr": Input(x),
            "bias_ptr": Input(bias),
            "residual_ptr": Input(residual),
            "out_ptr": Output((rows, columns), np.float32),
            "rows": Number(rows, "i32"),
            "columns": Number(columns, "i32"),
        },
        {"out_ptr": expected},
    )


def _quantised(dtype: object, rows: int = 5, columns: int = 200) -> Callable[[np.random.Generator], Problem]:
    """Scales are powers of two and values multiples of 1/64, so that every step but the last rounding is exact."""

    def problem(rng: np.random.Generator) -> Problem:
        x = (rng.integers(-4000, 4000, (rows, columns)) / 64).astype(np.float32)
        scale = np.float32(2.0) ** rng.integers(-2, 2, rows).astype(np.float32)
        scaled = x / scale[:, None]
        if np.issubdtype(np.dtype(dtype), np.integer):
            scaled = np.floor(np.clip(scaled, -128, 127) + 0.5)
        else:  # Triton converts with saturation
            largest = float(ml_dtypes.finfo(dtype).max)
            scaled = np.clip(scaled, -largest, largest)
        arguments = {
            "x_ptr": Input(x), "scale_ptr": Input(scale), "out_ptr": Output((rows, columns), dtype),
            "columns": Number(columns, "i32"),
        }
        return Problem(arguments, {"out_ptr": scaled.astype(dtype)})

    return problem


def _gelu_tanh(rng: np.random.Generator, n: int = N) -> Problem:
    x = _normal(rng, n, dtype=np.float16, scale=2)
    v = bd.lift(x)
    inner = (v + v * v * v * 0.044715) * math.sqrt(2 / math.pi)
    expected = v * 0.5 * (bd.lipschitz(np.tanh, inner, ulps=2) + 1.0)
    return Problem(
        {"x_ptr": Input(x), "out_ptr": Output((n,), np.float16), "n": Number(n, "i32")},
        {"out_ptr": bd.stored(expected, np.float16)},
    )


def _swiglu(rng: np.random.Generator, n: int = N) -> Problem:
    gate, up = (_normal(rng, n, dtype=ml_dtypes.bfloat16, scale=2) for _ in range(2))
    g = bd.lift(gate)
    expected = g * (bd.lift(1.0) / (bd.exp(-g) + 1.0)) * bd.lift(up)
    return Problem(
        {"gate_ptr": Input(gate), "up_ptr": Input(up), "out_ptr": Output((n,), ml_dtypes.bfloat16), "n": Number(n, "i32")},
        {"out_ptr": bd.stored(expected, ml_dtypes.bfloat16)},
    )


def _bf16(rng: np.random.Generator, n: int = N) -> Problem:
    x, y = (_normal(rng, n, dtype=ml_dtypes.bfloat16) for _ in range(2))
    a, b = x.astype(np.float64), y.astype(np.float64)
    product = bd.stored(bd.lift(a * b), ml_dtypes.bfloat16)
    larger = bd.Bounded(np.maximum(product.value, -a), product.error)
    total = bd.Bounded(larger.value + np.minimum(a, b), larger.error)
    return Problem(
        {"x_ptr": Input(x), "y_ptr": Input(y), "out_ptr": Output((n,), ml_dtypes.bfloat16), "n": Number(n, "i32")},
        {"out_ptr": bd.stored(total, ml_dtypes.bfloat16)},
    )


def _libdevice(rng: np.random.Generator, n: int = N) -> Problem:
    x = _normal(rng, n, scale=30)
    x[:8] = np.array([0.0, -0.0, 1e5, -3e6, 1.5707964, 7e8, 1e-20, 123456.789], np.float32)  # both paths of the range reduction
    v = bd.lift(x)
    log1p = bd.monotone(np.log1p, bd.lift(np.abs(x)), ulps=1)
    expected = bd.lipschitz(np.sin, v, ulps=2) + bd.lipschitz(np.cos, v, ulps=2) * log1p
    return Problem({"x_ptr": Input(x), "out_ptr": Output((n,), np.float32), "n": Number(n, "i32")}, {"out_ptr": expected})


def _roots(rng: np.random.Generator, n: int = N) -> Problem:
    x = rng.uniform(0.05, 20, n).astype(np.float32)
    v = bd.lift(x)
    rsqrt = bd.monotone(lambda a: 1 / np.sqrt(a), v, ulps=2)
    y = bd.sqrt(v) + rsqrt * bd.log(v) + bd.exp2(-v) + bd.lift(np.floor(x)) - bd.lift(np.ceil(x)) * 0.5
    return Problem(
        {"x_ptr": Input(x), "out_ptr": Output((n,), np.float32), "n": Number(n, "i32")}, {"out_ptr": bd.select(x > 4.0, y, -y)}
    )


def _casts(rng: np.random.Generator, n: int = N) -> Problem:
    x = _normal(rng, n, scale=40)
    x[:6] = [0.0, -0.0, 2.5, 3.5, 1e-6, -57343.0]
    whole = np.trunc(x).astype(np.int32)
    narrow = x.astype(ml_dtypes.float8_e5m2)
    expected = {
        "half_ptr": x.astype(np.float16),
        "bfloat_ptr": x.astype(ml_dtypes.bfloat16),
        "fp8_ptr": narrow,
        "int_ptr": whole,
        "byte_ptr": whole.astype(np.int8),
        "back_ptr": narrow.astype(np.float32),
    }
    outputs = {name: Output((n,), array.dtype) for name, array in expected.items()}
    return Problem({"x_ptr": Input(x), **outputs, "n": Number(n, "i32")}, expected)


def philox_uint32(seed: int, offset: np.ndarray) -> np.ndarray:
    """The first word of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11) of counter (offset, 0, 0, 0)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [offset.astype(np.uint64), *(np.zeros(offset.shape, np.uint64) for _ in range(3))]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ k[0], second & mask, (first >> np.uint64(32)) ^ c[3] ^ k[1], first & mask]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    return c[0].astype(np.uint32)


def _dropout(rng: np.random.Generator, n: int = N) -> Problem:
    x, seed, keep = _normal(rng, n), 0x1234567, 0.75
    word = philox_uint32(seed, np.arange(n)).view(np.int32)
    uniform = np.where(word < 0, -word - 1, word).astype(np.float32) * np.float32(4.6566127342e-10)
    expected = bd.lift(x) / keep
    return Problem(
        {
            "x_ptr": Input(x),
            "out_ptr": Output((n,), np.float32),
            "n": Number(n, "i32"),
            "seed": Number(seed, "i32"),
            "keep": Number(keep, "fp32"),
        },
        {"out_ptr": bd.select(uniform < np.float32(keep), expected, bd.lift(np.zeros(n)))},
    )


def _inline(rng: np.random.Generator, n: int = N) -> Problem:
    x, y = (rng.integers(-(2**31), 2**31, n).astype(np.int32) for _ in range(2))
    ux, uy = x.view(np.uint32), y.view(np.uint32)
    rotated = (ux << np.uint32(7)) | (ux >> np.uint32(25))
    mixed = ((uy & np.uint32(0xFFFF)) << np.uint32(16) | (rotated & np.uint32(0xFFFF))) ^ rotated
    return Problem(
        {"x_ptr": Input(x), "y_ptr": Input(y), "out_ptr": Output((n,), np.int32), "n": Number(n, "i32")},
        {"out_ptr": mixed.view(np.int32)},
    )


def _c_division(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder truncated to zero, as in C."""
    quotient = np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
    return quotient, a - quotient * b


def _integers(rng: np.random.Generator, n: int = N) -> Problem:
    x = rng.integers(-(2**31) + 1, 2**31, n)
    y = rng.integers(1, 2**31, n) >> rng.integers(0, 31, n)
    y = np.where(y == 0, 7, y) * rng.choice([-1, 1], n)
    ux, uy = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    quotient, remainder = _c_division(x, y)
    mixed = quotient ^ remainder ^ (x << 3) ^ (x >> 5) ^ (ux >> 7)
    mixed += ux // uy - ux % 13
    high = ((ux.astype(object) * uy.astype(object)) >> 32).astype(np.int64)
    out = ((mixed & ~y) | high).astype(np.int64).astype(np.uint32).view(np.int32)
    wide = x * y
    divisor = y * 3
    return Problem(
        {
            "x_ptr": Input(x.astype(np.int32)),
            "y_ptr": Input(y.astype(np.int32)),
            "out_ptr": Output((n,), np.int32),
            "wide_ptr": Output((n,), np.int64),
            "n": Number(n, "i32"),
        },
        {"out_ptr": out, "wide_ptr": _c_division(wide, divisor)[0] - (wide >> 9)},
    )


def _collatz(rng: np.random.Generator, n: int = N) -> Problem:
    x = rng.integers(1, 60, n).astype(np.int32)
    value, steps = x.astype(np.int64), np.zeros(n, np.int32)
    while (value > 1).any():
        steps += value > 1
        value = np.where(value > 1, np.where(value % 2 == 0, value // 2, 3 * value + 1), value)
    return Problem({"x_ptr": Input(x), "out_ptr": Output((n,), np.int32), "n": Number(n, "i32")}, {"out_ptr": steps})


def _polynomial(rng: np.random.Generator, n: int = N) -> Problem:
    x = rng.uniform(-1, 1, n).astype(np.float32)
    v, y = bd.lift(x), bd.lift(np.zeros(n))
    for degree in range(6):
        y = y * v + 1.0 / (degree + 1)
    for _ in range(n % 3 + 1):
        y = y * y
    return Problem({"x_ptr": Input(x), "out_ptr": Output((n,), np.float32), "n": Number(n, "i32")}, {"out_ptr": y})


F, H, BF, I = "*fp32:16", "*fp16:16", "*bf16:16", "*i32:16"


def _edges(make: Callable[..., Problem]) -> tuple[Variant, ...]:
    """Launches of one program whose last element lies in each of the accesses that a thread makes in turn."""
    return tuple(Variant((1,), lambda rng, n=n: make(rng, n)) for n in (1, 2, 129, 130))


XO = {"x_ptr": F, "out_ptr": F, "n": "i32"}
CASES = [
    Case("doubled_in_place", "pointwise.doubled_in_place", {"x_ptr": F}, {"BLOCK": 16}, (3,), _doubled_in_place),
    Case(
        "doubled_in_place_by_two_of_eight_warps", "pointwise.doubled_in_place", {"x_ptr": F}, {"BLOCK": 64}, (3,),
        partial(_doubled_in_place, n=192), num_warps=8,
    ),
    Case(
        "vector_add",
        "pointwise.vector_add",
        {"x_ptr": F, "y_ptr": F, "out_ptr": F, "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _vector_add,
        variants=_edges(_vector_add),
    ),
    Case(
        "vector_add_wide",
        "pointwise.vector_add",
        {"x_ptr": F, "y_ptr": F, "out_ptr": F, "n": "i32:16"},
        {"BLOCK": 1024},
        (3,),
        partial(_vector_add, n=3 * 1024 - 16),
    ),
    Case(
        "vector_add_unaligned",
        "pointwise.vector_add",
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"},
        {"BLOCK": 512},
        (2,),
        partial(_vector_add, n=601),
        num_warps=2,
    ),
    Case(
        "gelu_erf",
        "pointwise.gelu_erf",
        {"x_ptr": F, "bias_ptr": F, "residual_ptr": F, "out_ptr": F, "rows": "i32", "columns": "i32"},
        {"BLOCK": 256},
        (3,),
        _gelu_erf,
        variants=_edges(partial(_gelu_erf, rows=1)),
    ),
    Case("gelu_tanh", "pointwise.gelu_tanh", {"x_ptr": H, "out_ptr": H, "n": "i32"}, {"BLOCK": BLOCK}, GRID, _gelu_tanh),
    Case(
        "swiglu_bf16",
        "pointwise.swiglu_bf16",
        {"gate_ptr": BF, "up_ptr": BF, "out_ptr": BF, "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _swiglu,
    ),
    Case(
        "bf16_arithmetic",
        "pointwise.bf16_arithmetic",
        {"x_ptr": BF, "y_ptr": BF, "out_ptr": BF, "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _bf16,
    ),
    Case("libdevice_chain", "pointwise.libdevice_chain", XO, {"BLOCK": BLOCK}, GRID, _libdevice),
    Case("roots", "pointwise.roots", XO, {"BLOCK": BLOCK}, GRID, _roots),
    Case(
        "casts",
        "pointwise.casts",
        {
            "x_ptr": F,
            "half_ptr": H,
            "bfloat_ptr": BF,
            "fp8_ptr": "*fp8e5:16",
            "int_ptr": I,
            "byte_ptr": "*i8:16",
            "back_ptr": F,
            "n": "i32",
        },
        {"BLOCK": BLOCK},
        GRID,
        _casts,
    ),
    Case(
        "dropout",
        "pointwise.dropout",
        {"x_ptr": F, "out_ptr": F, "n": "i32", "seed": "i32", "keep": "fp32"},
        {"BLOCK": BLOCK},
        GRID,
        _dropout,
    ),
    Case(
        "inline_assembly",
        "pointwise.inline_assembly",
        {"x_ptr": I, "y_ptr": I, "out_ptr": I, "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _inline,
        chips=NVIDIA,  # the assembly is PTX
    ),
    Case(
        "integer_mix",
        "pointwise.integer_mix",
        {"x_ptr": I, "y_ptr": I, "out_ptr": I, "wide_ptr": "*i64:16", "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _integers,
        variants=_edges(_integers),
    ),
    Case(
        "collatz_steps",
        "pointwise.collatz_steps",
        {"x_ptr": I, "out_ptr": I, "n": "i32"},
        {"BLOCK": BLOCK},
        GRID,
        _collatz,
        variants=_edges(_collatz),
    ),
    Case("polynomial", "pointwise.polynomial", XO, {"DEGREE": 6, "BLOCK": BLOCK}, GRID, _polynomial, num_warps=1),
    *(
        Case(
            f"quantise_{name}",
            "pointwise.quantise_rows",
            {"x_ptr": "*fp32:16", "scale_ptr": "*fp32:16", "out_ptr": f"*{name}:16", "columns": "i32"},
            {"BLOCK": BLOCK},
            (5,),
            _quantised(dtype),
            chips=chips,
        )
        for name, dtype, chips in (
            ("i8", np.int8, None), ("fp8e4b8", ml_dtypes.float8_e4m3fnuz, AMD),
            ("fp8e5b16", ml_dtypes.float8_e5m2fnuz, AMD),
            ("fp8e4nv", ml_dtypes.float8_e4m3fn, (SM89,)), ("fp8e5", ml_dtypes.float8_e5m2, NVIDIA),
        )
    ),
]
