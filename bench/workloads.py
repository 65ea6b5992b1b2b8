"""The launches that simulation is timed on, at the sizes of docs/architecture.md.

Kernels of the test corpus run as Triton's code for each chip, kernels of the library as our PTX.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from library import Work

from oracles.case import Case
from oracles.cases import matrix, pointwise, reduction
from oracles.chips import GFX942, SM80
from oracles.corpus import Corpus, all_cases

MILLION = 1 << 20
_GOALS = {"vector_add_1m": 0.2, "softmax_1024": 0.25, "matmul_512": 1.0, "attention_4_512_64": 1.0}
# Triton's code for each chip, with the goal of each workload.
TRITON = (
    (Corpus(SM80), _GOALS),
    (Corpus(GFX942), {**_GOALS, "matmul_512_128": 1.0}),
)
_CUBE = {"m": 512, "n": 512, "k": 512, "num_warps": 4}
_ATTENTION = {"heads": 4, "kv_heads": 4, "queries": 512, "keys": 512, "head_size": 64, "causal": False}
# Each with its goal.
LIBRARY: dict[str, tuple[Work, float]] = {
    "library_vector_add": (Work("vector_add", {"n": MILLION}), 0.2),
    "library_softmax": (Work("softmax", {"rows": 1024, "columns": 1024, "programs": 1024}), 0.25),
    "library_matmul_64": (Work("matmul", {**_CUBE, "block_m": 64, "block_n": 64}, label="matmul 512³, 64x64x32"), 1.0),
    "library_matmul_128": (Work("matmul", {**_CUBE, "block_m": 128, "block_n": 128}, label="matmul 512³, 128x128x32"), 1.0),
    "library_attention": (
        Work("attention", {**_ATTENTION, "block_m": 128, "block_n": 64}, label="attention (4, 512, 64), 128x64"), 1.0,
    ),
}


def _case(name: str) -> Case:
    return next(case for case in all_cases() if case.name == name)


def case(name: str) -> Case:
    """The workload called `name`, of those that run as Triton's code."""
    if name == "vector_add_1m":
        return replace(_case("vector_add_wide"), name=name, grid=(1024,), problem=partial(pointwise._vector_add, n=MILLION))
    if name == "softmax_1024":
        return replace(_case("softmax_aligned"), name=name, grid=(1024,), problem=reduction._softmax(1024, 1024, 1024), num_warps=4)
    if name == "matmul_512":
        return _cube(name, 64)
    if name == "matmul_512_128":
        return _cube(name, 128)
    if name == "attention_4_512_64":
        tile = {"HEAD": 64, "TILE_Q": 128, "TILE_K": 64, "CAUSAL": False}
        return replace(
            _case("attention_causal"),
            name=name,
            grid=(4, 4),
            constexprs=tile,
            problem=matrix.attention_problem(4, 512, 64, False, np.float16),
        )
    raise KeyError(name)


def _cube(name: str, side: int) -> Case:
    """A product of 512³ by square tiles."""
    return replace(
        _case("matmul_f16"),
        name=name,
        grid=(512 // side, 512 // side),
        constexprs=matrix.tile(side, side, 32),
        problem=matrix.matmul_problem(512, 512, 512, np.float16, np.float16),
        num_warps=4,
    )
