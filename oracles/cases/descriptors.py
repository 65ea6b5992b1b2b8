"""Cases of tensor descriptors: copies, reductions and products whose tiles a copy engine moves, where a chip has one."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from oracles import bounded as bd
from oracles.case import Case, Described, InOut, Input, Number, Output, Problem, Variant
from oracles.cases.matrix import BF16, F16, F32, QKV, attention_problem, random_array
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


def _product(rng: np.random.Generator, m: int, n: int, k: int, dtype: object = F16, columns: bool = False) -> Problem:
    a, b = random_array(rng, dtype, m, k), random_array(rng, dtype, k, n)
    sizes = {"M": Number(m, "i32"), "N": Number(n, "i32"), "K": Number(k, "i32")}
    right = np.ascontiguousarray(b.T) if columns else b
    arguments = {"a_ptr": Input(a), "b_ptr": Input(right), "c_ptr": Output((m, n), F16), **sizes}
    return Problem(arguments, {"c_ptr": bd.stored(bd.dot(a, b), F16)})


def _host_doubled(rng: np.random.Generator, rows: int, columns: int, dtype: type) -> Problem:
    x = rng.integers(-100, 100, (rows, columns)).astype(dtype)
    arguments = {"x": Described(Input(x)), "out": Described(Output(x.shape, dtype))}
    return Problem(arguments, {"out": x * dtype(2)})


def _host_product(rng: np.random.Generator, m: int, n: int, k: int) -> Problem:
    a, b = random_array(rng, F16, m, k), random_array(rng, F16, k, n)
    described = {"a": Described(Input(a)), "b": Described(Input(b)), "c": Described(Output((m, n), F16))}
    arguments = {**described, "K": Number(k, "i32")}
    return Problem(arguments, {"c": bd.stored(bd.dot(a, b), F16)})


def _combined(rng: np.random.Generator, programs: int, tile: int, maximum: bool) -> Problem:
    x, before = rng.integers(-(1 << 30), 1 << 30, (programs, tile)).astype(np.int32), rng.integers(0, 99, tile).astype(np.int32)
    combine = np.maximum if maximum else np.bitwise_xor
    arguments = {"x_ptr": Input(x.reshape(-1)), "out_ptr": InOut(before), "N": Number(x.size, "i32")}
    return Problem(arguments, {"out_ptr": combine(before, combine.reduce(x, 0))})


def _grouped(rng: np.random.Generator, n: int, k: int) -> Problem:
    starts = np.array([0, 70, 70, 101, 165], np.int32)
    groups, rows = len(starts) - 1, int(starts[-1])
    a, b = random_array(rng, F16, rows, k), random_array(rng, F16, groups, k, n)
    parts = [bd.dot(a[starts[g] : starts[g + 1]], b[g]) for g in range(groups)]
    c = bd.Bounded(np.concatenate([p.value for p in parts]), np.concatenate([p.error for p in parts]))
    arguments = {
        "a_ptr": Input(a), "b_ptr": Input(b), "c_ptr": Output((rows, n), F16), "starts_ptr": Input(starts),
        "groups": Number(groups, "i32"), "N": Number(n, "i32"), "K": Number(k, "i32"),
    }
    return Problem(arguments, {"c_ptr": bd.stored(c, F16)})


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
        # of one tile, with so many blocks of k that slots are filled again
        variants=(Variant((1,), partial(_product, m=m, n=n, k=7 * k)),),
    )


def _host_tensors(tile: tuple[int, int, int]) -> dict[str, str]:
    m, n, k = tile
    return {"a": f"tensordesc<fp16[{m},{k}]>", "b": f"tensordesc<fp16[{k},{n}]>", "c": f"tensordesc<fp16[{m},{n}]>", "K": "i32"}


def _by_columns(name: str, element: str, dtype: object, tile: tuple[int, int, int], imprecise: int | None, fast: bool) -> Case:
    m, n, k = tile
    pointers = _ARRAYS | {"a_ptr": f"*{element}:16", "b_ptr": f"*{element}:16"}
    return Case(
        f"descriptor_columns_{name}", "descriptors.product_by_columns", pointers,
        {"TILE_M": m, "TILE_N": n, "TILE_K": k, "IMPRECISE": imprecise}, (2, 1),
        partial(_product, m=2 * m - 8, n=n, k=3 * k - 32, dtype=dtype, columns=True), fast=fast, chips=HOPPER,
        # Triton adds what it promotes before it waits for the product; ptxas says so, and puts a wait there (C7517).
        found=() if imprecise is None else ("TFW0820",),
        # with so many blocks of k that slots are filled again
        variants=(Variant((1, 1), partial(_product, m=m, n=n, k=7 * k, dtype=dtype, columns=True)),),
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
    *(
        Case(
            f"descriptor_host_doubled_{element}", "descriptors.host_doubled",
            {name: f"tensordesc<{element}[16,{columns}]>" for name in ("x", "out")}, {"TILE_M": 16, "TILE_N": columns}, (3, 2),
            partial(_host_doubled, rows=40, columns=72, dtype=dtype), fast=element == "fp16", chips=HOPPER,
        )
        for element, dtype, columns in (("fp16", F16, 64), ("fp32", F32, 64), ("i32", np.int32, 64))
    ),
    *(
        Case(
            f"descriptor_host_product_{tile[0]}", "descriptors.host_product", _host_tensors(tile),
            {"TILE_M": tile[0], "TILE_N": tile[1], "TILE_K": tile[2]}, (2, 1),
            partial(_host_product, m=2 * tile[0] - 8, n=tile[1], k=3 * tile[2] - 16), fast=tile[0] == 64, chips=HOPPER,
        )
        for tile in ((64, 64, 64), (128, 128, 64))
    ),
    *(
        Case(
            f"descriptor_line_{name}", "descriptors.line_maxima", {"x_ptr": "*i32:16", "out_ptr": "*i32:16", "N": "i32"},
            {"TILE": 64, "MAXIMUM": maximum}, (3,), partial(_combined, programs=3, tile=64, maximum=maximum), fast=maximum,
            chips=HOPPER,
        )
        for name, maximum in (("maxima", True), ("parity", False))
    ),
    _by_columns("f16", "fp16", F16, (128, 64, 64), None, False),
    _by_columns("bf16", "bf16", BF16, (64, 128, 64), None, False),
    _by_columns("fp8e4nv", "fp8e4nv", ml_dtypes.float8_e4m3fn, (128, 128, 64), 32, True),
    _by_columns("fp8e5", "fp8e5", ml_dtypes.float8_e5m2, (64, 64, 128), 64, False),
    _by_columns("fp8e4nv_unpromoted", "fp8e4nv", ml_dtypes.float8_e4m3fn, (64, 128, 64), None, False),
    _multiplied("specialised", "specialised", (128, 128, 64), (2, 2), True),
    _multiplied("dependent", "dependent_product", (64, 64, 64), (2, 2), False),
    *(
        Case(
            f"descriptor_product_cluster_{m}", "descriptors.product", _ARRAYS, {"TILE_M": m, "TILE_N": n, "TILE_K": 64}, (2, 1),
            partial(_product, m=2 * m - 8, n=n, k=176), fast=False, num_ctas=2, chips=HOPPER,
        )
        for m, n in ((128, 128), (128, 64))
    ),
    Case(
        "descriptor_grouped", "descriptors.grouped", {
            "a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "c_ptr": "*fp16:16", "starts_ptr": "*i32:16", "groups": "i32", "N": "i32",
            "K": "i32",
        }, {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "PROGRAMS": 2}, (2,), partial(_grouped, n=128, k=80), fast=False,
        chips=HOPPER,
    ),
    *(
        Case(
            f"descriptor_attention_{name}", "descriptors.attention", QKV, {"HEAD": head, "TILE_Q": q, "TILE_K": 64}, (2, heads),
            attention_problem(heads, 2 * q - 24, head, False, F16), fast=False, num_warps=warps, num_stages=2, chips=HOPPER,
        )
        for name, head, q, heads, warps in (("64", 64, 64, 2, 4), ("128", 128, 128, 1, 8))
    ),
]
