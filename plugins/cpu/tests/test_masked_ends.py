"""Loops that leave out what masks leave out compute what the masks say, whatever stands for the elements beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl

INF, NAN = float("inf"), float("nan")


@tilefw.jit(do_not_specialize=["n", "skipped"])
def reduced(x, out, centred, n, skipped, OTHER: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    values = tl.load(x + at, mask=at < n, other=OTHER)
    top = tl.max(values, axis=0)
    powers = tl.exp(values - top)
    tl.store(out, top)
    tl.store(out + 1, tl.min(values, axis=0))
    tl.store(out + 2, tl.sum(values, axis=0))
    tl.store(out + 3, tl.sum(powers, axis=0))
    tl.store(out + 4, tl.sum(tl.where(at < skipped, values, 2.0), axis=0))
    tl.store(out + 5, tl.argmax(values, axis=0).to(tl.float32))
    tl.store(centred + at, powers, mask=at < skipped)


@tilefw.jit(do_not_specialize=["m", "n"])
def rows_of(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    both = tl.load(x + rows * n + columns, mask=(rows < m) & (columns < n), other=1)
    tl.store(out + tl.arange(0, M), tl.sum(both, axis=1))
    square = (tl.arange(0, M)[:, None] < n) & (tl.arange(0, M)[None, :] < m)
    tl.store(out + M + rows * M + tl.arange(0, M)[None, :], square.to(tl.int32))


@pytest.mark.parametrize("other", [0.0, 3.0, -INF, NAN], ids=str)
def test_a_reduction_counts_what_stands_beyond_the_mask_as_often_as_it_stands_there(other: float) -> None:
    random = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        for n, skipped in ((0, 70), (1, 256), (17, 16), (64, 100), (200, 256), (256, 0), (300, 1)):
            x: Any = random.standard_normal(256, dtype=np.float32)
            if n == 200:
                x[5] = NAN
            out, centred = np.zeros(6, np.float32), np.full(256, 7, np.float32)
            reduced[(1,)](x, out, centred, n, skipped, OTHER=other, N=256)
            values = np.where(np.arange(256) < n, x, np.float32(other))
            top = np.fmax.reduce(values)
            powers = np.exp(values - top)
            kept = np.where(np.arange(256) < skipped, values, np.float32(2))
            expected = [top, np.fmin.reduce(values), values.sum(), powers.sum(), kept.sum()]
            np.testing.assert_allclose(out[:5], expected, rtol=1e-4, atol=1e-5)
            if not np.isnan(values).any():
                assert out[5] == values.argmax()
            np.testing.assert_allclose(centred, np.where(np.arange(256) < skipped, powers, 7), rtol=1e-5)


def test_a_limit_of_rows_is_none_of_columns() -> None:
    x = np.arange(64 * 64, dtype=np.int32)
    for m, n in ((3, 40), (40, 3), (64, 64), (0, 64), (33, 17)):
        out = np.zeros(64 + 64 * 64, np.int32)
        rows_of[(1,)](x, out, m, n, M=64, N=64)
        rows, columns = np.arange(64)[:, None], np.arange(64)[None, :]
        inside = (rows < m) & (columns < n)
        assert (out[:64] == np.where(inside, x[np.minimum(rows * n + columns, 4095)], 1).sum(axis=1)).all()
        assert (out[64:].reshape(64, 64) == ((rows < n) & (columns < m))).all()


@tilefw.jit
def between(x_ptr, out_ptr, n: tl.int64, start: tl.int64, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = start + lanes.to(tl.int64)
    tl.store(out_ptr + lanes, tl.load(x_ptr + at, mask=(at >= 0) & (at < n), other=-1.0))


@pytest.mark.parametrize("n, start, let", [
    (2**63 - 1, -5, range(5, 32)), (2**63 - 1, 0, range(32)), (-(2**63), 5, range(0)), (3, -5, range(5, 8)),
])
def test_a_bound_far_from_where_a_tile_begins_is_counted_from_there(n: int, start: int, let: range) -> None:
    """Their difference has 65 bits."""
    x, out = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    between[(1,)](x, out, n, start, BLOCK=32, target="cpu-native")
    assert out.tolist() == [x[start + lane] if lane in let else -1 for lane in range(32)]
