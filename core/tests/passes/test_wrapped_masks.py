"""A mask whose index wraps around is taken as the kernel computes it; one that surely does not becomes the end of a block."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.passes.integer_ranges import _RULES
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation.kernel_source import ahead_of_time, from_jit
from tilefw.tile.dialect.memory_ops import LoadOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.nested_ops import nested_ops

BLOCK = 64
X = np.arange(BLOCK, dtype=np.float32)


@tilefw.jit
def counted_on(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at + n < m, other=-1.0))


@tilefw.jit
def counted_on_wide(x, o, n: tl.int64, m: tl.int64, BLOCK: tl.constexpr):  # pyright: ignore[reportInvalidTypeForm]
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at + n < m, other=-1.0))


@tilefw.jit
def counted_in_steps(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for first in range(n, n + 2, 2):
        tl.store(o + at, tl.load(x + at, mask=first + at < m, other=-1.0))


@tilefw.jit
def multiplied(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at + 64 * n < m, other=-1.0))


@tilefw.jit
def stored_elsewhere(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    there = at + n
    tl.store(o + at, tl.load(x + at, mask=there < m, other=-1.0))
    tl.store(o + there, 0.0, mask=(there >= 0) & (there < 0))  # what it lets through does not wrap, which is nothing here


MOST, MOST_WIDE = 2**31 - 1, 2**63 - 1
CASES = [
    *((counted_on, n, m) for n in (MOST - 9, MOST - 63, -MOST - 1) for m in (20, MOST, -MOST + 19)),
    *((counted_on_wide, n, m) for n in (MOST_WIDE - 9, MOST) for m in (20, MOST + 20, MOST_WIDE)),
    *((counted_in_steps, MOST - 9, m) for m in (20, MOST)),
    *((stored_elsewhere, MOST - 9, m) for m in (20, MOST)),
    *((multiplied, n, m) for n in (2**25, 2**26) for m in (20, MOST, -MOST + 19)),
]


@pytest.mark.parametrize("target", ["reference", "cpu", "nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
def test_a_masks_index_wraps_as_the_kernels_integers_do(target):
    for kernel, n, m in CASES if target == "reference" else CASES[::3]:
        found = np.zeros(BLOCK, np.float32)
        kernel[(1,)](X, found, n, m, BLOCK=BLOCK, target=target)
        bits = 64 if kernel is counted_on_wide else 32
        sums = [i + n * (64 if kernel is multiplied else 1) for i in range(BLOCK)]
        below = np.array([(total + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) < m for total in sums])
        np.testing.assert_array_equal(found, np.where(below, X, -1), f"{kernel.__name__} {n} {m}")


@tilefw.jit
def counted_back(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    there = at - 5 + n  # far below zero it wraps around to large numbers, which the mask keeps off
    tl.store(o + at, tl.load(x + there, mask=there < m, other=-1.0))


@tilefw.jit
def up_to_an_offset(x, o, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    last = n + m  # far above zero it wraps around to negative numbers, below which nothing is
    tl.store(o + at, tl.load(x + (last - at), mask=at <= last, other=-1.0))


@pytest.mark.parametrize("kernel, n, m", [
    *((counted_back, n, -MOST - 1) for n in (-MOST - 1, -MOST + 3)), *((up_to_an_offset, n, MOST) for n in (1, MOST)),
])
def test_nothing_is_loaded_where_only_the_exact_integer_is_within_the_mask(kernel, n, m):
    for target in ("reference", "cpu"):
        found = np.zeros(BLOCK, np.float32)
        kernel[(1,)](X, found, n, m, BLOCK=BLOCK, target=target)
        assert (found == -1).all()


@tilefw.jit
def looked_ahead(x, o, first, stride, turns, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for _ in range(0, turns // 5):
        following = first + BLOCK  # that of the last turn is an offset of no access
        tl.store(o + at, tl.load(x + first * stride + at, mask=following + at < m, other=-1.0))
        first = following


def test_what_a_loop_carries_to_another_turn_may_wrap_in_this_one():
    for target in ("reference", "cpu"):
        found = np.zeros(16, np.float32)
        looked_ahead[(1,)](X, found, MOST - 15, 0, 5, -MOST + 4, BLOCK=16, target=target)
        np.testing.assert_array_equal(found, np.where(X[:16] < 5, X[:16], -1))


@tilefw.jit
def surely(x, o, n, K, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    sums = tl.load(x + at, mask=tl.program_id(0) * BLOCK + at < n, other=0.0)  # what is a multiple of 64 has room for 63 more
    for k in range(0, tl.cdiv(K, BLOCK)):
        sums += tl.load(x + at, mask=k * BLOCK + at < K, other=0.0)  # a quotient by 64, times 64
    for k in range(tl.maximum(0, start // BLOCK * BLOCK), K, BLOCK):
        sums += tl.load(x + at, mask=k + at < K, other=0.0)
    sums += tl.load(x + (start + at), mask=start + at < K, other=0.0)  # an offset's sum does not wrap
    sums += tl.load(x + at, mask=n.to(tl.int64) * K + at < n, other=0.0)  # products of 32-bit integers in 64 bits
    tl.store(o + at, sums)


@tilefw.jit
def perhaps(x, o, n, K, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    sums = tl.load(x + at, mask=start + at < n, other=0.0)
    for k in range(start, K, BLOCK):
        sums += tl.load(x + at, mask=k + at < K, other=0.0)
    tl.store(o + at, sums)


@pytest.mark.parametrize("kernel, wrapping", [(surely, 0), (perhaps, 2)])
def test_what_surely_does_not_wrap_is_a_block(kernel, wrapping):
    types = ahead_of_time({"x": "*fp32", "o": "*fp32", "n": "i32", "K": "i32", "start": "i32"})
    module = from_jit(kernel, types, {"BLOCK": BLOCK}).build()
    for each in default_passes():
        each.apply(None, module)  # pyright: ignore[reportArgumentType]  # no pass of them asks for a context
    assert sum(isinstance(op, LoadOp) for op in nested_ops(module)) == wrapping


def test_ranges_of_exact_results_hold_all_of_them():
    drawn = random.Random(0)
    for name in sorted(_RULES.keys() - {"exts", "select"}):
        meaning = ROWS[name].meaning
        assert meaning is not None
        for _ in range(60):
            a, b, c, d = (drawn.randint(-9, 9) for _ in range(4))
            x, y = np.mgrid[min(a, b) : max(a, b) + 1, min(c, d) : max(c, d) + 1]
            found = _RULES[name]((x.min(), x.max()), (y.min(), y.max()))
            if found is not None:
                meant = meaning(x, y, *[64][: ROWS[name].wants_bits])
                assert found[0] <= meant.min() and meant.max() <= found[1], (name, a, b, c, d)
