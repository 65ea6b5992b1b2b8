"""Cases of the kernels that move data or share it."""

from __future__ import annotations

from functools import partial

import numpy as np

from oracles import bounded as bd
from oracles.case import Case, InOut, Input, Number, Output, Problem, Variant
from oracles.chips import NVIDIA


def _transpose(rng: np.random.Generator, rows: int = 50, columns: int = 75) -> Problem:
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    return Problem(
        {
            "x_ptr": Input(x),
            "out_ptr": Output((columns, rows), np.float32),
            "rows": Number(rows, "i32"),
            "columns": Number(columns, "i32"),
        },
        {"out_ptr": np.ascontiguousarray(x.T)},
    )


def _weave(rng: np.random.Generator, n: int = 300) -> Problem:
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    sums = bd.lift(x) - bd.lift(y) * 2.0
    return Problem(
        {
            "x_ptr": Input(x),
            "y_ptr": Input(y),
            "out_ptr": Output((2 * n,), np.float32),
            "sums_ptr": Output((n,), np.float32),
            "n": Number(n, "i32"),
        },
        {"out_ptr": np.stack([x, y], 1).ravel(), "sums_ptr": sums},
    )


def _gather(rng: np.random.Generator, rows: int = 8, columns: int = 64, picked: int = 32) -> Problem:
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    index = rng.integers(0, columns, (rows, picked)).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "index_ptr": Input(index), "out_ptr": Output(index.shape, np.float32)},
        {"out_ptr": np.take_along_axis(x, index, 1)},
    )


def _embedding(rng: np.random.Generator, entries: int = 20, n: int = 13, width: int = 50) -> Problem:
    table = rng.standard_normal((entries, width)).astype(np.float16)
    index = rng.integers(0, entries, n).astype(np.int32)
    return Problem(
        {
            "table_ptr": Input(table),
            "index_ptr": Input(index),
            "out_ptr": Output((n, width), np.float16),
            "n": Number(n, "i32"),
            "width": Number(width, "i32"),
        },
        {"out_ptr": table[index]},
    )


def _histogram(rng: np.random.Generator, n: int = 700, bins: int = 32) -> Problem:
    x = rng.integers(0, bins, n).astype(np.int32)
    start = rng.integers(0, 9, bins).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "counts_ptr": InOut(start), "n": Number(n, "i32")},
        {"counts_ptr": (start + np.bincount(x, minlength=bins)).astype(np.int32)},
    )


def _scatter_counts(rng: np.random.Generator, n: int = 500, bins: int = 5) -> Problem:
    x = rng.integers(0, bins, n).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "counts_ptr": InOut(np.zeros(bins, np.int32)), "n": Number(n, "i32")},
        {"counts_ptr": np.bincount(x, minlength=bins).astype(np.int32)},
    )


def _atomic_mix(rng: np.random.Generator, n: int = 300, least: int = -(2**20)) -> Problem:
    x = rng.integers(least, 2**20, n).astype(np.int32)
    slots = rng.integers(least, 2**20, 8 + n).astype(np.int32)
    floats = rng.integers(-9, 9, 4 + n).astype(np.float32)
    after, swapped = slots.copy(), floats.copy()
    after[0], after[1] = max(slots[0], x.max()), min(slots[1], x.min())
    after[2] &= np.bitwise_and.reduce(x | 0x10)
    after[3] |= np.bitwise_or.reduce(x)
    after[4] ^= np.bitwise_xor.reduce(x)
    after[8:] += 5
    swapped[0] += n
    swapped[4:] = x
    return Problem(
        {
            "x_ptr": Input(x),
            "slots_ptr": InOut(slots),
            "old_ptr": Output((n,), np.int32),
            "float_ptr": InOut(floats),
            "n": Number(n, "i32"),
        },
        {"slots_ptr": after, "old_ptr": slots[8:], "float_ptr": swapped},
    )


def _ticket(rng: np.random.Generator, programs: int = 6) -> Problem:
    """Which program takes which number depends on the order; that each of them takes one does not."""
    return Problem(
        {"slots_ptr": InOut(np.zeros(3, np.int32)), "order_ptr": Output((programs,), np.int32)},
        {"slots_ptr": np.array([programs, 0, programs - 1], np.int32)},
        {"slots_ptr": np.array([True, False, True])},
    )


