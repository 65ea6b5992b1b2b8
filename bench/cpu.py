"""Kernels on the target cpu, in one thread, beside NumPy and PyTorch on the same processor; writes `cpu.md`.

    python bench/cpu.py                # all rows, some minutes at most; replaces the section of this processor
    python bench/cpu.py softmax        # rows of that name, prints only

Both sides work on arrays that they have used before; the whole call is timed, not the kernel alone. Rows of two threads compare the
same work in one thread by the clock, which another process on the machine disturbs: each side is a process, and the best of its
rounds counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import Ratio, alternate, machine, processor, table

import tilefw
import tilefw.language as tl

HERE = Path(__file__).parent
_HEAD = """# The processor at hand

One thread and float32 where nothing else is named, whole calls on arrays of NumPy and tensors of PyTorch. A section for each
processor that the table was made on, as its last run left it."""
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TILEFW_CPU_THREADS"), "1")
Side = Callable[[], Any]


@tilefw.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@tilefw.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@tilefw.jit
def sort(x, out, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@tilefw.jit
def layernorm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    apart = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    made = apart * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, made, mask=mask)


@tilefw.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :], mask=rows[:, None] < m, other=0.0)
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :], mask=columns[None, :] < n, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@tilefw.jit
def narrow_matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32 if WHOLE else tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :], mask=rows[:, None] < m, other=0)
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :], mask=columns[None, :] < n, other=0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@tilefw.jit
def attention(q, k, v, out, keys, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * keys * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + dims[None, :])
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for start in range(0, keys, BN):
        at = start + tl.arange(0, BN)
        key = tl.load(k + head + at[None, :] * D + dims[:, None])
        scores = tl.dot(query, key, input_precision="ieee") * scale
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        shrink = tl.exp(peak - higher)
        powers = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(powers, axis=1)
        value = tl.load(v + head + at[:, None] * D + dims[None, :])
        sums = tl.dot(powers, value, sums * shrink[:, None], input_precision="ieee")
        peak = higher
    tl.store(out + head + rows[:, None] * D + dims[None, :], sums / total[:, None])


def _random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def _add(n: int) -> tuple[Side, Side]:
    x, y, out, theirs = _random(n), _random(n), np.empty(n, np.float32), np.empty(n, np.float32)
    return lambda: add[(tilefw.cdiv(n, 4096),)](x, y, out, n, BLOCK=4096), lambda: np.add(x, y, out=theirs)


def _softmax(rows: int, columns: int) -> tuple[Side, Side]:
    x, out = _random(rows, columns), np.empty((rows, columns), np.float32)

    def numpy() -> None:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)

    return lambda: softmax[(rows,)](x, out, columns, BLOCK=tilefw.next_power_of_2(columns)), numpy


def _sort(rows: int, columns: int) -> tuple[Side, Side]:
    x, out = _random(rows, columns), np.empty((rows, columns), np.float32)
    return lambda: sort[(rows,)](x, out, columns, BLOCK=columns), lambda: np.sort(x, axis=1)


def _layernorm(rows: int, columns: int) -> tuple[Side, Side]:
    import torch

    x, weight, bias = _random(rows, columns), _random(columns), _random(columns)
    out = np.empty_like(x)
    theirs = [torch.from_numpy(t) for t in (x, weight, bias)]
    block = tilefw.next_power_of_2(columns)
    return (
        lambda: layernorm[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=block),
        lambda: torch.nn.functional.layer_norm(theirs[0], (columns,), theirs[1], theirs[2]),
    )


def _matmul(size: int, block: tuple[int, int, int]) -> tuple[Side, Side]:
    a, b = _random(size, size), _random(size, size)
    c, theirs = np.empty_like(a), np.empty_like(a)
    bm, bn, bk = block
    grid = (tilefw.cdiv(size, bm), tilefw.cdiv(size, bn))
    return lambda: matmul[grid](a, b, c, size, size, size, BM=bm, BN=bn, BK=bk), lambda: np.matmul(a, b, out=theirs)


def _narrow(dtype: str, size: int, block: tuple[int, int, int]) -> tuple[Side, Side]:
    """Products of bf16, fp16 and int8 in tensors of PyTorch, summed up in fp32 or int32 and written in the type of the peer's."""
    import torch

    whole, kind = dtype == "int8", getattr(torch, dtype)
    made = torch.randint(-128, 128, (2, size, size), dtype=kind) if whole else torch.randn(2, size, size).to(kind)
    a, b = made
    c = torch.empty(size, size, dtype=torch.int32 if whole else kind)
    bm, bn, bk = block
    grid = (tilefw.cdiv(size, bm), tilefw.cdiv(size, bn))
    return (
        lambda: narrow_matmul[grid](a, b, c, size, size, size, BM=bm, BN=bn, BK=bk, WHOLE=whole),
        lambda: torch.ops.aten._int_mm(a, b) if whole else torch.matmul(a, b),
    )


