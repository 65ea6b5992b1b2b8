"""Cases of the reductions, normalisations and scans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from oracles import bounded as bd
from oracles.case import Case, InOut, Input, Number, Output, Problem, Variant
from oracles.chips import SM90A


def _normal(rng: np.random.Generator, *shape: int, dtype: object = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def _softmax(rows: int, columns: int, stride: int) -> Callable[[np.random.Generator], Problem]:
    """Rows `stride` apart; what lies between them is uninitialised, so that a read past a row's end is seen."""

    def problem(rng: np.random.Generator) -> Problem:
        x = _normal(rng, rows, stride)
        row = np.broadcast_to(np.arange(stride) < columns, x.shape)
        v = bd.lift(x[:, :columns])
        e = bd.exp(v - v.max(1, keepdims=True))
        y = e / e.sum(1, keepdims=True)
        padding = ((0, 0), (0, stride - columns))
        expected = bd.Bounded(np.pad(y.value, padding), np.pad(y.error, padding))
        return Problem(
            {
                "x_ptr": Input(x, row),
                "out_ptr": Output(x.shape, np.float32),
                "stride": Number(stride, "i32"),
                "columns": Number(columns, "i32"),
            },
            {"out_ptr": expected},
            {"out_ptr": row},
        )

    return problem


def _layer_norm(rows: int, columns: int, epsilon: float = 1e-5) -> Callable[[np.random.Generator], Problem]:
    def problem(rng: np.random.Generator) -> Problem:
        x, weight, bias = _normal(rng, rows, columns, dtype=np.float16), _normal(rng, columns), _normal(rng, columns)
        v = bd.lift(x)
        mean = v.sum(1, keepdims=True) / columns
        centred = v - mean
        scale = bd.lift(1.0) / bd.sqrt((centred * centred).sum(1, keepdims=True) / columns + epsilon)
        y = centred * scale * bd.lift(weight) + bd.lift(bias)
        return Problem(
            {
                "x_ptr": Input(x),
                "weight_ptr": Input(weight),
                "bias_ptr": Input(bias),
                "out_ptr": Output(x.shape, np.float16),
                "mean_ptr": Output((rows,), np.float32),
                "columns": Number(columns, "i32"),
                "epsilon": Number(epsilon, "fp32"),
            },
            {"out_ptr": bd.stored(y, np.float16), "mean_ptr": mean[:, 0]},
        )

    return problem


def _rms_norm(rng: np.random.Generator, rows: int = 6, columns: int = 100, epsilon: float = 1e-6) -> Problem:
    x, weight = _normal(rng, rows, columns), _normal(rng, columns)
    v = bd.lift(x)
    scale = bd.monotone(lambda a: 1 / np.sqrt(a), (v * v).sum(1, keepdims=True) / columns + epsilon, ulps=2)
    return Problem(
        {
            "x_ptr": Input(x),
            "weight_ptr": Input(weight),
            "out_ptr": Output(x.shape, np.float32),
            "rows": Number(rows, "i32"),
            "columns": Number(columns, "i32"),
            "epsilon": Number(epsilon, "fp32"),
        },
        {"out_ptr": v * scale * bd.lift(weight)},
    )


def _welford(rng: np.random.Generator, columns: int = 300, rows: int = 3) -> Problem:
    """Chan's update: a level of the tree adds at most nine roundings of the quantities it joins."""
    x = _normal(rng, rows, columns) + np.float32(2)
    v = x.astype(np.float64)
    levels = 10
    spread = np.ptp(v, axis=1)
    mean_error = levels * 9 * bd.F32 * (np.abs(v).max(1) + spread)
    variance = v.var(1)
    variance_error = levels * 9 * bd.F32 * (variance + spread**2) + 2 * spread * mean_error
    return Problem(
        {
            "x_ptr": Input(x),
            "mean_ptr": Output((rows,), np.float32),
            "variance_ptr": Output((rows,), np.float32),
            "columns": Number(columns, "i32"),
        },
        {"mean_ptr": bd.Bounded(v.mean(1), mean_error), "variance_ptr": bd.Bounded(variance, variance_error)},
    )


