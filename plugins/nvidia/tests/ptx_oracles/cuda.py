"""nvcc's PTX as a second foreign compiler: cases compiled from kernels.cu and hopper.cu where nvcc is installed."""

from __future__ import annotations

import functools
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from oracles.case import Case, InOut, Input, Number, Output, Problem
from oracles.chips import SM80
from oracles.corpus import Item, Launch


def nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


@functools.cache
def ptx(source: str, chip: str, *flags: str) -> str:
    """The PTX of a source here compiled with `flags`; `-DCALLS` adds a kernel that calls a recursive function to kernels.cu."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.ptx"
        command = [nvcc(), "-ptx", f"-arch={chip}", "-O2", "-w", *flags, "-o", str(out), str(Path(__file__).parent / source)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return out.read_text()


def item(name: str, seed: int = 0) -> Item:
    make, grid, block = CASES[name]
    problem = make(np.random.default_rng(seed))
    case = Case(name, f"cuda.{name}", {}, {}, grid, make)
    text = ptx("kernels.cu", "sm_80")
    return Item(name, text, text, name, Launch(grid, block, dynamic_shared=0, hidden=0), case, problem, SM80)


def _scaled_sum(rng: np.random.Generator, n: int = 700) -> Problem:
    x, y = (rng.integers(-99, 99, n).astype(np.float32) for _ in range(2))
    return Problem({"n": Number(n, "i32"), "a": Number(3.0, "fp32"), "x": Input(x), "y": InOut(y)}, {"y": 3 * x + y})


def _block_sum(rng: np.random.Generator, n: int = 900) -> Problem:
    x = rng.integers(-99, 99, n).astype(np.int32)
    return Problem(
        {"x": Input(x), "total": InOut(np.zeros(1, np.int32)), "n": Number(n, "i32")},
        {"total": x.sum(keepdims=True, dtype=np.int32)},
    )


def _tile_transpose(rng: np.random.Generator, rows: int = 30, columns: int = 45) -> Problem:
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    return Problem(
        {"x": Input(x), "y": Output((columns, rows), np.float32), "rows": Number(rows, "i32"), "columns": Number(columns, "i32")},
        {"y": np.ascontiguousarray(x.T)},
    )


def _greatest_divisor(rng: np.random.Generator, n: int = 200) -> Problem:
    x, y = (rng.integers(0, 5000, n).astype(np.uint32) for _ in range(2))
    return Problem(
        {"x": Input(x), "y": Input(y), "out": Output((n,), np.uint32), "n": Number(n, "i32")},
        {"out": np.array([math.gcd(int(a), int(b)) for a, b in zip(x, y, strict=True)], np.uint32)},
    )


def _digit_counts(rng: np.random.Generator, n: int = 150) -> Problem:
    x = rng.integers(1, 2**32, n).astype(np.uint32)
    most = [max(range(10), key=lambda d, text=str(v): (text.count(str(d)), -d)) for v in x]
    return Problem(
        {"x": Input(x), "most_common": Output((n,), np.int32), "n": Number(n, "i32")}, {"most_common": np.array(most, np.int32)}
    )


def _compact_positive(rng: np.random.Generator, n: int = 100) -> Problem:
    x = rng.integers(-9, 9, n).astype(np.int32)
    positive = x[x > 0]
    return Problem({"x": Input(x), "out": Output(positive.shape, np.int32), "n": Number(n, "i32")}, {"out": positive})


Make = Callable[[np.random.Generator], Problem]
Extent = tuple[int, int, int]
CASES: dict[str, tuple[Make, Extent, Extent]] = {
    "scaled_sum": (_scaled_sum, (2, 1, 1), (96, 1, 1)),
    "block_sum": (_block_sum, (4, 1, 1), (256, 1, 1)),
    "tile_transpose": (_tile_transpose, (3, 2, 1), (16, 16, 1)),
    "greatest_divisor": (_greatest_divisor, (2, 1, 1), (128, 1, 1)),
    "digit_counts": (_digit_counts, (3, 1, 1), (64, 1, 1)),
    "compact_positive": (_compact_positive, (1, 1, 1), (32, 1, 1)),
}