def _locked_sum(rng: np.random.Generator, programs: int = 5, block: int = 128) -> Problem:
    x = rng.integers(-99, 99, programs * block).astype(np.int32)
    return Problem(
        {"x_ptr": Input(x), "lock_ptr": InOut(np.zeros(1, np.int32)), "total_ptr": InOut(np.full(1, 1000, np.int32))},
        {"lock_ptr": np.zeros(1, np.int32), "total_ptr": np.array([1000 + x.sum()], np.int32)},
    )


def _split_k(rng: np.random.Generator, m: int = 32, n: int = 32, k: int = 90) -> Problem:
    a, b = rng.integers(-9, 9, (m, k)).astype(np.float16), rng.integers(-9, 9, (k, n)).astype(np.float16)
    product = a.astype(np.float32) @ b.astype(np.float32)
    return Problem(
        {
            "a_ptr": Input(a),
            "b_ptr": Input(b),
            "c_ptr": InOut(np.zeros((m, n), np.float32)),
            "M": Number(m, "i32"),
            "N": Number(n, "i32"),
            "K": Number(k, "i32"),
        },
        {"c_ptr": product + np.float32(0)},
    )


F, H, I = "*fp32:16", "*fp16:16", "*i32:16"
CASES = [
    Case(
        "transpose",
        "movement.transpose",
        {"x_ptr": F, "out_ptr": F, "rows": "i32", "columns": "i32"},
        {"ROWS": 32, "COLUMNS": 32},
        (2, 3),
        _transpose,
        variants=tuple(Variant((1, 1), partial(_transpose, rows=n, columns=n)) for n in range(1, 32, 4)),
    ),
    Case(
        "weave", "movement.weave", {"x_ptr": F, "y_ptr": F, "out_ptr": F, "sums_ptr": F, "n": "i32"}, {"BLOCK": 256}, (2,), _weave
    ),
    Case(
        "gather_rows",
        "movement.gather_rows",
        {"x_ptr": F, "index_ptr": I, "out_ptr": F},
        {"ROWS": 8, "COLUMNS": 64, "PICKED": 32},
        (1,),
        _gather,
    ),
    Case(
        "embedding",
        "movement.embedding",
        {"table_ptr": H, "index_ptr": I, "out_ptr": H, "n": "i32", "width": "i32"},
        {"ROWS": 8, "COLUMNS": 64},
        (2,),
        _embedding,
    ),
    Case(
        "atomic_histogram",
        "movement.atomic_histogram",
        {"x_ptr": I, "counts_ptr": I, "n": "i32"},
        {"BINS": 32, "BLOCK": 256},
        (3,),
        _histogram,
        variants=tuple(Variant((1,), partial(_histogram, n=n)) for n in (1, 2)),
    ),
    Case(
        "scatter_counts",
        "movement.scatter_counts",
        {"x_ptr": I, "counts_ptr": I, "n": "i32"},
        {"BLOCK": 256},
        (2,),
        _scatter_counts,
        variants=(Variant((1,), partial(_scatter_counts, n=200, bins=2**22)),),  # hardly two elements on one address
    ),
    Case(
        "atomic_mix",
        "movement.atomic_mix",
        {"x_ptr": I, "slots_ptr": I, "old_ptr": I, "float_ptr": F, "n": "i32"},
        {"BLOCK": 256},
        (2,),
        _atomic_mix,
        chips=NVIDIA,
    ),
    # Triton 3.9 for gfx942 combines the lanes of a wave by unsigned max and min before its signed atomics: wrong below zero.
    Case(
        "atomic_mix_of_naturals",
        "movement.atomic_mix",
        {"x_ptr": I, "slots_ptr": I, "old_ptr": I, "float_ptr": F, "n": "i32"},
        {"BLOCK": 256},
        (2,),
        partial(_atomic_mix, least=0),
    ),
    Case("ticket", "movement.ticket", {"slots_ptr": I, "order_ptr": I}, {}, (6,), _ticket),
    Case("locked_sum", "movement.locked_sum", {"x_ptr": I, "lock_ptr": I, "total_ptr": I}, {"BLOCK": 128}, (5,), _locked_sum),
    Case(
        "split_k",
        "movement.split_k",
        {"a_ptr": H, "b_ptr": H, "c_ptr": F, "M": "i32", "N": "i32:16", "K": "i32"},
        {"TILE": 32, "TILE_K": 32},
        (1, 1, 3),
        _split_k,
    ),
]
