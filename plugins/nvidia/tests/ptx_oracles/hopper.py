"""nvcc's PTX for sm_90a: engines' copies, barriers that count bytes, products of warpgroups, roles, clusters (`hopper.cu`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from oracles import bounded as bd
from oracles.case import Case, Described, InOut, Input, Number, Output, Problem
from oracles.chips import SM90A
from oracles.corpus import Box, Item, Launch
from ptx_oracles import cuda

HALVES: Box = ((64, 64), 3)  # rows and columns of a box of halves


@dataclass(frozen=True, slots=True)
class Kernel:
    """How an entry is launched. `boxes` are those of its tensor maps, in order."""

    make: cuda.Make
    grid: cuda.Extent
    block: cuda.Extent
    dynamic_shared: int = 0
    boxes: tuple[Box, ...] = ()


def item(name: str, seed: int = 0) -> Item:
    kernel = KERNELS[name]
    problem = kernel.make(np.random.default_rng(seed))
    text = cuda.ptx("hopper.cu", "sm_90a")
    case = Case(name, f"hopper.{name}", {}, {}, kernel.grid, kernel.make)
    launch = Launch(kernel.grid, kernel.block, kernel.dynamic_shared, hidden=0, boxes=kernel.boxes)
    return Item(name, text, text, name, launch, case, problem, SM90A)


def _blocks(rng: np.random.Generator) -> Problem:
    x = rng.integers(-999, 999, 2 * 3 * 256).astype(np.int32)
    return Problem({"x": Input(x), "out": Output(x.shape, np.int32)}, {"out": 2 * x + 1})


def _sums(rng: np.random.Generator) -> Problem:
    x, before = rng.integers(-99, 99, (3, 128)).astype(np.float32), rng.integers(-99, 99, 128).astype(np.float32)
    return Problem({"x": Input(x), "sum": InOut(before)}, {"sum": before + x.sum(0)})


def _transposed(rng: np.random.Generator, rows: int = 48, columns: int = 76) -> Problem:
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    arguments = {"x": Described(Input(x)), "y": Described(Output((columns, rows), np.float32))}
    return Problem(arguments, {"y": np.ascontiguousarray(x.T)})


def _product(rng: np.random.Generator, m: int, n: int, k: int, by_rows: bool) -> Problem:
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    right = b if by_rows else np.ascontiguousarray(b.T)
    described: Mapping[str, Described] = {"a": Described(Input(a)), "b": Described(Input(right))}
    arguments = {**described, "c": Output((m, n), np.float32), "n": Number(n, "i32"), "k": Number(k, "i32")}
    return Problem(arguments, {"c": bd.stored(bd.dot(a, b), np.float32)})


def _histogram(rng: np.random.Generator, n: int = 500, bins: int = 64) -> Problem:
    x = rng.integers(0, bins, n).astype(np.int32)
    counts = np.bincount(x, minlength=bins).astype(np.int32)
    arguments = {
        "x": Input(x), "counts": InOut(np.zeros(bins, np.int32)), "n": Number(n, "i32"), "bins": Number(bins, "i32"),
    }
    return Problem(arguments, {"counts": counts})


def _sent(rng: np.random.Generator) -> Problem:
    x = rng.integers(-999, 999, (2, 4, 32)).astype(np.int32)
    sums, odd = x.sum(2), (x & 1).sum((1, 2))[:, None]
    return Problem(
        {"x": Input(x), "out": Output((2, 5), np.int32)}, {"out": np.concatenate([sums, odd], axis=1).astype(np.int32)}
    )


def _reversed(rng: np.random.Generator, each: int, blocks: int, rounds: int | None = None) -> Problem:
    x = rng.integers(-999, 999, (blocks, each)).astype(np.int32)
    more = {} if rounds is None else {"rounds": Number(rounds, "i32")}
    return Problem({"x": Input(x), "out": Output(x.shape, np.int32), **more}, {"out": np.ascontiguousarray(x[:, ::-1])})


_RING = 3 * (128 + 64) * 64 * 2
KERNELS: dict[str, Kernel] = {
    "bulk_blocks": Kernel(_blocks, (2, 1, 1), (64, 1, 1)),
    "bulk_sums": Kernel(_sums, (3, 1, 1), (128, 1, 1)),
    "box_transpose": Kernel(_transposed, (3, 2, 1), (128, 1, 1), boxes=(((32, 32), 3), ((32, 32), 3))),
    "product_by_rows": Kernel(
        partial(_product, m=128, n=64, k=192, by_rows=True), (1, 2, 1), (128, 1, 1), boxes=(HALVES, HALVES)
    ),
    "product_with_roles": Kernel(
        partial(_product, m=128, n=128, k=320, by_rows=False), (2, 1, 1), (384, 1, 1), _RING, (((128, 64), 3), HALVES)
    ),
    "product_by_clusters": Kernel(
        partial(_product, m=128, n=128, k=256, by_rows=False), (2, 2, 1), (160, 1, 1), boxes=(HALVES, ((32, 64), 3))
    ),
    "cluster_histogram": Kernel(_histogram, (4, 1, 1), (64, 1, 1), 32 * 4),
    "sent_sums": Kernel(_sent, (8, 1, 1), (32, 1, 1)),
    "copies_by_threads": Kernel(partial(_reversed, each=512, blocks=6, rounds=3), (2, 1, 1), (128, 1, 1)),
    "library_transaction": Kernel(partial(_reversed, each=128, blocks=3), (3, 1, 1), (128, 1, 1)),
}
