"""The processor as a device: arrays as they are, grids over threads, arguments, prints and assertions."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.capabilities import missing, names
from tilefw.api.hardware import LOOKING
from tilefw_cpu.target import CPU


@tilefw.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@tilefw.jit
def number(out, scale, wide, flag):
    place = tl.program_id(2) * tl.num_programs(1) * tl.num_programs(0) + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    value = tl.where(flag, wide, -wide)
    tl.store(out + place, place * scale + value.to(tl.float64))


@tilefw.jit
def turns(lock, out, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(out + at) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@tilefw.jit(debug=True)
def below(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.device_assert(value < n, "too large")
    tl.device_print("value", value)


def test_arrays_are_used_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefw_cpu.device import NativeDevice

    monkeypatch.setattr(NativeDevice, "write", None)  # whoever copies calls it
    x = np.arange(1000, dtype=np.float32)
    part = x[3:903]
    double[(8,)](part, 900, BLOCK=128)
    assert np.array_equal(part, np.arange(3, 903) * 2) and np.array_equal(x[903:], np.arange(903, 1000))


def test_a_store_to_a_read_only_array_is_an_error_and_changes_nothing() -> None:
    x = np.ones(128, np.float32)
    x.flags.writeable = False
    with pytest.raises(tilefw.KernelError, match="read-only"):
        double[(1,)](x, 128, BLOCK=128)
    assert (x == 1).all()


@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 3, 2), (1, 1, 70)])
def test_each_program_of_the_grid_runs_once_with_its_numbers(grid: tuple[int, int, int]) -> None:
    out = np.zeros(int(np.prod(grid)), np.float64)
    number[grid](out, 0.5, 1 << 40, True)
    assert np.array_equal(out, np.arange(out.size) * 0.5 + (1 << 40))


def test_programs_that_wait_for_a_lock_take_turns() -> None:
    lock, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    turns[(200,)](lock, out, BLOCK=64)
    assert (out == 200).all() and lock[0] == 0


def test_threads_may_launch_at_the_same_time() -> None:
    arrays = [np.full(4096, n, np.float32) for n in range(4)]
    threads = [threading.Thread(target=lambda x=x: double[(32,)](x, 4096, BLOCK=128, target="cpu")) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((x == 2 * n).all() for n, x in enumerate(arrays))


def test_a_failed_assertion_is_a_finding_at_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    below[(1,)](np.arange(4, dtype=np.int32), 4, BLOCK=4)
    assert "value: 3" in capfd.readouterr().out
    with pytest.raises(tilefw.KernelError, match="too large") as told:
        below[(1,)](np.arange(8, dtype=np.int32), 4, BLOCK=8)
    assert told.value.code == "TFW0812" and "test_device.py" in str(told.value.place)


def test_checks_that_it_does_not_make_are_refused_by_name() -> None:
    x = np.ones(128, np.float32)
    with pytest.raises(tilefw.KernelError, match="pending"):
        double[(1,)](x, 128, BLOCK=128, checks="pending")
    assert not double[(1,)](x, 128, BLOCK=128).checks


def test_its_simulator_is_refused_where_somebody_asks_for_one() -> None:
    with pytest.raises(tilefw.KernelError) as told:
        double[(1,)](np.ones(128, np.float32), 128, BLOCK=128, executor="sim")
    assert told.value.code == "TFW0601"


@tilefw.jit
def memset(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.zeros([BLOCK], tl.float32), mask=at < n)


def test_a_kernel_may_be_called_as_a_function_of_c() -> None:
    x = np.ones(4096, np.float32)
    memset[(4,)](x, 4000, BLOCK=1024)
    assert (x[:4000] == 0).all() and (x[4000:] == 1).all()


def test_a_number_of_threads_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefw_cpu.device import THREADS, _threads

    monkeypatch.setenv(THREADS, "3")
    assert _threads() == 3
    for word in ("²", "0", "two", "-1", "9" * 5000):
        monkeypatch.setenv(THREADS, word)
        with pytest.raises(tilefw.KernelError, match="number of threads"):
            _threads()


def test_all_capabilities_are_claimed_but_inline_assembly_fences_and_what_reaches_all_ranks() -> None:
    lacking = {name for name in missing(names(), CPU.capabilities) if not name.startswith("multicast.")}
    assert lacking == {"inline_asm", "atomic.fence"}


def test_code_with_a_while_loop_says_that_it_looks_whether_it_is_to_end() -> None:
    data = np.zeros(8, np.float32)
    assert not double[(1,)](data, 8, BLOCK=8).artifact.metadata[LOOKING]
    assert turns[(1,)](np.zeros(1, np.int32), data, BLOCK=8).artifact.metadata[LOOKING] == ["turns"]