def _attention(heads: int, keys: int, size: int) -> tuple[Side, Side]:
    import torch

    q, k, v = (_random(heads, keys, size) for _ in range(3))
    out = np.empty_like(q)
    query, key, value = (torch.from_numpy(t)[None] for t in (q, k, v))
    return (
        lambda: attention[(keys // 256, heads)](q, k, v, out, keys, size**-0.5, D=size, BM=256, BN=256),
        lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value),
    )


# What, against whom, the goal where there is one, rounds, both sides.
ROWS: tuple[tuple[str, str, float | None, int, Callable[[], tuple[Side, Side]]], ...] = (
    ("add 2^20", "NumPy", 1.1, 60, lambda: _add(1 << 20)),
    ("add 2^24", "NumPy", 1.1, 15, lambda: _add(1 << 24)),
    ("softmax 1024x1024", "NumPy", 0.5, 30, lambda: _softmax(1024, 1024)),
    ("softmax 1000x781", "NumPy", 0.5, 30, lambda: _softmax(1000, 781)),
    ("sort 1024x1024", "NumPy", None, 20, lambda: _sort(1024, 1024)),
    ("layer norm 1024x1024", "PyTorch", 1.0, 30, lambda: _layernorm(1024, 1024)),
    ("matmul 512", "NumPy", 1.3, 20, lambda: _matmul(512, (512, 512, 64))),
    ("matmul 2048", "NumPy", 1.3, 4, lambda: _matmul(2048, (512, 512, 128))),
    *(
        (f"matmul {dtype} {size}", "PyTorch", 1.3, rounds, partial(_narrow, dtype, size, block))
        for dtype, size, rounds, block in (
            ("bfloat16", 512, 30, (512, 512, 256)), ("bfloat16", 2048, 6, (512, 512, 256)),
            ("float16", 512, 30, (512, 512, 128)), ("float16", 2048, 6, (512, 512, 128)),
            ("int8", 512, 30, (512, 256, 256)), ("int8", 2048, 6, (512, 512, 256)),
        )
    ),
    ("attention 4x512x64", "PyTorch", 0.7, 20, lambda: _attention(4, 512, 64)),
)


THREADS = ("softmax 1024x1024", "matmul 2048", "attention 4x512x64")
"""Rows whose work two threads share."""
_BY_THE_CLOCK = "--clock"
_ROW_SECONDS = 10.0
"""How long the rounds of a row may take: a processor without products of narrow factors takes seconds for one."""


def _by_the_clock(what: str) -> None:
    """Print the seconds on the clock of a row's own side: the best of its rounds, and of as many as half a second has."""
    ((rounds, sides),) = [(row[3], row[4]) for row in ROWS if row[0] == what]
    ours, _ = sides()
    ours()
    taken: list[float] = []
    while len(taken) < rounds or sum(taken) < 0.5:
        begin = time.perf_counter()
        ours()
        taken.append(time.perf_counter() - begin)
    print(min(taken))


def _two_threads(what: str) -> Ratio:
    best = {1: float("inf"), 2: float("inf")}
    for threads in (1, 2, 2, 1):
        command = [sys.executable, __file__, _BY_THE_CLOCK, what]
        environment = os.environ | ONE_THREAD | {"TILEFW_CPU_THREADS": str(threads)}
        found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        best[threads] = min(best[threads], float(found.stdout))
    return Ratio(f"{what}, 2 threads", best[2], best[1], 0.56, "one thread")


def _silent(side: Side) -> Callable[[], None]:
    """A side without its result, which would count as its seconds."""

    def run() -> None:
        side()

    return run


def main(words: list[str]) -> None:
    tilefw.set_target("cpu")
    ratios: list[Ratio] = []
    for what, peer, goal, rounds, sides in ROWS:
        if any(word not in what for word in words):
            continue
        ours, theirs = sides()
        ours()
        once = alternate({"ours": _silent(ours), "theirs": _silent(theirs)}, 1)
        fit = int(_ROW_SECONDS / sum(once.values()))
        found = alternate({"ours": _silent(ours), "theirs": _silent(theirs)}, min(rounds, fit)) if fit else once
        ratios.append(Ratio(what, found["ours"], found["theirs"], goal, peer))
    ratios += [_two_threads(what) for what in THREADS if all(word in f"{what}, 2 threads" for word in words)]
    load = f"{os.getloadavg()[0]:.1f} processes wanted to run in the last minute"
    section = table(processor(), "peer's", ratios, f"{machine()} {load}; rows of two threads need both processors to themselves.")
    if words:
        print(section)
    else:
        _write_page(section)


def _write_page(section: str) -> None:
    """Replaces this processor's section; those of others stay as their machines left them."""
    page = HERE / "cpu.md"
    of_others = [old for old in page.read_text().split("\n\n## ")[1:] if old.partition("\n")[0] != processor()]
    sections = sorted([section, *(f"## {old.rstrip()}" for old in of_others)])
    page.write_text("\n\n".join([_HEAD, *sections]) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == [_BY_THE_CLOCK]:
        tilefw.set_target("cpu")
        _by_the_clock(sys.argv[2])
        sys.exit()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # libraries read them when they are loaded
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=os.environ | ONE_THREAD, check=False).returncode)
    main(sys.argv[1:])
