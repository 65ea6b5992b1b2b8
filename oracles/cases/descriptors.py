"""Cases of tensor descriptors: copies, reductions and products whose tiles a copy engine moves, where a chip has one."""

from __future__ import annotations

from functools import partial

import numpy as np

from oracles import bounded as bd
from oracles.case import Case, InOut, Input, Number, Output, Problem
from oracles.cases.matrix import F16, F32, random_array
from oracles.chips import SM90A

HOPPER = (SM90A,)


def _doubled(rng: np.random.Generator, names: tuple[str, ...], shape: tuple[int, ...], dtype: type) -> Problem:
    x = rng.integers(-100, 100, shape).astype(dtype)
    sizes = {name: Number(size, "i32") for name, size in zip(names, shape, strict=True)}
    return Problem({"x_ptr": Input(x), "out_ptr": Output(shape, dtype), **sizes}, {"out_ptr": x * dtype(2)})


def _added(rng: np.random.Generator, rows: int, columns: int, tile: int, dtype: type) -> Problem:
    x = rng.integers(-50, 50, (rows, columns)).astype(dtype)
    before = rng.integers(-50, 50, (tile, columns)).astype(dtype)
    arguments = {"x_ptr": Input(x), "sum_ptr": InOut(before), "M": Number(rows, "i32"), "N": Number(columns, "i32")}
    return Problem(arguments, {"sum_ptr": (before + x.reshape(-1, tile, columns).sum(0)).astype(dtype)})


def _product(rng: np.random.Generator, m: int, n: int, k: int) -> Problem:
    a, b = random_array(rng, F16, m, k), random_array(rng, F16, k, n)
    sizes = {"M": Number(m, "i32"), "N": Number(n, "i32"), "K": Number(k, "i32")}
    arguments = {"a_ptr": Input(a), "b_ptr": Input(b), "c_ptr": Output((m, n), F16), **sizes}
    return Problem(arguments, {"c_ptr": bd.stored(bd.dot(a, b), F16)})


def _moved(
    name: str, kernel: str, element: str, dtype: type, shape: tuple[int, ...], tile: dict[str, int], grid: tuple[int, ...],
    fast: bool = False,
) -> Case:
    names = ("M", "N") if len(shape) == 2 else ("A", "B", "C")
    pointers = {"x_ptr": f"*{element}:16", "out_ptr": f"*{element}:16"}
    return Case(
        f"descriptor_{name}", f"descriptors.{kernel}", {**pointers, **dict.fromkeys(names, "i32")}, tile, grid,
        partial(_doubled, names=names, shape=shape, dtype=dtype), fast=fast, chips=HOPPER,
    )


def _reduced(element: str, dtype: type, columns: int) -> Case:
    return Case(
        f"descriptor_added_{element}", "descriptors.added",
        {"x_ptr": f"*{element}:16", "sum_ptr": f"*{element}:16", "M": "i32", "N": "i32"}, {"TILE_M": 16, "TILE_N": 32},
        (3, columns // 32 + 1), partial(_added, rows=48, columns=columns, tile=16, dtype=dtype), fast=element == "fp16",
        chips=HOPPER,
    )


_ARRAYS = {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp16:16", "M": "i32", "N": "i32", "K": "i32"}


def _multiplied(name: str, kernel: str, tile: tuple[int, int, int], grid: tuple[int, ...], fast: bool, **more: int) -> Case:
    m, n, k = tile
    return Case(
        f"descriptor_product_{name}", f"descriptors.{kernel}", _ARRAYS, {"TILE_M": m, "TILE_N": n, "TILE_K": k, **more}, grid,
        partial(_product, m=2 * m - 8, n=2 * n, k=3 * k - 16), fast=fast, chips=HOPPER, num_warps=4 if m * n <= 128 * 128 else 8,
    )


CASES = [
    _moved("doubled", "doubled", "fp32", F32, (40, 72), {"TILE_M": 16, "TILE_N": 32}, (3, 3), fast=True),
    _moved("doubled_f16", "doubled", "fp16", F16, (40, 72), {"TILE_M": 16, "TILE_N": 64}, (3, 2)),
    _moved("doubled_i8", "doubled", "i8", np.int8, (40, 80), {"TILE_M": 16, "TILE_N": 32}, (3, 3)),
    _moved("planes", "planes", "fp32", F32, (2, 24, 40), {"TILE": 16}, (2, 2)),
    _reduced("fp32", F32, 72),
    _reduced("fp16", F16, 72),
    _reduced("i32", np.int32, 72),
    _multiplied("64", "product", (64, 64, 64), (2, 2), True),
    _multiplied("128_64", "product", (128, 64, 32), (2, 2), False),
    _multiplied("128_256", "product", (128, 256, 64), (2, 2), False),
    _multiplied("persistent", "persistent", (64, 64, 32), (3,), True, PROGRAMS=3),
    _multiplied("persistent_128", "persistent", (128, 128, 64), (2,), False, PROGRAMS=2),
    Case(
        "dependent_grids", "descriptors.dependent", {"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32"}, {"TILE": 256}, (2,),
        partial(_doubled, names=("n",), shape=(300,), dtype=F32), chips=HOPPER,
    ),
]
