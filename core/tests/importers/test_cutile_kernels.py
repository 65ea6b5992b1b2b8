"""Kernels of cuTile Python, compiled by it to bytecode, compute what NumPy does on the reference and on chips. Skipped where cuTile
is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tilefw
from oracles.cutile_bytecode import RuntimeNumber, bytecode_of
from tilefw.importers.cutile.bytecode_file import VERSIONS

ct = pytest.importorskip("cuda.tile", reason="cuTile is not installed: pip install cuda-tile==1.7.0")
TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")


@ct.kernel
def vector_add(x, y, out, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(TILE,)) + ct.load(y, index=(i,), shape=(TILE,)))


@ct.kernel
def gathered(x, y, out, TILE: ct.Constant[int]):
    i = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    ct.scatter(out, i, ct.gather(x, ct.gather(y, i)) * 2)


@ct.kernel
def matmul(a, b, c, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.full((M, N), 0.0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.load(a, index=(i, k), shape=(M, K), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(left, ct.load(b, index=(k, j), shape=(K, N), padding_mode=ct.PaddingMode.ZERO), acc)
    ct.store(c, index=(i, j), tile=acc)


@ct.kernel
def attention(q, k, v, out, scale: float, M: ct.Constant[int], N: ct.Constant[int], D: ct.Constant[int]):
    i = ct.bid(0)
    rows = ct.load(q, index=(i, 0), shape=(M, D))
    most = ct.full((M, 1), -1e30, dtype=ct.float32)
    total = ct.full((M, 1), 0.0, dtype=ct.float32)
    acc = ct.full((M, D), 0.0, dtype=ct.float32)
    for j in range(ct.num_tiles(k, axis=0, shape=(N, D))):
        keys = ct.load(k, index=(0, j), shape=(D, N), order=(1, 0), padding_mode=ct.PaddingMode.ZERO)
        scores = ct.mma(rows, keys, ct.full((M, N), 0.0, dtype=ct.float32)) * scale
        inside = j * N + ct.arange(N, dtype=ct.int32) < k.shape[0]
        scores = ct.where(inside, scores, -1e30)
        high = max(most, ct.max(scores, axis=1, keepdims=True))
        weights = ct.exp(scores - high)
        factor = ct.exp(most - high)
        total = total * factor + ct.sum(weights, axis=1, keepdims=True)
        values = ct.load(v, index=(j, 0), shape=(N, D), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(weights.astype(q.dtype), values, acc * factor)
        most = high
    ct.store(out, index=(i, 0), tile=acc / total)


@ct.kernel
def layer_norm(x, weight, out, eps: float, TILE: ct.Constant[int]):
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.ZERO)
    count = x.shape[1]
    mean = ct.sum(tile, axis=1, keepdims=True) / count
    inside = ct.arange(TILE, dtype=ct.int32) < count
    centred = ct.where(inside, tile - mean, 0.0)
    scale = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / count + eps)
    ct.store(out, index=(row, 0), tile=centred * scale * ct.load(weight, index=(0,), shape=(TILE,)))


@ct.kernel
def transposed(x, out, M: ct.Constant[int], N: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, index=(j, i), tile=ct.transpose(ct.load(x, index=(i, j), shape=(M, N))))


@ct.kernel
def parts(x, out, N: ct.Constant[int]):
    """Running sums of the quarters 3, 0, 2 and that of the row's number."""
    row = ct.bid(0)
    tile = ct.load(x, index=(row, 0), shape=(1, N))
    first = ct.cat((ct.extract(tile, index=(0, 3), shape=(1, N // 4)), ct.extract(tile, index=(0, 0), shape=(1, N // 4))), 1)
    second = ct.cat((ct.extract(tile, index=(0, 2), shape=(1, N // 4)), ct.extract(tile, index=(0, row), shape=(1, N // 4))), 1)
    ct.store(out, index=(row, 0), tile=ct.cumsum(ct.cat((first, second), 1), axis=1))


@ct.kernel
def locked_sum(x, total, lock, TILE: ct.Constant[int]):
    """Adds tiles of all programs to one, under a lock that atomics take and give back."""
    tile = ct.load(x, index=(ct.bid(0),), shape=(TILE,))
    while ct.atomic_cas(lock, 0, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    ct.store(total, index=(0,), tile=ct.load(total, index=(0,), shape=(TILE,)) + tile)
    ct.atomic_xchg(lock, 0, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def functions(x, out, TILE: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(TILE,))
    n = ct.astype(tile * 10, ct.int32)
    whole = n // 3 + n % 7 - ct.cdiv(n, 4)
    found = ct.sinh(tile) + ct.cosh(tile) * ct.tanh(tile) + ct.tan(tile) + ct.sqrt(ct.exp2(tile)) + ct.floor(tile)
    found += ct.atan2(tile, tile + 0.5) + tile**3
    ct.store(out, index=(ct.bid(0),), tile=found + whole.astype(ct.float32) + ct.maximum(ct.log(ct.exp(tile)), 0.25))


@ct.kernel
def columns(x, out, start: int, ROWS: ct.Constant[int], COLUMNS: ct.Constant[int]):
    """Columns from `start` on of every second row."""
    rows = ct.arange(ROWS, dtype=ct.int32) * 2
    ct.store_advanced_indexing(out, (rows, ct.Slice(1, COLUMNS)), ct.load_advanced_indexing(x, (rows, ct.Slice(start, COLUMNS))))


@ct.kernel
def largest(x, out, TILE: ct.Constant[int]):
    ct.store(out, index=(0,), tile=ct.full((1,), ct.max(ct.load(x, index=(0,), shape=(TILE,))), dtype=ct.float64))


@dataclass(frozen=True)
class CutileCase:
    """A kernel, its launch, and the arrays that it should leave, by a function of the arguments before the launch."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: Callable[[np.random.Generator], Sequence[Any]]
    constants: tuple[Any, ...]
    due: Callable[..., dict[int, np.ndarray]]
    tolerance: float = 1e-5


def normal(g: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return g.standard_normal(shape).astype(dtype)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def quarters(x: np.ndarray) -> np.ndarray:
    rows = [np.concatenate([row.reshape(4, -1)[i] for i in (3, 0, 2, number)]) for number, row in enumerate(x)]
    return np.cumsum(rows, axis=1)


def all_functions(x: np.ndarray) -> np.ndarray:
    n = np.trunc(x * np.float32(10)).astype(np.int64)
    whole = n // 3 + n % 7 + (-n // 4)
    x = x.astype(np.float64)
    found = np.arctan2(x, x + 0.5) + x**3 + np.sinh(x) + np.cosh(x) * np.tanh(x) + np.tan(x) + np.sqrt(np.exp2(x)) + np.floor(x)
    return found + whole + np.maximum(x, 0.25)


CASES = {
    "vector_add": CutileCase(
        vector_add, (4,), lambda g: [normal(g, 200), normal(g, 200), np.zeros(200, np.float32)], (64,), lambda x, y, _: {2: x + y},
    ),
    "gathered": CutileCase(
        gathered, (2,), lambda g: [normal(g, 90), g.permutation(90).astype(np.int32), np.zeros(90, np.float32)], (64,),
        lambda x, y, _: {2: 2 * x[y]},
    ),
    "matmul": CutileCase(
        matmul, (2, 2),
        lambda g: [normal(g, 40, 70, dtype=np.float16), normal(g, 70, 50, dtype=np.float16), np.zeros((40, 50), np.float32)],
        (32, 32, 32), lambda a, b, _: {2: a.astype(np.float32) @ b.astype(np.float32)}, 1e-3,
    ),
    "attention": CutileCase(
        attention, (2,),
        lambda g: [*(normal(g, rows, 32, dtype=np.float16) for rows in (32, 40, 40)), np.zeros((32, 32), np.float32), 0.2],
        (16, 32, 32),
        lambda q, k, v, *_: {3: softmax(q.astype(np.float32) @ k.astype(np.float32).T * 0.2) @ v.astype(np.float32)}, 4e-3,
    ),
    "layer_norm": CutileCase(
        layer_norm, (3,), lambda g: [normal(g, 3, 100), normal(g, 128), np.zeros((3, 100), np.float32), 1e-3], (128,),
        lambda x, w, *_: {2: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3) * w[:100]}, 1e-4,
    ),
    "transposed": CutileCase(
        transposed, (2, 3), lambda g: [normal(g, 30, 40), np.zeros((40, 30), np.float32)], (16, 16), lambda x, _: {1: x.T}, 0,
    ),
    "parts": CutileCase(
        parts, (2,), lambda g: [normal(g, 2, 64), np.zeros((2, 64), np.float32)], (64,), lambda x, _: {1: quarters(x)},
    ),
    "locked_sum": CutileCase(
        locked_sum, (4,), lambda g: [normal(g, 128), np.zeros(32, np.float32), np.zeros(1, np.int32)], (32,),
        lambda x, *_: {1: x.reshape(4, 32).sum(0), 2: np.zeros(1, np.int32)},
    ),
    "columns": CutileCase(
        columns, (1,), lambda g: [normal(g, 8, 4), np.zeros((8, 4), np.float32), 1], (4, 2),
        lambda x, *_: {1: np.where(np.arange(8)[:, None] % 2, 0, np.pad(x[:, 1:3], ((0, 0), (1, 1))))}, 0,
    ),
    "largest": CutileCase(
        largest, (1,), lambda g: [-1 - g.random(32), np.zeros(1)], (32,), lambda x, _: {1: x.max(keepdims=True)}, 0,
    ),
    "functions": CutileCase(
        functions, (2,), lambda g: [g.uniform(-1.4, 1.4, 128).astype(np.float32), np.zeros(128, np.float32)], (64,),
        lambda x, _: {1: all_functions(x)}, 1e-4,
    ),
}


def bytecode(case: CutileCase, arguments: Sequence[Any], version: str = "13.3", symbol: str | None = None) -> bytes:
    words = {float: "float32", int: "int32"}
    described = [RuntimeNumber(words[type(argument)]) if type(argument) in words else argument for argument in arguments]
    return bytecode_of(case.kernel, [*described, *case.constants], version, symbol)


def check(case: CutileCase, data: bytes, target: str) -> None:
    arguments = case.arguments(np.random.default_rng(3))
    due = case.due(*[argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments])
    tilefw.load(data, target).only().launch(case.grid, arguments)
    for index, wanted in due.items():
        np.testing.assert_allclose(arguments[index], wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_computes_what_numpy_does_on_every_target(name: str) -> None:
    case = CASES[name]
    data = bytecode(case, case.arguments(np.random.default_rng(3)), "13.4")
    for target in TARGETS:
        check(case, data, target)


@pytest.mark.parametrize("version", [f"{major}.{minor}" for major, minor in VERSIONS])
def test_every_version_that_cutile_writes_is_read(version: str) -> None:
    case = CASES["attention"]
    check(case, bytecode(case, case.arguments(np.random.default_rng(3)), version, "attention"), "reference")
