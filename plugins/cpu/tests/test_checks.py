"""Checked code finds what a kernel does wrong, says where, and is made only for launches that ask for checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import BufferView, LaunchOptions, LaunchReport, Scalar
from tilefw.api.artifact import encode
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def copied(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at + shift)
    tl.store(out + at, value, mask=at < n)


@tilefw.jit
def moved(x, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at - 1, mask=at > 0)
    tl.store(x + at, value * 2)


@tilefw.jit
def turns(lock, out, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=ORDER) == 1:
        pass
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(out + at) + 1)
    tl.atomic_xchg(lock, 0, sem=ORDER)


@tilefw.jit
def last_sums(x, count, out, BLOCK: tl.constexpr, ORDER: tl.constexpr):
    tl.store(x + tl.program_id(0), tl.program_id(0))
    if tl.atomic_add(count, 1, sem=ORDER) == tl.num_programs(0) - 1:
        at = tl.arange(0, BLOCK)
        tl.store(out, tl.sum(tl.load(x + at, mask=at < tl.num_programs(0), other=0), axis=0))


@tilefw.jit
def one_place(out, value, SAME: tl.constexpr):
    tl.store(out, value if SAME else tl.program_id(0))


@tilefw.jit
def counted(x, out, BLOCK: tl.constexpr):
    tl.atomic_add(out + tl.load(x + tl.arange(0, BLOCK)), 1.0)


@tilefw.jit(do_not_specialize=["n"])
def overread(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1, mask=at < n)


def found(code: str, line: str, launch: Callable[[], Any]) -> tilefw.KernelError:
    """The finding of a launch: one with this code, at the line that holds `line`."""
    with pytest.raises(tilefw.KernelError) as caught:
        launch()
    assert caught.value.code == code
    assert caught.value.place is not None and line in caught.value.place.text
    return caught.value


def _arrays(n: int = 1000) -> tuple[Any, Any]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


@pytest.mark.parametrize(
    ("shift", "where"), [(0, "offset 4000 (element 1000) of x, which has 4000 bytes"), (-1, "4 bytes before x of")]
)
def test_an_access_outside_an_array_is_found_with_its_line_program_and_element(shift: int, where: str) -> None:
    x, out = _arrays()
    error = found("TFW0801", "tl.load(x", lambda: copied[(8,)](x, out, 1000, shift, BLOCK=128, checks="bounds"))
    assert where in str(error) and f"workgroup ({0 if shift else 7}, 0, 0)" in str(error)


def test_elements_that_are_masked_off_are_not_accessed() -> None:
    x, out = _arrays(1024)
    result = copied[(8,)](x, out[:1000], 1000, 0, BLOCK=128, checks="all")
    assert result.checks == {"bounds", "alignment", "initialisation", "races"} and np.array_equal(out[:1000], x[:1000])
    short = np.zeros(900, np.float32)
    error = found("TFW0801", "tl.store(out", lambda: copied[(8,)](x, short, 1000, 0, BLOCK=128, checks="bounds"))
    assert "offset 3600 (element 900) of out" in str(error)


def test_an_atomic_access_to_a_picked_place_is_checked_as_any_other() -> None:
    x = np.array([0, 1, 2, 9], np.int32)
    error = found("TFW0801", "tl.atomic_add(out", lambda: counted[(1,)](x, np.zeros(8, np.float32), BLOCK=4, checks="bounds"))
    assert "atomic access to 4 bytes" in str(error) and "(element 9) of out" in str(error)


def test_what_is_read_only_or_not_aligned_is_found() -> None:
    x, out = _arrays()
    bytewise = x.view(np.uint8)[1 : 1 + 4 * 999].view(np.float32)
    found("TFW0802", "tl.load(x", lambda: copied[(7,)](bytewise, out, 1000, 0, BLOCK=128, checks="alignment"))
    out.flags.writeable = False
    found("TFW0809", "tl.store(out", lambda: copied[(7,)](x, out, 1000, 0, BLOCK=128, checks="bounds"))


def test_what_nobody_has_written_is_not_read() -> None:
    array, out = _arrays(1024)
    artifact = copied[(8,)](array, out, 1024, 0, BLOCK=128, checks="initialisation").artifact
    device = find_target("cpu").backend.device()
    x = device.allocate(4096, label="x")
    device.write(x, array[:700])
    module, options = device.load(artifact), LaunchOptions(checks=frozenset({"initialisation"}))

    def run(first: int, second: int, programs: int) -> LaunchReport:
        numbers = [Scalar(number, "int32") for number in (1024, 0)]
        return device.launch(module, "copied", (programs, 1, 1), [BufferView(first), BufferView(second), *numbers], options)

    (finding,) = run(x, device.allocate(4096), 8).findings
    assert finding.code == "TFW0803" and "offset 2800 (element 700) of x" in finding.message
    y = device.allocate(4096)
    assert not run(x, y, 5).findings and not run(y, x, 5).findings  # a store makes it written
    plain = device.load(copied[(8,)](array, out, 1024, 0, BLOCK=128).artifact)
    z, numbers = device.allocate(4096), [Scalar(number, "int32") for number in (1024, 0)]
    device.launch(plain, "copied", (5, 1, 1), [BufferView(y), BufferView(z), *numbers], LaunchOptions(checks=frozenset()))
    assert not run(z, y, 5).findings  # as may one that no check has seen


def test_programs_that_nothing_orders_race_where_one_of_them_writes() -> None:
    x, _ = _arrays(1024)
    error = found("TFW0804", "tl.load(x", lambda: moved[(1, 8)](x, BLOCK=128, checks="races"))
    assert "workgroup (0, 1, 0)" in str(error) and "access of workgroup (0, 0, 0)" in str(error)
    found("TFW0804", "tl.store(out", lambda: one_place[(3,)](np.zeros(1, np.int32), 5, SAME=False, checks="races"))
    one_place[(3,)](np.zeros(1, np.int32), 5, SAME=True, checks="races")  # equal bytes do not race
    counted[(5,)](np.array([0, 1, 1, 0], np.int32), np.zeros(2, np.float32), BLOCK=4, checks="races")  # nor do atomics


def test_programs_are_ordered_by_atomics_that_release_and_acquire_and_by_no_others() -> None:
    lock, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    turns[(50,)](lock, out, ORDER="acq_rel", BLOCK=64, checks="races")
    assert (out == 50).all()
    found("TFW0804", "tl.load(out", lambda: turns[(2,)](lock, out, ORDER="relaxed", BLOCK=64, checks="races"))
    x, count, total = np.zeros(20, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    last_sums[(20,)](x, count, total, BLOCK=32, ORDER="acq_rel", checks="races")
    assert total[0] == 190
    count[0] = 0
    found("TFW0804", "tl.load(x", lambda: last_sums[(20,)](x, count, total, BLOCK=32, ORDER="release", checks="races"))


def test_checks_are_made_where_they_are_asked_for_and_checked_code_has_its_own_key() -> None:
    x, out = _arrays(1024)
    plain = copied[(8,)](x, out, 1024, 0, BLOCK=128)
    checked = copied[(8,)](x, out, 1024, 0, BLOCK=128, checks="bounds")
    assert not plain.checks and "unchecked" in str(plain) and "tilefw.access" not in plain.artifact.text
    assert checked.checks == {"bounds"} and "unchecked" not in str(checked) and "tilefw.access" in checked.artifact.text
    assert not copied[(8,)](x, out, 1024, 0, BLOCK=128, checks="default").checks
    assert copied[(8,)](x, out, 1024, 0, BLOCK=128, checks="default,bounds").checks == {"bounds"}
    with pytest.raises(tilefw.KernelError, match="makes no checks") as told:
        tilefw.load(encode(plain.artifact))["copied"].launch((8,), [x, out, 1024, 0], checks="bounds")
    assert told.value.code == "TFW0903"
    loaded = tilefw.load(encode(checked.artifact))["copied"]
    assert loaded.launch((8,), [x, out, 1024, 0], checks="bounds").checks == {"bounds"}
    with pytest.raises(tilefw.KernelError, match="makes checks") as told:  # whose state went with the launch before
        loaded.launch((8,), [x, out, 1024, 0])
    assert told.value.code == "TFW0903"


@tilefw.jit
def filled(table, BLOCK: tl.constexpr):
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def test_a_load_without_a_mask_is_looked_at_where_nothing_is_stored() -> None:
    x, out = np.zeros(64, np.float32), np.zeros(256, np.float32)
    found("TFW0801", "tl.load(x", lambda: overread[(1,)](x, out, 8, BLOCK=256, checks="bounds"))


def test_registered_memory_is_inside_and_other_memory_is_not() -> None:
    parts = [np.zeros(64, np.float32) for _ in range(3)]
    table = np.array([part.ctypes.data for part in parts])
    for part in parts[:2]:
        tilefw.register(part)
    filled[(2,)](table, BLOCK=64, checks="all")
    assert parts[1].sum() == 64
    found("TFW0801", "tl.store(x", lambda: filled[(3,)](table, BLOCK=64, checks="bounds"))
    assert not parts[2].any()


@tilefw.jit
def picked(table, out, BLOCK: tl.constexpr):
    x = tl.load(table).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)


def test_registered_memory_that_is_read_only_is_read_and_not_written() -> None:
    part, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    table = np.array([part.ctypes.data])
    part.flags.writeable = False
    tilefw.register(part)
    picked[(1,)](table, out, BLOCK=64, checks="all")
    assert np.array_equal(out, part + 1)
    found("TFW0809", "tl.store(x", lambda: filled[(1,)](table, BLOCK=64, checks="bounds"))
    assert np.array_equal(part, np.arange(64))
