"""Cases of the kernels whose control flow is the point."""

from __future__ import annotations

import numpy as np

from oracles.case import Case, InOut, Input, Number, Output, Problem

F, I = "*fp32:16", "*i32:16"


def _turn(x: int, y: int) -> int:
    return y * 3 + x if x > y else x * 2 - y


def _calls(rng: np.random.Generator, n: int = 300, count: int = 4, block: int = 256) -> Problem:
    seeds = rng.integers(-9, 9, 2).astype(np.int32)
    x = rng.integers(-99, 99, n).astype(np.int32)
    expected = x.copy()
    for program, seed in enumerate(seeds.tolist()):
        scale = seed
        for step in range(count):
            scale = _turn(scale, seed + step)
        rows = slice(program * block, (program + 1) * block)
        expected[rows] = x[rows] * scale + _turn(scale, count)
    return Problem(
        {"seeds_ptr": Input(seeds), "x_ptr": InOut(x), "n": Number(n, "i32"), "count": Number(count, "i32")}, {"x_ptr": expected}
    )


def _early_return(rng: np.random.Generator, programs: int = 24, block: int = 64) -> Problem:
    n = programs * block - 81
    x = rng.integers(0, 9, n).astype(np.int32)
    expected = np.full(n, -1, np.int32)
    for program in (p for p in range(programs) if p % 3 != 1):
        rows = slice(program * block, (program + 1) * block)
        value, left = x[rows].copy(), program
        while left > 0:
            value = value * np.int32(3) + np.int32(left)
            left //= 2
            value += 100 * (left == 2)
        expected[rows] = value
    return Problem(
        {"x_ptr": Input(x), "out_ptr": InOut(np.full(n, -1, np.int32)), "n": Number(n, "i32")}, {"out_ptr": expected}
    )


def _system_atomics(rng: np.random.Generator, n: int = 200, slots: int = 8) -> Problem:
    x = rng.integers(0, 2**20, n).astype(np.int32)
    start = rng.integers(0, 2**18, 3 * slots).astype(np.int32)
    after = start.copy()
    for slot in range(slots):
        mine = x[slot::slots]
        after[slot] = max(start[slot], mine.max())
        after[slots + slot] |= np.bitwise_or.reduce(mine)
        after[2 * slots + slot] += mine.sum()
    return Problem({"x_ptr": Input(x), "slots_ptr": InOut(start), "n": Number(n, "i32")}, {"slots_ptr": after})


def _hand_over(rng: np.random.Generator, block: int = 256, readers: int = 2) -> Problem:
    written = (np.arange(block) * 3).astype(np.int32)
    return Problem(
        {
            "x_ptr": Output((block,), np.int32),
            "flag_ptr": InOut(np.zeros(1, np.int32)),
            "out_ptr": Output((readers, block), np.int32),
        },
        {"x_ptr": written, "out_ptr": np.stack([written + reader + 1 for reader in range(readers)]).astype(np.int32)},
    )


def _segmented(rng: np.random.Generator, rows: int = 64, columns: int = 8) -> Problem:
    x = rng.integers(-9, 9, (rows, columns)).astype(np.int32)
    flags = (rng.random((rows, columns)) < 0.2).astype(np.int32)
    sums, running = np.empty_like(x), np.zeros(columns, np.int32)
    for row in range(rows):
        running = np.where(flags[row] != 0, x[row], running + x[row])
        sums[row] = running
    return Problem({"x_ptr": Input(x), "flags_ptr": Input(flags), "out_ptr": Output(x.shape, np.int32)}, {"out_ptr": sums})


def _largest(rng: np.random.Generator, rows: int = 2, columns: int = 128, count: int = 8) -> Problem:
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    return Problem(
        {"x_ptr": Input(x), "top_ptr": Output((rows, count), np.float32), "flipped_ptr": Output(x.shape, np.float32)},
        {"top_ptr": -np.sort(-x, axis=1)[:, :count], "flipped_ptr": x[:, ::-1]},
    )


CASES = [
    Case(
        "calls", "control.calls", {"seeds_ptr": I, "x_ptr": I, "n": "i32", "count": "i32"}, {"BLOCK": 256}, (2,), _calls
    ),
    Case(
        "early_return", "control.early_return", {"x_ptr": I, "out_ptr": I, "n": "i32"}, {"BLOCK": 64}, (2, 3, 4), _early_return,
        num_warps=1,
    ),
    Case(
        "system_atomics", "control.system_atomics", {"x_ptr": I, "slots_ptr": I, "n": "i32"}, {"SLOTS": 8, "BLOCK": 128}, (2,),
        _system_atomics, num_warps=2,
    ),
    Case("hand_over", "control.hand_over", {"x_ptr": I, "flag_ptr": I, "out_ptr": I}, {"BLOCK": 256}, (3,), _hand_over),
    Case(
        "segmented_sums", "control.segmented_sums", {"x_ptr": I, "flags_ptr": I, "out_ptr": I}, {"ROWS": 64, "COLUMNS": 8}, (1,),
        _segmented, num_warps=2,
    ),
    Case(
        "largest", "control.largest", {"x_ptr": F, "top_ptr": F, "flipped_ptr": F}, {"COLUMNS": 128, "COUNT": 8}, (2,), _largest,
        num_warps=2,
    ),
]