def _arg_extremes(rng: np.random.Generator, rows: int = 4, columns: int = 200) -> Problem:
    x = rng.integers(-20, 20, (rows, columns)).astype(np.float32)  # many ties: the leftmost wins
    return Problem(
        {
            "x_ptr": Input(x),
            "max_ptr": Output((rows,), np.int32),
            "min_ptr": Output((rows,), np.int32),
            "value_ptr": Output((rows,), np.float32),
            "columns": Number(columns, "i32"),
        },
        {"max_ptr": x.argmax(1).astype(np.int32), "min_ptr": x.argmin(1).astype(np.int32), "value_ptr": x.max(1)},
    )


def _column_sums(rng: np.random.Generator, rows: int = 70, columns: int = 50) -> Problem:
    x = rng.integers(-50, 50, (rows, columns)).astype(np.float32)
    return Problem(
        {
            "x_ptr": Input(x),
            "out_ptr": InOut(np.zeros(columns, np.float32)),
            "rows": Number(rows, "i32"),
            "columns": Number(columns, "i32"),
        },
        {"out_ptr": x.sum(0)},
    )


def _row_sums(rng: np.random.Generator, rows: int = 20, columns: int = 150) -> Problem:
    x = _normal(rng, rows, columns)
    return Problem(
        {"x_ptr": Input(x), "out_ptr": Output((rows,), np.float32), "rows": Number(rows, "i32"), "columns": Number(columns, "i32")},
        {"out_ptr": bd.lift(x).sum(1)},
    )


def _cumulative_sum(rng: np.random.Generator, rows: int = 5, columns: int = 128) -> Problem:
    x = rng.integers(-1000, 1000, (rows, columns)).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "out_ptr": Output(x.shape, np.int32), "rows": Number(rows, "i32")},
        {"out_ptr": x.cumsum(1, dtype=np.int32)},
    )


def _linear_recurrence(rng: np.random.Generator, rows: int = 2, length: int = 256) -> Problem:
    """Small whole numbers, exact in any association: |a| <= 1 and |b| <= 8 keep every partial result below 2^24."""
    a, b = rng.integers(-1, 2, (rows, length)).astype(np.float32), rng.integers(-8, 9, (rows, length)).astype(np.float32)
    forward, backward = np.zeros((rows, length)), np.zeros((rows, length))
    h, g = np.zeros(rows), np.zeros(rows)
    for t in range(length):
        h = a[:, t] * h + b[:, t]
        g = a[:, length - 1 - t] * g + b[:, length - 1 - t]
        forward[:, t], backward[:, length - 1 - t] = h, g
    return Problem(
        {"a_ptr": Input(a), "b_ptr": Input(b), "out_ptr": Output(a.shape, np.float32)}, {"out_ptr": bd.lift(forward - backward)}
    )


def _sort(rng: np.random.Generator, rows: int = 4, columns: int = 64) -> Problem:
    x = rng.integers(-99, 99, (rows, columns)).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "up_ptr": Output(x.shape, np.int32), "down_ptr": Output(x.shape, np.int32)},
        {"up_ptr": np.sort(x, 1), "down_ptr": -np.sort(-x, 1)},
    )


