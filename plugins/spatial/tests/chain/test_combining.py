"""Reductions over time are what folding by the row of the table gives, from the start and in order, for every kind and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilefw.api import DTYPES
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import EvaluatedValue
from tilefw_spatial import isa
from tilefw_spatial.chain import Combined, Input, NodeResult
from tilefw_spatial.graph import ReductionKind

from .running import chain, run

EVERY, POINTS, LANES = 5, 15, 8
_FLOAT_KINDS = {
    ReductionKind.ADDF, ReductionKind.MULF, ReductionKind.MAXF, ReductionKind.MINF, ReductionKind.MAXNUM, ReductionKind.MINNUM
}
CASES = [(kind, dtype) for kind in ReductionKind for dtype in ("int1", "int8", "int16", "int32", "fp16", "bf16", "fp32")
         if (kind in _FLOAT_KINDS) == DTYPES[dtype].is_float]


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_combined(kind: ReductionKind, dtype: str, started: bool) -> None:
    rng = np.random.default_rng(6)
    x, start = drawn(rng, dtype, POINTS), drawn(rng, dtype, POINTS // EVERY)
    initial = Input("start", dtype, reduced=True) if started else None
    fused_segments = chain([NodeResult("out", Combined(kind, Input("x", dtype), EVERY, dtype, initial))])
    got = run(fused_segments, {"x": stored(x, dtype), "start": stored(start, dtype)}, (POINTS, LANES), EVERY)["out"]
    groups = x.reshape(-1, EVERY, LANES)
    totals = [start, *groups.transpose(1, 0, 2)] if started else list(groups.transpose(1, 0, 2))
    wide = DTYPES["fp32"] if DTYPES[dtype].is_float else DTYPES[dtype]  # narrow floats are rounded once, at the end
    total = totals[0]
    for step in totals[1:]:
        total = evaluate(ROWS[kind.value], [EvaluatedValue(total), EvaluatedValue(step)], wide, wide, fusion=False).x
    assert np.array_equal(got, stored(total, dtype), equal_nan=DTYPES[dtype].is_float and dtype != "bf16")


def drawn(rng: np.random.Generator, dtype: str, points: int) -> Any:
    """Small numbers, a NaN among the floats."""
    if not DTYPES[dtype].is_float:
        return numbers.wrap(rng.integers(-(1 << 31), 1 << 31, (points, LANES)), DTYPES[dtype].bits)
    x = rng.normal(size=(points, LANES))
    if dtype != "bf16":
        x[0, 0] = np.nan
    return numbers.in_format(x, DTYPES[dtype])


def stored(x: Any, dtype: str) -> Any:
    raw = numbers.to_bytes(np.ascontiguousarray(x), DTYPES[dtype])
    return (raw != 0 if dtype == "int1" else raw.view(isa.TYPES[dtype].numpy)).reshape(x.shape)
