"""A mask whose end is an integer of 64 bits that stands for no end lets all elements through, wherever its index begins."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Block

import tilefw
import tilefw.language as tl
from tilefw.passes.affine import AffineAnalysis, Poly
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import build

MOST, LEAST = 2**63 - 1, -(2**63)
BLOCK = 16
X = np.arange(BLOCK, dtype=np.float32)


@tilefw.jit
def up_to(x, o, n: tl.int64, start: tl.int64, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(o + at, tl.load(x + at, mask=at <= n, other=-1.0))


@tilefw.jit
def up_to_the_most(x, o, n: tl.int64, start: tl.int64, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(o + at, tl.load(x + at, mask=at <= 9223372036854775807, other=-1.0))


@tilefw.jit
def counted_elsewhere(x, o, n: tl.int64, start: tl.int64, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=start + at.to(tl.int64) < n, other=-1.0))


@pytest.mark.parametrize("kernel, n, start, first", [
    (up_to, MOST, 0, BLOCK), (up_to, LEAST, 0, 0), (up_to, 5, 0, 6), (up_to_the_most, 0, 0, BLOCK),
    (counted_elsewhere, MOST, -5, BLOCK), (counted_elsewhere, LEAST, 5, 0), (counted_elsewhere, 0, -5, 5),
    (counted_elsewhere, LEAST + 2, LEAST, 2), (counted_elsewhere, -1, LEAST, BLOCK),
])
def test_a_bound_of_64_bits_does_not_wrap(kernel, n, start, first):
    found = np.zeros(BLOCK, np.float32)
    kernel[(1,)](X, found, n, start, BLOCK=BLOCK, target="reference")
    assert (found == np.where(first > X, X, -1)).all()


@tilefw.jit
def up_to_and_below(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    below = tl.load(x + at, mask=at < n + 1, other=0.0)
    tl.store(o + at, tl.load(x + at, mask=at <= n, other=-1.0) + 0 * below)


def test_a_bound_of_32_bits_is_none_that_the_kernel_has_computed_in_as_many():
    """The kernel's own sum wraps."""
    found = np.zeros(BLOCK, np.float32)
    up_to_and_below[(1,)](X, found, 2**31 - 1, BLOCK=BLOCK, target="reference")
    assert (found == X).all()


def test_a_sum_in_64_bits_is_not_taken_from_one_in_32_bits_which_may_wrap():
    x, y = Block(arg_types=[types.i32, types.i32]).args
    narrow = build("addi", x, y)
    wide = build("addi", *(build("exts", value, result=types.i64).results[0] for value in (x, y)))
    extended = build("exts", narrow.results[0], result=types.i64)
    analysis = AffineAnalysis()
    forms = [analysis.scalar(op.results[0]) for op in (narrow, extended)]
    assert analysis.known[forms[0]] is narrow.results[0] and forms[0] == forms[1]
    assert analysis.scalar(wide.results[0]) == forms[0] and analysis.known[forms[0]] is wide.results[0]
    assert analysis.scalar(x) == Poly.atom(x) and analysis.known[Poly.atom(x)] is x
    doubled = build("addi", extended.results[0], extended.results[0])
    assert analysis.is_exact(wide.results[0]) and not analysis.is_exact(doubled.results[0])
    assert AffineAnalysis({narrow}).is_exact(doubled.results[0])


@tilefw.jit
def far_from(x, o, n, square: tl.int64, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    wide = n.to(tl.int64)
    tl.store(o + at, at.to(tl.float32), mask=at < n * n)  # wraps, but is no offset
    places = (at.to(tl.int64) + wide * (wide + 1)) - wide  # n * n in 64 bits, which no scalar of the kernel is
    tl.store(o + at, tl.load((x - square) + places))


def test_an_offset_in_64_bits_is_not_taken_from_a_masks_end_in_32_bits():
    found, n = np.zeros(BLOCK, np.float32), 2**16 + 8
    far_from[(1,)](X + 7, found, n, n * n, BLOCK=BLOCK, target="reference")
    assert (found == X + 7).all()


@tilefw.jit
def below_and_counted(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    counted = tl.load(x + at, mask=at.to(tl.int64) < n.to(tl.int64) + 1, other=0.0)
    tl.store(o + at, tl.load(x + at, mask=at < n + 1, other=-1.0) + 0 * counted)


@tilefw.jit
def below_a_tile(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at < tl.full((BLOCK,), n, tl.int32) + 1, other=-1.0))


@pytest.mark.parametrize("kernel", [below_and_counted, below_a_tile])
@pytest.mark.parametrize("n, first", [(2**31 - 1, 0), (4, 5)])
def test_a_masks_end_that_wraps_in_32_bits_is_none_in_64(kernel, n, first):
    found = np.zeros(BLOCK, np.float32)
    kernel[(1,)](X, found, n, BLOCK=BLOCK, target="reference")
    assert (found == np.where(first > X, X, -1)).all()
