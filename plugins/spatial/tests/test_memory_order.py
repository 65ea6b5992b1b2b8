"""Of accesses to one element, what the kernel's order decides stays decided, whatever becomes an axis; or the kernel is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_evaluator import GraphEvaluator

import tilefw
import tilefw.language as tl
from tilefw.api import BufferPlacement, LaunchArguments, UnsupportedError
from tilefw.api.ir import context
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw_spatial.lower import lower
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.simulate.transfers import HostBuffer

MACHINE: Machine = load("sdm-1")
Array = np.ndarray[Any, Any]
_KINDS = {"float32": "*fp32", "int32": "*i32"}


def run(kernel: Any, programs: int, memory: list[Array], buffers: dict[str, BufferPlacement], **constexprs: Any) -> None:
    """Runs a launch on storages, as a graph and on the machine, which agree."""
    signature = {name: _KINDS[memory[buffer.storage].dtype.name] for name, buffer in buffers.items()}
    launch = LaunchArguments((programs, 1, 1), {}, buffers)
    module = from_jit(kernel, signature | dict.fromkeys(constexprs, "constexpr"), constexprs).build()
    for step in default_passes(launch):
        step.apply(context(), module)
    storages = [array.reshape(-1).view(np.uint8) for array in memory]
    evaluated = [storage.copy() for storage in storages]
    GraphEvaluator(evaluated, dict(enumerate(buffers.values()))).run(lower(module, launch))
    program = compile_kernel(module, launch, MACHINE).program
    places = [buffers[parameter.name] for parameter in program.parameters]
    done = simulate(program, MACHINE, [HostBuffer("", storages[place.storage], place.offset) for place in places])
    assert not done.findings.all
    assert all(np.array_equal(one, other) for one, other in zip(evaluated, storages, strict=True))


def launched(kernel: Any, programs: int, *arrays: Array, **constexprs: Any) -> None:
    """Runs a launch on arrays that share no memory."""
    names = [parameter.name for parameter in kernel.params]
    buffers = {
        name: BufferPlacement(number, 0, array.nbytes) for number, (name, array) in enumerate(zip(names, arrays, strict=False))
    }
    run(kernel, programs, list(arrays), buffers, **constexprs)


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


@tilefw.jit
def store_and_replace(x, a, b, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(a + i, 1.0)
    tl.store(b + i, 2.0, mask=tl.load(x + i) > 0)


@tilefw.jit
def add_to_both(x, a, b, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(a + i, tl.load(x + i))
    tl.atomic_add(b + i, 10.0)


@pytest.mark.parametrize("shift", [0, 4])
@pytest.mark.parametrize("kernel", [store_and_replace, add_to_both])
def test_what_is_kept_of_a_store_through_another_argument_is_what_stands_there(kernel: Any, shift: int) -> None:
    """A masked store leaves, and an atomic adds to, what an earlier one wrote, whichever argument that went through."""
    x, whole = np.asarray([1, -1] * 8, np.float32), np.zeros(20, np.float32)
    a, b = BufferPlacement(1, 0, whole.nbytes), BufferPlacement(1, 4 * shift, whole.nbytes)
    buffers = {"x": BufferPlacement(0, 0, x.nbytes), "a": a, "b": b}
    run(kernel, 1, [x, whole], buffers, B=16)
    expected = np.zeros(20, np.float32)
    if kernel is store_and_replace:
        expected[:16] = 1
        expected[shift : shift + 16][x > 0] = 2
    else:
        expected[:16] = x
        expected[shift : shift + 16] += 10
    assert whole.tolist() == expected.tolist()


@tilefw.jit
def count_in_half(x, out, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float16)
    i = tl.arange(0, B)
    for k in range(B):
        acc += tl.load(x + k * B + i).to(tl.float16)
    tl.store(out + i, acc.to(tl.float32))


def test_sums_of_a_loop_are_rounded_to_their_type_each_time() -> None:
    x, out = np.full((16, 16), 1, np.float32), np.zeros(16, np.float32)
    x[0] = 2048  # the next number of fp16 is 2050: ones are lost
    launched(count_in_half, 1, x, out, B=16)
    assert out.tolist() == [2048] * 16


@tilefw.jit
def views_of_two_types(x, a, b, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(a + i, i)
    tl.store(b + i, 2.0, mask=tl.load(x + i) > 0)


def test_what_is_kept_of_elements_of_another_type_is_refused() -> None:
    x, a, b = np.zeros(16, np.float32), np.zeros(16, np.int32), np.zeros(16, np.float32)
    signature = {"x": "*fp32", "a": "*i32", "b": "*fp32", "B": "constexpr"}
    buffers = {"x": BufferPlacement(0, 0, x.nbytes), "a": BufferPlacement(1, 0, a.nbytes), "b": BufferPlacement(1, 0, b.nbytes)}
    with pytest.raises(UnsupportedError, match="other elements in the same bytes") as caught:
        lower(from_jit(views_of_two_types, signature, {"B": 16}).build(), LaunchArguments((1, 1, 1), {}, buffers))
    assert caught.value.code == "TFW0660" and caught.value.place is not None
