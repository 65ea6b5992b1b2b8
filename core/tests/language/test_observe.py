"""What the machine knows while a kernel runs: the time and its polls, the processor; the reference claims no number of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import KernelError
from tilefw.tile.reference.interpret import RefMemory, run

SPUN = 30


@tilefw.jit
def timed(time_ptr, ticks_ptr, place_ptr, x_ptr, turns, N: tl.constexpr):
    at = tl.arange(0, N)
    program = tl.program_id(0)
    tl.store(time_ptr + 2 * program, tl.extra.anyone.globaltimer())
    tl.store(ticks_ptr + 2 * program, tl.extra.anyone.memrealtime())
    for _ in range(turns):
        tl.store(x_ptr + program * N + at, tl.load(x_ptr + program * N + at) + 1)
    tl.store(time_ptr + 2 * program + 1, tl.extra.anyone.globaltimer())
    tl.store(ticks_ptr + 2 * program + 1, tl.extra.anyone.memrealtime())
    tl.store(place_ptr + program, tl.extra.anyone.smid())


@tilefw.jit
def waited(flags_ptr, found_ptr, timeout, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(found_ptr + at, tl.atomic_poll(flags_ptr + at, 1, timeout_ns=timeout))
    tl.store(found_ptr + N, tl.atomic_poll(flags_ptr, 1, timeout_ns=timeout))


@tilefw.jit
def answered(flags_ptr, found_ptr):
    if tl.program_id(0) == 0:
        tl.store(found_ptr, tl.atomic_poll(flags_ptr, 1, timeout_ns=1 << 40))
    else:
        tl.atomic_store(flags_ptr, 1)


@pytest.mark.parametrize("warps", [1, 4])
def test_time_passes_while_a_program_works(target: str, warps: int) -> None:
    time, ticks = np.zeros((2, 2), np.int64), np.zeros((2, 2), np.int64)
    place, x = np.full(2, -1, np.int32), np.zeros(256, np.int32)
    timed[(2,)](time, ticks, place, x, SPUN, N=128, num_warps=warps)
    assert (x == SPUN).all()
    assert (time[:, 1] > time[:, 0]).all() and (ticks[:, 1] > ticks[:, 0]).all() and (place >= 0).all()


@pytest.mark.parametrize("timeout", [0, 2000])
@pytest.mark.parametrize("warps", [1, 4])
def test_a_poll_ends_with_its_time_and_tells_what_it_saw(target: str, timeout: int, warps: int) -> None:
    flags, found = np.arange(32, dtype=np.int32) % 2, np.ones(33, np.bool_)
    waited[(1,)](flags, found, timeout, N=32, num_warps=warps)
    np.testing.assert_array_equal(found, np.append(flags == 1, flags[0] == 1))


def test_a_poll_with_time_is_answered_by_another_program(target: str) -> None:
    flags, found = np.zeros(1, np.int32), np.zeros(1, np.bool_)
    answered[(2,)](flags, found)
    assert found[0]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.uint64])
def test_a_poll_of_one_element_without_time_waits(target: str, dtype: Any) -> None:
    flags = np.zeros(3, dtype)
    flags[0] = 1
    handed_on[(2,)](flags)
    assert list(flags) == [1, 1, 1]


@tilefw.jit
def handed_on(flags_ptr):
    program = tl.program_id(0)
    if tl.atomic_poll(flags_ptr + program, 1):
        tl.atomic_cas(flags_ptr + program + 1, tl.cast(0, flags_ptr.dtype.element_ty), tl.cast(1, flags_ptr.dtype.element_ty))


def test_the_reference_leaves_open_what_a_machine_says() -> None:
    text = """
    func.func @kernel(%out: !tile.ptr<i64>) {
      %time = tile.observe nanoseconds : i64
      tile.store %out, %time : !tile.ptr<i64>
      func.return
    }"""
    memory = RefMemory()
    out = memory.of_array(np.zeros(1, np.int64))
    run(text, None, (1,), [out], memory=memory)
    assert out.free is not None and out.free.all()


def test_a_machine_without_a_clock_refuses_it_by_name() -> None:
    with tilefw.target("spatial-sdm1"), pytest.raises(KernelError, match=r"observe\.nanoseconds"):
        timed[(1,)](np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(1, np.int32), np.zeros(128, np.int32), 1, N=128)


@tilefw.jit
def counted(out_ptr, x_ptr, y_ptr, N: tl.constexpr):
    tl.static_assert(tl.extra.cuda.num_threads() == tl.extra.hip.num_threads())
    at = tl.arange(0, N)
    tl.store(out_ptr, tl.extra.cuda.num_warps())
    tl.store(out_ptr + 1 + tl.arange(0, tl.extra.cuda.num_threads()), 1)
    narrow = tl.extra.cuda.convert_custom_float8_sm80(tl.load(x_ptr + at), tl.float8e4b15)
    tl.store(y_ptr + at, tl.extra.cuda.convert_custom_float8_sm70(narrow, tl.float16))


@pytest.mark.parametrize(("chip", "lanes"), [("nvidia-sm80", 32), ("amd-cdna3", 64)])
def test_warps_and_threads_are_known_when_the_kernel_is_compiled(chip: str, lanes: int) -> None:
    x = np.linspace(-1.5, 1.5, 32, dtype=np.float16)
    for warps in (1, 4):
        out, y = np.zeros(1 + 256, np.int32), np.zeros(32, np.float16)
        counted[(1,)](out, x, y, N=32, num_warps=warps, target=chip)
        assert out[0] == warps and out[1:].sum() == warps * lanes
        assert np.abs(x - y).max() <= 1 / 16 and (x != y).any()


def test_where_nobody_knows_the_warps_it_is_said() -> None:
    for chip in ("reference", "spatial-sdm1"):
        with pytest.raises(KernelError, match="`num_threads` has no value here") as caught:
            counted[(1,)](np.zeros(1, np.int32), np.zeros(32, np.float16), np.zeros(32, np.float16), N=32, target=chip)
        assert caught.value.code == "TFW0107"