F, H, I = "*fp32:16", "*fp16:16", "*i32:16"
# One row each, whose last element lies in each of the accesses that a thread makes in turn.
EDGES = (1, 129, 257, 385)
SOFTMAX = {"x_ptr": F, "out_ptr": F, "stride": "i32", "columns": "i32"}
NORM = {"x_ptr": H, "weight_ptr": F, "bias_ptr": F, "out_ptr": H, "mean_ptr": F, "columns": "i32", "epsilon": "fp32"}
CASES = [
    Case(
        "softmax",
        "reduction.softmax",
        SOFTMAX,
        {"BLOCK": 512},
        (3,),
        _softmax(3, 300, 307),
        variants=tuple(Variant((1,), _softmax(1, n, n)) for n in EDGES),
    ),
    Case(
        "softmax_aligned",
        "reduction.softmax",
        {**SOFTMAX, "stride": "i32:16", "columns": "i32:16"},
        {"BLOCK": 1024},
        (2,),
        _softmax(2, 784, 800),
        num_warps=8,
    ),
    *(  # a row is divided between the workgroups of a cluster, which read each other's shared memory
        Case(
            f"softmax_cluster_{workgroups}", "reduction.softmax", SOFTMAX, {"BLOCK": 1024}, (2,), _softmax(2, 900, 907),
            num_ctas=workgroups, fast=workgroups == 2, chips=(SM90A,),
        )
        for workgroups in (2, 4)
    ),
    Case(
        "layer_norm_cluster", "reduction.layer_norm", NORM, {"BLOCK": 512}, (3,), _layer_norm(3, 700), num_ctas=2, fast=False,
        chips=(SM90A,),
    ),
    Case(
        "layer_norm",
        "reduction.layer_norm",
        NORM,
        {"BLOCK": 128},
        (3,),
        _layer_norm(3, 300),
        variants=tuple(Variant((1,), _layer_norm(1, n)) for n in (1, 128)),
    ),
    Case(
        "layer_norm_wide",
        "reduction.layer_norm",
        {**NORM, "columns": "i32:16"},
        {"BLOCK": 512},
        (2,),
        _layer_norm(2, 1200),
        num_warps=2,
    ),
    Case(
        "rms_norm",
        "reduction.rms_norm",
        {"x_ptr": F, "weight_ptr": F, "out_ptr": F, "rows": "i32", "columns": "i32", "epsilon": "fp32"},
        {"ROWS": 4, "BLOCK": 128},
        (2,),
        _rms_norm,
    ),
    Case(
        "welford",
        "reduction.welford",
        {"x_ptr": F, "mean_ptr": F, "variance_ptr": F, "columns": "i32"},
        {"BLOCK": 512},
        (3,),
        _welford,
        variants=tuple(Variant((1,), partial(_welford, columns=n, rows=1)) for n in EDGES),
    ),
    Case(
        "arg_extremes",
        "reduction.arg_extremes",
        {"x_ptr": F, "max_ptr": I, "min_ptr": I, "value_ptr": F, "columns": "i32"},
        {"BLOCK": 256},
        (4,),
        _arg_extremes,
    ),
    Case(
        "column_sums",
        "reduction.column_sums",
        {"x_ptr": F, "out_ptr": F, "rows": "i32", "columns": "i32"},
        {"ROWS": 32, "COLUMNS": 32},
        (3, 2),
        _column_sums,
    ),
    Case(
        "row_sums",
        "reduction.row_sums",
        {"x_ptr": F, "out_ptr": F, "rows": "i32", "columns": "i32"},
        {"ROWS": 8, "COLUMNS": 64},
        (3,),
        _row_sums,
    ),
    Case(
        "cumulative_sum",
        "reduction.cumulative_sum",
        {"x_ptr": I, "out_ptr": I, "rows": "i32"},
        {"ROWS": 8, "COLUMNS": 128},
        (1,),
        _cumulative_sum,
    ),
    Case(
        "linear_recurrence",
        "reduction.linear_recurrence",
        {"a_ptr": F, "b_ptr": F, "out_ptr": F},
        {"LENGTH": 256},
        (2,),
        _linear_recurrence,
    ),
    Case("sort_rows", "reduction.sort_rows", {"x_ptr": I, "up_ptr": I, "down_ptr": I}, {"ROWS": 4, "COLUMNS": 64}, (1,), _sort),
]
