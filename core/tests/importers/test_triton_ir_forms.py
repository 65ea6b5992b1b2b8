"""Forms of Triton's IR that no kernel of the library has: each kernel here, imported, computes what our own front end's IR does, as
Triton's front end makes the text and as its first passes leave it. Skipped where Triton is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.device import DEFAULT_BUDGET
from tilefw.importers.triton_ir import parse
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import Buffer
from tilefw.testing.triton_text import triton_text

N = 64


@tilefw.jit
def early_return(x_ptr, y_ptr, n):
    row = tl.program_id(0)
    if row > 2:
        return
    if n > 7:
        if row == 1:
            tl.store(y_ptr + row, 5.0)
            return
        n += 1
    tl.store(y_ptr + row, tl.load(x_ptr + row) + n)


@tilefw.jit
def halved(x, limit):
    if limit > 3:
        return x * 0.5
    return x + limit


@tilefw.jit(noinline=True)
def summed(x_ptr, count):
    total = 0.0
    for i in range(count):
        total += halved(tl.load(x_ptr + i), i)
    return total, count + 1


@tilefw.jit
def calls(x_ptr, y_ptr, n):
    total, more = summed(x_ptr, n)
    tl.store(y_ptr, total)
    tl.store(y_ptr + 1, halved(total, more))


@tilefw.jit
def loops_within_loops(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x, steps = tl.load(x_ptr + at), 0
    while tl.max(tl.abs(x)) > 0.25:
        for i in tl.range(0, n, 2, num_stages=1):
            x = tl.where(at > i, x * 0.75, x)
            if i == 2:
                steps += 1
        x = x * 0.75
    tl.store(y_ptr + at, x + steps)


@tilefw.jit
def joined(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    even, odd = tl.split(tl.reshape(x, (SIZE // 2, 2)))
    both = tl.join(odd, even)
    turned = tl.permute(both, (1, 0))
    tl.store(y_ptr + at, tl.ravel(turned))
    tl.store(y_ptr + SIZE + at, tl.flip(tl.interleave(odd, even)))
    tl.store(y_ptr + 2 * SIZE + tl.arange(0, 2 * SIZE), tl.sort(tl.cat(x, x * 2, can_reorder=True)))


@tilefw.jit
def gathered(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.gather(x, (at * 5 + 3) % SIZE, 0) + tl.cumsum(x, 0, reverse=True))


@tilefw.jit
def counted(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + tl.arange(0, 16), tl.histogram(x, 16, mask=at < 50))


@tilefw.jit
def by_parts(a, b):
    if a > b:
        return a - b, a
    return b - a, a * b


@tilefw.jit
def mapped(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    one, other = tl.map_elementwise(by_parts, x, x * x)
    tl.store(y_ptr + at, one + other)


@tilefw.jit
def smaller(a, ai, b, bi):
    first = (a < b) | ((a == b) & (ai < bi))
    return tl.where(first, a, b), tl.where(first, ai, bi)


@tilefw.jit
def combined(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.reshape(tl.load(x_ptr + at), (SIZE // 8, 8))
    index = tl.broadcast_to(tl.arange(0, 8)[None, :], x.shape)
    least, where = tl.reduce((x, index), 1, smaller)
    most, first = tl.associative_scan((x, index), 1, smaller)
    row = tl.arange(0, SIZE // 8)
    tl.store(y_ptr + row, least + where)
    tl.store(y_ptr + SIZE + at, tl.ravel(most + first))


@tilefw.jit
def swapped(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    old = tl.atomic_cas(y_ptr + at, tl.full((SIZE,), 0, tl.int32), at, sem="relaxed", scope="cta")
    was = tl.atomic_max(x_ptr + at, old + 3, mask=at < 9)
    tl.atomic_xchg(y_ptr + at, tl.where(at < 9, was, 7))
    tl.atomic_min(y_ptr + SIZE + at, at - 5, sem="release")
    tl.atomic_or(y_ptr + 2 * SIZE, 12)


@tilefw.jit
def unsigned(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at).to(tl.uint32, bitcast=True)
    k = n.to(tl.uint32)
    wide = (x.to(tl.uint64) * k) >> 5
    y = (x // k) ^ (x % k) | (x >> 3) & tl.umulhi(x, k)
    y = tl.where((x > k) & (x.to(tl.float32) < 3e9), y, tl.minimum(x, k)) + wide.to(tl.uint32)
    tl.store(y_ptr + at, y.to(tl.int32, bitcast=True), mask=x != k)


@tilefw.jit
def narrow(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    half = x.to(tl.float16) + x.to(tl.bfloat16).to(tl.float16)
    tiny = x.to(tl.float8e5).to(tl.float32) + x.to(tl.float8e4nv).to(tl.float16)
    rtz = x.to(tl.bfloat16, fp_downcast_rounding="rtz")
    nan = tl.where(x > 0.5, float("nan"), x)
    worst = tl.maximum(nan, 0.25, propagate_nan=tl.PropagateNan.ALL) + tl.clamp(x, -0.5, 0.5)
    tl.store(y_ptr + at, half + tiny + rtz + tl.where(worst != worst, float("-inf"), worst))


@tilefw.jit
def flags(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.max_contiguous(tl.multiple_of(tl.arange(0, SIZE), SIZE), SIZE)
    x = tl.load(x_ptr + at, cache_modifier=".cg", eviction_policy="evict_first", volatile=True)
    yes = x > 0
    tl.store(y_ptr + at, yes, cache_modifier=".wb", eviction_policy="evict_last")
    back = tl.load(y_ptr + at)
    tl.assume(SIZE > 1)
    tl.store(y_ptr + SIZE + at, ~back & (at.to(tl.int1) | yes))


@tilefw.jit
def described(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, (n, SIZE), (SIZE, 1), (4, SIZE), padding_option="nan")
    target = tl.make_tensor_descriptor(y_ptr, (n, SIZE), (SIZE, 1), (4, SIZE))
    total = tl.zeros((4, SIZE), tl.float32)
    for i in range(0, n, 4):
        x = source.load((i, 0))
        total += tl.where(x == x, x, 9.0)
        target.store((i, 0), total)
    target.atomic_add((0, 0), total)


@tilefw.jit
def in_parts(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + at)
    total = tl.dot(x, tl.trans(x), input_precision="tf32x3")
    tl.store(y_ptr + at, tl.dot(x, x, total, input_precision="ieee"))


def floats(count: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-2, 2, count).astype(np.float32)


def integers(count: int, high: int = 40) -> np.ndarray:
    return np.random.default_rng(2).integers(-high, high, count).astype(np.int32)


def buffer(array: np.ndarray) -> Buffer:
    return Buffer(array, {"float32": "fp32", "int32": "int32", "bool": "int1"}[array.dtype.name])


SIZED = {"SIZE": N}
CASES: tuple[tuple[Any, Callable[[], dict[str, Any]], Mapping[str, Any]], ...] = (
    (early_return, lambda: {"x_ptr": floats(5), "y_ptr": floats(5), "n": 9}, {}),
    (calls, lambda: {"x_ptr": floats(8), "y_ptr": floats(2), "n": 6}, {}),
    (loops_within_loops, lambda: {"x_ptr": floats(N), "y_ptr": floats(N), "n": 5}, SIZED),
    (joined, lambda: {"x_ptr": floats(N), "y_ptr": floats(4 * N)}, SIZED),
    (gathered, lambda: {"x_ptr": floats(N), "y_ptr": floats(N)}, SIZED),
    (counted, lambda: {"x_ptr": integers(N, 18), "y_ptr": integers(16)}, SIZED),
    (mapped, lambda: {"x_ptr": floats(N), "y_ptr": floats(N)}, SIZED),
    (combined, lambda: {"x_ptr": floats(N), "y_ptr": floats(2 * N)}, SIZED),
    (swapped, lambda: {"x_ptr": integers(N, 4), "y_ptr": integers(3 * N, 2)}, SIZED),
    (unsigned, lambda: {"x_ptr": integers(N, 2**31 - 1), "y_ptr": integers(N), "n": 37}, SIZED),
    (narrow, lambda: {"x_ptr": floats(N), "y_ptr": floats(N)}, SIZED),
    (flags, lambda: {"x_ptr": floats(N), "y_ptr": np.zeros(2 * N, bool)}, SIZED),
    (described, lambda: {"x_ptr": floats(10 * N), "y_ptr": floats(10 * N), "n": 10}, SIZED),
    (in_parts, lambda: {"x_ptr": floats(256), "y_ptr": floats(256)}, {"SIZE": 16}),
)


@pytest.mark.parametrize("optimised", [False, True], ids=["front_end", "ttir"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_an_imported_kernel_computes_the_same(case: tuple[Any, Any, Mapping[str, Any]], optimised: bool) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    kernel, arguments, constexprs = case
    given = {name: buffer(value) if isinstance(value, np.ndarray) else value for name, value in arguments().items()}
    made = instance(SimpleNamespace(kernel=kernel), SimpleNamespace(arguments=given, constexprs=constexprs))  # type: ignore[arg-type]
    due = Reference(made.source.build(), (4, 1, 1) if kernel is early_return else (1, 1, 1), made.passed, budget=DEFAULT_BUDGET)
    text = triton_text(kernel, {**given, **constexprs}, ("cuda", 90, 32), optimised=optimised)
    module = parse(text, f"{kernel.__name__}.ttir")
    found = Reference(module, (4, 1, 1) if kernel is early_return else (1, 1, 1), made.passed, budget=DEFAULT_BUDGET)
    for name in (name for name, value in given.items() if isinstance(value, Buffer)):
        comparison = due.compare_values(name, found.values(name))
        assert comparison.ok, f"{name}: {comparison}"
