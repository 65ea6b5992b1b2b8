"""Arrays stay on a device from launch to launch while a residence is open, and the host has what is newest where it looks."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.target import TargetInfo
from tilefw.runtime.executor import executor_for
from tilefw.runtime.plugins import loader
from tilefw.runtime.residence import Residence, keeps

sys.path.insert(0, str(Path(__file__).parent))


@tilefw.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch):
    """That of the toy chip, as a registered target."""
    target = loader.Target(TargetInfo("toy-1", "toy", "1", "a toy", "chip:ToyBackend", frozenset({"emit", "simulate"})), None)
    real = loader.Registry.find
    monkeypatch.setattr(loader.Registry, "find", lambda self, name: target if name == "toy-1" else real(self, name))
    return executor_for(target, "sim")


def launch(x: np.ndarray, out: np.ndarray) -> None:
    copy[(1,)](x, out, 4, BLOCK=4, target="toy-1")


def test_an_array_is_copied_once_for_all_launches_and_back_at_the_end(executor) -> None:
    x, y, z = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    residence = Residence(executor.device, executor.lock)
    with residence.opened():
        launch(x, y)
        launch(y, z)
        assert not y.any() and residence.written_bytes == 48 and residence.read_bytes == 0
    assert (z == x).all() and (y == x).all() and executor.device.memory_info()["allocations"] == 3
    residence.close()
    assert executor.device.memory_info()["allocations"] == 0


def test_who_looks_between_launches_sees_what_is_newest_and_may_write(executor) -> None:
    x, y, z = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    residence = Residence(executor.device, executor.lock)
    with residence.opened():
        launch(x, y)
        residence.leave(y.ctypes.data + 4, 4)  # of a part
        assert (y == x).all()
        y[:] = 7
        launch(y, z)
    assert (z == 7).all()


def test_overlapping_arrays_and_arrays_that_may_not_be_written_are_never_old(executor) -> None:
    whole = np.arange(8, dtype=np.float32).tobytes()
    memory = bytearray(whole)
    first, later = np.frombuffer(memory, np.float32, 4), np.frombuffer(memory, np.float32, 4, 8)
    fixed, out = np.full(4, 3, np.float32), np.zeros(4, np.float32)
    fixed.flags.writeable = False
    with Residence(executor.device, executor.lock).opened():
        launch(np.full(4, 9, np.float32), first)
        launch(later, out)  # two of its elements are of `first`
        launch(fixed, out)
        assert (out == 3).all()
        launch(out, later)
    assert list(np.frombuffer(memory, np.float32)) == [9, 9, 3, 3, 3, 3, 6, 7]


@pytest.mark.parametrize("empty_first", [True, False])
def test_an_array_without_elements_has_no_byte_of_one_that_begins_there(executor, empty_first) -> None:
    x = np.arange(4, dtype=np.float32)
    empty = SimpleNamespace(__array_interface__={"data": (x.ctypes.data, False), "shape": (0,), "typestr": "<f4", "version": 3})
    with Residence(executor.device, executor.lock).opened() as residence:
        copy[(1,)](*((empty, x) if empty_first else (x, empty)), 0, BLOCK=4, target="toy-1")
        launch(x, x)
        assert residence.written_bytes == x.nbytes


def test_a_residence_is_none_for_the_interpreter_and_for_devices_on_the_hosts_memory() -> None:
    assert not keeps(executor_for(loader.find_target("reference"), "default").device)
