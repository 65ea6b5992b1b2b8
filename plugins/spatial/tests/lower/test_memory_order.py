"""Of accesses to one element, what the kernel's order decides stays decided, whatever becomes an axis; or the kernel is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_evaluator import Evaluator

import tilefw
import tilefw.language as tl
from tilefw.api import Buffer, Launch, UnsupportedError
from tilefw.api.ir import context
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compiler import from_jit
from tilefw_spatial.lower import lower

Array = np.ndarray[Any, Any]
_KINDS = {"float32": "*fp32", "int32": "*i32"}


def launched(kernel: Any, programs: int, *arrays: Array, **constexprs: Any) -> None:
    """Runs the graph of a launch on arrays that share no memory."""
    names = [parameter.name for parameter in kernel.params][: len(arrays)]
    signature = {name: _KINDS[array.dtype.name] for name, array in zip(names, arrays, strict=True)}
    signature |= {name: "constexpr" for name in constexprs}
    buffers = {name: Buffer(number, 0, array.nbytes) for number, (name, array) in enumerate(zip(names, arrays, strict=True))}
    launch = Launch((programs, 1, 1), {}, buffers)
    module = from_jit(kernel, signature, constexprs).build()
    for step in default_passes(launch):
        step.apply(context(), module)
    memory = [array.reshape(-1).view(np.uint8) for array in arrays]
    Evaluator(memory, dict(enumerate(buffers.values()))).run(lower(module, launch))


@tilefw.jit
def twice_as_long(x, out, two, N: tl.constexpr):
    for i in range(N):
        tl.store(out + i // 2, tl.load(x + i))
    for j in range(N):
        tl.store(two + j, tl.load(out + j // 2))


def test_a_loop_sees_what_the_last_trip_of_an_equal_loop_before_it_left() -> None:
    """Both loops have one axis; a trip of the second must not take over what the same trip of the first stored."""
    x, out, two = np.arange(8, dtype=np.float32), np.zeros(4, np.float32), np.zeros(8, np.float32)
    try:
        launched(twice_as_long, 1, x, out, two, N=8)
    except UnsupportedError as error:
        assert error.code == "TFW0660"
    else:
        assert two.tolist() == np.repeat(x[1::2], 2).tolist()


@tilefw.jit
def count_positive(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + i, 1.0, mask=tl.load(x + i) > 0)


def test_every_program_adds_where_data_says() -> None:
    x, out = np.asarray([1, -1] * 8, np.float32), np.zeros(16, np.float32)
    launched(count_positive, 3, x, out, B=16)
    assert out.tolist() == np.where(x > 0, 3, 0).tolist()


@tilefw.jit
def toggle(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_xor(out + i, tl.load(x + i))


@pytest.mark.parametrize("programs", [3, 4])
def test_every_program_toggles(programs: int) -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    launched(toggle, programs, x, out, B=16)
    assert out.tolist() == (x * (programs % 2)).tolist()


@tilefw.jit
def keep_last(x, out, B: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(N):
        v = tl.load(x + k * B + i)
        tl.store(out + i, v, mask=v > 0)


def test_of_masked_stores_of_a_loop_the_last_that_is_made_stands() -> None:
    x = np.asarray([[1, 2, 3, -4], [-1, 5, -1, -6], [-1, -1, 7, -1]], np.float32)
    out = np.zeros(4, np.float32)
    launched(keep_last, 1, x, out, B=4, N=3)
    assert out.tolist() == [1, 5, 7, 0]


@tilefw.jit
def keep_any(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    tl.store(out + i, v, mask=v > 0)


def test_of_masked_stores_of_programs_one_that_is_made_stands() -> None:
    x = np.asarray([[1, -2, -3, -4], [-1, 5, -1, -6], [-1, -1, 7, -1]], np.float32)
    out = np.zeros(4, np.float32)
    launched(keep_any, 3, x, out, B=4)
    assert out.tolist() == [1, 5, 7, 0]


@tilefw.jit
def first_adds_otherwise(total, old):
    if tl.program_id(0) == 0:
        tl.store(old, tl.atomic_add(total, 5))
    else:
        tl.store(old + 1, tl.atomic_add(total, 7))


def test_atomics_of_programs_that_go_different_ways_see_each_other() -> None:
    total, old = np.zeros(1, np.int32), np.zeros(2, np.int32)
    with pytest.raises(UnsupportedError) as caught:
        launched(first_adds_otherwise, 2, total, old)
    assert caught.value.code == "TFW0660" and caught.value.place is not None


@tilefw.jit
def diagonals(x, out, N: tl.constexpr, B: tl.constexpr, INNER_FIRST: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(N):
        for m in range(N):
            at = m * N + k if INNER_FIRST else k * N + m
            tl.store(out + (i + k + m), tl.load(x + (at * B + i)))


@pytest.mark.parametrize("inner_first", [False, True])
def test_of_stores_of_nested_loops_the_last_of_the_outermost_stands(inner_first: bool) -> None:
    """A trip of the outer loop comes after all of an earlier one, in whatever order the value has its axes."""
    n = 4
    x, out, expected = np.arange(n * n, dtype=np.float32), np.zeros(2 * n - 1, np.float32), np.zeros(2 * n - 1, np.float32)
    for k in range(n):
        for m in range(n):
            expected[k + m] = x[m * n + k if inner_first else k * n + m]
    launched(diagonals, 1, x, out, N=n, B=1, INNER_FIRST=inner_first)
    assert out.tolist() == expected.tolist()
