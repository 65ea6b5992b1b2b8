"""Kernels reach registered memory through addresses that they load, as long as it lives, and no other memory."""

from __future__ import annotations

import array as array_module
import gc
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CheckError, LaunchError
from tilefw.runtime.arguments.registered import registered


@tilefw.jit
def double_each(table_ptr, n_ptr, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    x_ptr = tl.load(table_ptr + which).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    mask = at < tl.load(n_ptr + which)
    tl.store(x_ptr + at, 2 * tl.load(x_ptr + at, mask=mask), mask=mask)


def machines() -> list[str]:
    """The reference, and the targets whose machines have addresses of the host's width."""
    from tilefw.runtime.plugins.listings import targets

    return ["reference", *{t.info.triton.backend: t.info.name for t in targets() if t.info.triton is not None}.values()]


def arrays() -> tuple[list[np.ndarray], Any, Any]:
    made = [np.arange(n, dtype=np.float32) for n in (64, 40)]
    table = np.array([array.ctypes.data for array in made], np.int64)
    return made, table, np.array([array.size for array in made], np.int32)


@pytest.mark.parametrize("target", machines())
def test_a_table_of_pointers_leads_to_registered_memory(target: str) -> None:
    made, table, sizes = arrays()
    for array in made:
        tilefw.register(array)
    for times in (2, 4):  # the second launch finds what the first one left
        double_each[(2,)](table, sizes, BLOCK=64, target=target)
        for array in made:
            assert np.array_equal(array, times * np.arange(array.size))


@pytest.mark.parametrize("target", machines())
def test_memory_that_is_an_argument_as_well_is_one_memory(target: str) -> None:
    both = np.zeros(4, np.int64)
    tilefw.register(both)

    @tilefw.jit
    def through(table_ptr, out_ptr):
        tl.store(tl.load(table_ptr).to(tl.pointer_type(tl.int64)), 7)
        tl.store(out_ptr + 1, 8)

    through[(1,)](np.array([both.ctypes.data]), both, target=target)
    assert both.tolist() == [7, 8, 0, 0]


@pytest.mark.parametrize("target", machines())
def test_other_memory_is_refused(target: str) -> None:
    made, table, sizes = arrays()
    tilefw.register(made[0])
    with pytest.raises(CheckError):
        double_each[(2,)](table, sizes, BLOCK=64, target=target)
    assert np.array_equal(made[0], np.arange(64))  # nothing was copied back


def test_memory_is_registered_as_long_as_it_lives() -> None:
    array = np.zeros(1000)
    tilefw.register(array[10:20])
    start = array.ctypes.data
    assert any(memory.start == start and memory.nbytes == array.nbytes for _, memory in registered())
    del array
    gc.collect()
    assert all(memory.start != start for _, memory in registered())


def test_pytorchs_memory_lives_in_its_storage() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1000)
    start = tensor.data_ptr()
    tilefw.register(tensor.view(10, 100))
    assert any(memory.start == start for _, memory in registered())
    del tensor
    gc.collect()
    assert all(memory.start != start for _, memory in registered())


def test_what_has_no_aligned_memory_is_refused() -> None:
    with pytest.raises(LaunchError, match="not an array"):
        tilefw.register([1, 2])
    with pytest.raises(LaunchError, match="does not start at a multiple of 16"):
        tilefw.register(np.frombuffer(memoryview(bytearray(64))[1:], np.uint8))


def test_memory_lives_as_long_as_a_launch_may_write_it() -> None:
    torch = pytest.importorskip("torch")
    array, tensor = np.zeros(1000), torch.zeros(1000)
    starts = {array.ctypes.data, tensor.data_ptr()}
    tilefw.register(array)
    tilefw.register(tensor)
    reached = registered()  # as a launch has it
    del array, tensor
    gc.collect()
    assert starts <= {memory.start for _, memory in registered()}
    reached.clear()
    gc.collect()
    assert not starts & {memory.start for _, memory in registered()}


def test_a_tensor_that_has_moved_is_registered_no_more() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1000)
    start = tensor.data_ptr()
    tilefw.register(tensor)
    tensor.resize_(100_000)
    assert all(memory.start != start for _, memory in registered())


def test_memory_with_two_owners_lives_as_long_as_one_of_them() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1000)
    start = tensor.data_ptr()
    for array in (tensor, tensor, tensor.numpy()):
        tilefw.register(array)
    del array
    gc.collect()
    assert [memory.start for _, memory in registered()].count(start) == 1


class Shown:
    """An object that shows its memory by the protocol of one name."""

    def __init__(self, array: np.ndarray, protocol: str) -> None:
        for name in {protocol, "__dlpack_device__"} if protocol == "__dlpack__" else {protocol}:
            setattr(type(self), name, getattr(array, name))
        self.array = array


@pytest.mark.parametrize("protocol", ["__dlpack__", "__array_interface__", "buffer"])
def test_memory_that_an_object_shows_lives_as_long_as_the_object(protocol: str) -> None:
    array = np.zeros(1000)
    owner: Any = array_of_doubles(1000) if protocol == "buffer" else type("Own", (Shown,), {})(array, protocol)
    start = np.frombuffer(owner).ctypes.data if protocol == "buffer" else array.ctypes.data
    tilefw.register(owner)
    del array
    gc.collect()
    assert any(memory.start == start and memory.nbytes == 8000 for _, memory in registered())
    del owner
    gc.collect()
    assert all(memory.start != start for _, memory in registered())


def test_memory_that_a_buffer_has_given_up_is_registered_no_more() -> None:
    owner = array_of_doubles(1000)
    start, _ = owner.buffer_info()
    tilefw.register(owner)
    del owner[10:]
    assert all(memory.start != start for _, memory in registered())


def test_a_copy_that_an_object_shows_is_refused() -> None:
    interface = property(lambda self: {"shape": (4096,), "typestr": "|u1", "version": 3, "data": bytes(4096)})
    with pytest.raises(LaunchError, match="a bytes cannot be registered"):
        tilefw.register(type("Picture", (), {"__array_interface__": interface})())


def array_of_doubles(count: int) -> Any:
    """A buffer that starts where memory can be registered."""
    kept = []
    while True:
        kept.append(array_module.array("d", bytes(8 * count)))
        if kept[-1].buffer_info()[0] % 16 == 0:
            return kept.pop()


def test_memory_whose_end_nothing_tells_is_refused() -> None:
    with pytest.raises(LaunchError, match="a bytearray cannot be registered: nothing tells when its memory is freed"):
        tilefw.register(bytearray(4096))
