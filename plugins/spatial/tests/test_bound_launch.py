"""A program in a file runs with the launch that it was made for, and refuses every other by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import BufferPlacement, BufferView, CodeError, LaunchArguments, LaunchError, LaunchOptions, Scalar, Struct
from tilefw.api.ir import context
from tilefw.passes.pipeline import default_passes
from tilefw.runtime.compilation.kernel_source import from_jit
from tilefw_spatial import container, text
from tilefw_spatial.machine import load
from tilefw_spatial.pipeline import compile_kernel
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate.bound import check_launch
from tilefw_spatial.simulate.device import Loaded, SpatialDevice

N = 700


@tilefw.jit
def shifted(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for arrays of their own with N numbers."""
    path = tmp_path_factory.mktemp("bound") / "shifted.sdm"
    made = tilefw.compile(
        shifted, target="spatial-sdm1", signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, constexprs={"BLOCK": 256},
        grid=(3,), scalars={"n": N}, extents={"x_ptr": 4 * N, "y_ptr": 4 * N},
    )
    assert made.binary is not None
    path.write_bytes(made.binary)
    return path


def launch(path: Path, *args: Any, grid: tuple[int, ...] = (3,)) -> None:
    tilefw.load(str(path), "spatial-sdm1")["shifted"].launch(grid, args)


def test_its_own_launch_is_taken(saved: Path) -> None:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    launch(saved, x, y, np.int32(N))
    assert np.array_equal(y, x + 1)


def test_other_launches_are_refused(saved: Path) -> None:
    x, y, longer = np.zeros(N, np.float32), np.zeros(N, np.float32), np.zeros(N + 1, np.float32)
    memory = np.zeros(2 * N, np.float32)
    for args, grid, said in (
        ((x, y, np.int32(N)), (4,), "made for the grid"), ((x, y, np.int32(N - 1)), (3,), "n = 700, not 699"),
        ((longer, y, np.int32(N)), (3,), "made for 2800 bytes behind x_ptr, not 2804"),
        ((x, y[1:], np.int32(N)), (3,), "made for 2800 bytes behind y_ptr, not 2796"),
        ((memory[:N], memory[N:], np.int32(N)), (3,), "made for 2800 bytes behind x_ptr, not 5600"),
        ((x, x, np.int32(N)), (3,), "made for x_ptr and y_ptr in memory of their own, and they overlap"),
        ((None, y, np.int32(N)), (3,), "moves data of x_ptr, which is a null pointer"),
    ):
        with pytest.raises(LaunchError, match=said) as caught:
            launch(saved, *args, grid=grid)
        assert caught.value.code == "TFW0838"
    assert not memory.any()
    assert not y.any()


@pytest.mark.parametrize(("options", "said"), [({"block": 64}, "has no threads"), ({"dynamic_shared": 64}, "has no shared memory")])
def test_threads_and_shared_memory_are_refused(saved: Path, options: dict[str, int], said: str) -> None:
    x, y = np.zeros(N, np.float32), np.zeros(N, np.float32)
    entry = tilefw.load(str(saved), "spatial-sdm1")["shifted"]
    with pytest.raises(LaunchError, match=said):
        entry.launch((3,), [x, y, np.int32(N)], **options)
    entry.launch((3,), [x, y, np.int32(N)], block=1, dynamic_shared=0)
    assert (y == 1).all()


def shared(distance: int) -> SpatialProgram:
    """y begins so many bytes behind x, in memory of 4 N + `distance` bytes."""
    size = 4 * N + distance
    launched = LaunchArguments(
        (3, 1, 1), {"n": N}, {"x_ptr": BufferPlacement(5, 0, size), "y_ptr": BufferPlacement(5, distance, size)}
    )
    module = from_jit(shifted, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}).build()
    for step in default_passes(launched):
        step.apply(context(), module)
    return container.read(container.write(compile_kernel(module, launched, load()).program), "shared")


def test_a_program_for_shared_memory_wants_the_same_distance() -> None:
    program = shared(4 * N)
    assert [p.storage for p in program.parameters] == [(0, 0), (0, 4 * N), None]
    device = SpatialDevice(load())
    memory, other = device.allocate(8 * N), device.allocate(4 * N)
    data = np.arange(2 * N, dtype=np.float32)
    device.write(memory, data)

    def run(*views: BufferView) -> None:
        device.launch(Loaded(program), program.entry, (3, 1, 1), [*views, Scalar(N, "int32")], LaunchOptions())

    run(BufferView(memory), BufferView(memory, 4 * N))
    assert np.array_equal(np.frombuffer(device.read(memory, 8 * N), np.float32)[N:], data[:N] + 1)
    with pytest.raises(LaunchError, match="made for y_ptr 2800 bytes behind x_ptr, not in other memory"):
        run(BufferView(memory), BufferView(other))
    longer = device.allocate(8 * N + 4)
    with pytest.raises(LaunchError, match="made for 5600 bytes behind x_ptr, not 5604"):
        run(BufferView(longer), BufferView(longer, 4 * N))


def test_a_struct_is_refused_by_the_parameter_s_name(saved: Path) -> None:
    program = container.read(saved.read_bytes(), "shifted.sdm", load())
    with pytest.raises(LaunchError, match="x_ptr is a pointer and takes no struct") as caught:
        check_launch(program, (3,), [Struct(b"12345678")] * 3, lambda handle: 4 * N)
    assert caught.value.code == "TFW0347"


def test_what_a_launch_was_bound_to_survives_text() -> None:
    program = shared(4 * N)
    shown = text.render(program)
    assert f'.parameter pointer "y_ptr" fp32 nbytes={4 * N} storage=0+{4 * N}' in shown
    assert text.parse(shown, "again.s").parameters == program.parameters
    with pytest.raises(CodeError, match="a number and an offset in bytes"):
        text.parse(shown.replace(f"storage=0+{4 * N}", "storage=0"), "wrong.s")
