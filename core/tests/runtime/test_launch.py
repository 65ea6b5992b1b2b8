"""A launch over the device protocol: what goes in, what comes back, and what never does."""

from __future__ import annotations

import ctypes
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import (
    Artifact,
    BufferView,
    CapacityError,
    CheckError,
    CodeError,
    Entry,
    Finding,
    InternalError,
    LaunchError,
    Parameter,
    Scalar,
    Struct,
)
from tilefw.api.target import TargetInfo
from tilefw.runtime import executor
from tilefw.runtime.arguments.binding import grid_of
from tilefw.runtime.compilation import options
from tilefw.runtime.diagnostics import check_error
from tilefw.runtime.plugins import loader

sys.path.insert(0, str(Path(__file__).parent))
import chip


@tilefw.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n), offsets < n)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy chip as a registered target; each test gets a fresh one."""
    provides = frozenset({"emit", "simulate"})
    info = TargetInfo("toy-1", "toy", "1", "a toy", "chip:ToyBackend", provides, options={"behaviour": "what"})
    target = loader.Target(info, None)
    monkeypatch.setitem(loader.registry()._targets, "toy-1", target)
    real = loader.Registry.find
    monkeypatch.setattr(loader.Registry, "find", lambda self, name: target if name == "toy-1" else real(self, name))
    monkeypatch.setattr(chip.ToyBackend, "made", [])
    return target


def launch(x, out, n=4, **keywords):
    return k[(1,)](x, out, n, BLOCK=4, target="toy-1", **keywords)


def device(toy):
    return toy.executors["sim"].device


def test_arrays_are_written_in_place_and_the_result_says_what_happened(toy):
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    result = launch(x, out)
    assert np.array_equal(out, x)
    assert result.counters == {"instructions": 16} and result.kernel == "k" and result.target == "toy-1"
    assert {"copy in", "execute", "copy back"} <= set(result.times) and "toy-1" in str(result)
    assert device(toy).allocations == {}, "everything is freed"


def test_arguments_of_one_storage_share_one_allocation_with_its_bounds(toy):
    whole = np.arange(16, dtype=np.float32)
    launch(whole[2:6], whole[8:12])
    allocations = [entry for entry in device(toy).log if entry[0] == "allocate"]
    assert allocations == [("allocate", 64, "x_ptr/out_ptr", False, "fp32")]
    (_, _, _, args, _) = next(entry for entry in device(toy).log if entry[0] == "launch")
    assert args == [BufferView(1, 8), BufferView(1, 32), Scalar(4, "int32"), BufferView(0)]
    assert np.array_equal(whole[8:16], np.arange(2, 10, dtype=np.float32)), "the copy ran to the end of the storage"


def test_only_changed_bytes_are_written_back(toy, monkeypatch):
    x, out = np.zeros(4, np.float32), np.zeros(4, np.float32)

    def store_one(dev, args):
        dev.allocations[args[1].handle][4:8] = np.float32(7).tobytes()
        out[0] = 5  # somebody else writes meanwhile
        return chip.LaunchReport()

    monkeypatch.setitem(chip.BEHAVIOURS, "copy", store_one)
    launch(x, out)
    assert out.tolist() == [0, 7, 0, 0] or out.tolist() == [5, 7, 0, 0]
    assert out[1] == 7


def test_a_finding_raises_and_copies_nothing_back():
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    with pytest.raises(CheckError) as caught:
        launch(x, out, behaviour="fault")
    assert not out.any()
    assert len(caught.value.findings) == 2 and caught.value.code == "TFW0801"
    text = str(caught.value)
    assert "a load past the end" in text and "ld r0, [r1]" in text and "lane 5; 2 times" in text


def test_a_finding_of_no_thread_tells_how_often_it_was_found():
    twice = Finding("bounds", "TFW0801", "a load past the end", count=2)
    assert "2 times in all" in str(check_error([twice]))
    assert "in all" not in str(check_error([replace(twice, count=1)]))


def test_a_warning_is_in_the_result():
    result = launch(np.zeros(4, np.float32), np.zeros(4, np.float32), behaviour="warn")
    assert [f.code for f in result.diagnostics] == ["TFW0802"] and "only a warning" in str(result)


def test_storing_to_a_read_only_array_is_an_error_and_leaves_it():
    out = np.zeros(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError) as caught:
        launch(np.ones(4, np.float32), out)
    assert caught.value.code == "TFW0334" and not out.any()


def test_reading_a_read_only_array_is_fine():
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    launch(x, out)
    assert out.all()


def test_a_crash_of_the_executor_is_an_internal_error_and_the_next_launch_gets_a_fresh_one(toy):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        launch(x, out, behaviour="crash")
    assert "crash" in Path(caught.value.reproducer).read_text() and not out.any()
    launch(x, out)
    assert out.all()


def test_a_bug_in_a_backend_leaves_a_reproducer_that_is_a_module():
    from tilefw.tile.text.module import parse

    with pytest.raises(InternalError, match="KeyError") as caught:
        launch(np.ones(4, np.float32), np.zeros(4, np.float32), behaviour="bug")
    text = Path(caught.value.reproducer).read_text()
    assert "// target: toy-1" in text and "Traceback" in text
    assert "func.func" in str(parse(text, "reproducer"))


def test_the_second_launch_comes_from_memory_and_another_process_from_disk(toy):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert [launch(x, out).found for _ in range(2)] == ["", "memory"]
    toy.memory.clear()
    assert launch(x, out).found == "disk"
    assert len(chip.ToyBackend.made) == 1
    assert sum(1 for entry in device(toy).log if entry[0] == "load") == 2


def test_what_changes_the_code_changes_the_key(toy):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    launch(x, out)
    assert launch(x, out, num_warps=8).found == ""
    assert launch(x, out, 5).found == "memory", "a plain number is not part of the key"
    assert launch(x, out, 16).found == "", "divisibility by 16 is"
    assert launch(x.astype(np.float64), out).found == ""
    assert k[(1,)](x, out, 4, BLOCK=8, target="toy-1").found == ""


def test_damaged_cache_entries_are_compiled_anew(toy, tmp_path):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    launch(x, out)
    (entry,) = [p for p in (tmp_path / "cache" / "artifacts").rglob("*") if p.is_file()]
    whole = entry.read_bytes()
    for damage in (b"", whole[:100], whole[:-1] + b"!", whole.replace(b"toy", b"yot"), b"\x80\x04]"):
        entry.write_bytes(damage)
        toy.memory.clear()
        assert launch(x, out).found == ""


def test_the_cache_can_be_switched_off(toy, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEFW_CACHE", "0")
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert [launch(x, out).found for _ in range(2)] == ["", ""]
    assert not (tmp_path / "cache" / "artifacts").exists()


@pytest.mark.parametrize(
    "keywords, code, words",
    [
        ({"num_warp": 4}, "TFW0320", "did you mean 'num_warps'"),
        ({"num_warps": 3}, "TFW0321", "power of 2"),
        ({"num_stages": 0}, "TFW0321", "num_stages"),
        ({"enable_fp_fusion": 1}, "TFW0321", "True or False"),
        ({"executor": "simulator"}, "TFW0902", "executor"),
        ({"checks": "everything"}, "TFW0901", "checks"),
    ],
)
def test_launch_keywords_are_a_closed_set(keywords, code, words):
    with pytest.raises(tilefw.KernelError, match=words) as caught:
        launch(np.ones(4, np.float32), np.zeros(4, np.float32), **keywords)
    assert caught.value.code == code


def test_a_workgroup_larger_than_the_chips_is_not_compiled():
    limits = {"lanes": 32, "threads_per_workgroup": 1024}
    chip = TargetInfo("toy-chip", "toy", "chip", "", "toy:Backend", frozenset(), limits=limits)
    assert options.resolve({"num_warps": 32}, chip).num_warps == 32
    with pytest.raises(CapacityError, match="2048 threads") as caught:
        options.resolve({"num_warps": 64}, chip)
    assert caught.value.code == "TFW0321" and caught.value.help == "use num_warps=32 or less"


def test_what_is_no_kernel_no_signature_or_no_code_is_said_so():
    with pytest.raises(tilefw.CompileError, match="`cdiv` is not a jit function"):
        tilefw.compile(tilefw.cdiv)
    with pytest.raises(tilefw.CompileError, match="dict of parameter names") as caught:
        tilefw.compile(k, signature=["*fp32"])
    assert caught.value.code == "TFW0641"
    with pytest.raises(CodeError, match="a path or bytes, not a int"):
        tilefw.load(5)
    with pytest.raises(tilefw.CompileError, match="source is a string, not a int"):
        tilefw.jit(source=5)(lambda x_ptr: None)


def test_an_executor_that_is_not_there_is_refused_by_name():
    with pytest.raises(tilefw.UnsupportedError, match="no hardware executor"):
        launch(np.ones(4, np.float32), np.zeros(4, np.float32), executor="hw")
    assert launch(np.ones(4, np.float32), np.zeros(4, np.float32), executor="auto").counters


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), (1.5,), (-1,), (2**31,), "3", ("1",), (None,)])
def test_impossible_grids(grid):
    with pytest.raises(LaunchError) as caught:
        grid_of(grid)
    assert caught.value.code == "TFW0323"


def test_a_grid_of_nothing_runs_nothing(toy):
    out = np.zeros(4, np.float32)
    result = k[(0,)](np.ones(4, np.float32), out, 4, BLOCK=4, target="toy-1")
    assert not out.any() and result.grid == (0, 1, 1)


def test_machine_code_from_bytes_and_files_loads_and_launches(tmp_path):
    path = tmp_path / "code.toy"
    path.write_bytes(b"copy")
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    for source in (b"copy", str(path), path):
        module = tilefw.load(source, target="toy-1")
        assert list(module) == ["k", "second"]
        out[:] = 0
        module["second"].launch((1,), [x, out, 4, None])
        assert np.array_equal(out, x)


def test_a_saved_artifact_loads_again_and_hidden_pointers_may_be_left_out(tmp_path):
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    artifact = launch(x, out).artifact
    path = tmp_path / "k.tilefw"
    artifact.save(path)
    module = tilefw.load(path)
    assert module.artifact == artifact and module.target.name == "toy-1"
    out[:] = 0
    module["k"].launch(1, [x, out, 4])
    assert np.array_equal(out, x)
    with pytest.raises(CodeError) as caught:
        tilefw.load(path, target="reference")
    assert caught.value.code == "TFW0781"


DAMAGES = [lambda d: d[:-5], lambda d: d.replace(b"copy", b"warn"), lambda d: d[:20], lambda d: d[:30] + d[40:]]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_artifact_file_is_a_clear_error(tmp_path, damage):
    path = tmp_path / "k.tilefw"
    launch(np.ones(4, np.float32), np.zeros(4, np.float32)).artifact.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CodeError) as caught:
        tilefw.load(path)
    assert caught.value.code == "TFW0780" and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "args, code, words",
    [
        ([], "TFW0322", "takes 4 arguments, not 0"),
        ([1, 2, 3, 4, 5], "TFW0322", "x_ptr: pointer to fp32"),
        ([3, None, 4, None], "TFW0324", "is a pointer"),
        ([None, None, None, None], "TFW0324", "a null pointer"),
        ([None, None, np.zeros(3), None], "TFW0324", "an array"),
        ([None, None, 1.5, None], "TFW0324", "is a int32"),
        ([None, None, 2**32, None], "TFW0325", "does not fit"),
        ([None, None, Scalar(1, "int64"), None], "TFW0324", "4 bytes"),
        ([None, None, "4", None], "TFW0324", "int32"),
    ],
)
def test_arguments_that_do_not_fit_machine_code(args, code, words):
    with pytest.raises(LaunchError, match=words) as caught:
        tilefw.load(b"copy", target="toy-1")["k"].launch((1,), args)
    assert caught.value.code == code


class Pair(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int32), ("second", ctypes.c_float))


AS_BYTES = bytes(Pair(3, 0.5))
STRUCTURED = np.array([(3, 0.5)], [("first", "i4"), ("second", "f4")])


@pytest.fixture
def by_value(monkeypatch):
    """The toy's second kernel takes a struct of 8 bytes and an integer."""
    parameters = (Parameter("s", "struct", "uint8", 0, 8, 4), Parameter("n", "scalar", "int32", 8, 4, 4))
    monkeypatch.setattr(chip, "entry_of", lambda name="k": Entry(name, parameters, (32, 1, 1)))
    return tilefw.load(b"warn", target="toy-1")["k"]


@pytest.mark.parametrize("value", [AS_BYTES, bytearray(AS_BYTES), STRUCTURED, STRUCTURED[0], Pair(3, 0.5), Struct(AS_BYTES)])
def test_a_struct_by_value_is_its_bytes(by_value, toy, value):
    by_value.launch(1, [value, 7])
    (_, _, _, args, _) = next(entry for entry in device(toy).log if entry[0] == "launch")
    assert args == [Struct(AS_BYTES), Scalar(7, "int32")]


@pytest.fixture
def by_value_as_a_number(monkeypatch):
    """Code objects tell a struct of eight bytes, passed by value, as an integer of that size."""
    parameters = (Parameter("s", "scalar", "uint64", 0, 8, 8),)
    monkeypatch.setattr(chip, "entry_of", lambda name="k": Entry(name, parameters, (32, 1, 1)))
    return tilefw.load(b"warn", target="toy-1")["k"]


@pytest.mark.parametrize("value", [STRUCTURED, STRUCTURED.reshape(()), STRUCTURED[0], Pair(3, 0.5), Struct(AS_BYTES)])
def test_a_struct_as_large_as_a_number_is_its_bytes(by_value_as_a_number, toy, value):
    by_value_as_a_number.launch(1, [value])
    (_, _, _, args, _) = next(entry for entry in device(toy).log if entry[0] == "launch")
    assert args == [Struct(AS_BYTES)]


def test_eight_bytes_that_may_be_a_value_or_memory_are_refused(by_value_as_a_number):
    with pytest.raises(LaunchError, match="its value or the memory") as caught:
        by_value_as_a_number.launch(1, [AS_BYTES])
    assert caught.value.code == "TFW0328"


@pytest.mark.parametrize("args, words", [
    ([5, 7], "is a struct of 8 bytes, not 5"), ([None, 7], "not None"), ([Scalar(5, "int64"), 7], "struct of 8 bytes"),
    ([AS_BYTES[:7], 7], "has 8 bytes, not 7"), ([np.zeros(3), 7], "has 8 bytes, not 24"),
    ([AS_BYTES, Pair()], "'n' of k has 4 bytes"),
])
def test_what_is_no_struct_of_its_size_is_refused(by_value, args, words):
    with pytest.raises(LaunchError, match=words) as caught:
        by_value.launch(1, args)
    assert caught.value.code == "TFW0328"


def test_unsigned_numbers_fit_a_signed_parameter_by_their_bits(toy):
    tilefw.load(b"copy", target="toy-1")["k"].launch((1,), [np.zeros(1), np.zeros(1), 2**32 - 1])
    launched = next(entry for entry in device(toy).log if entry[0] == "launch")
    assert launched[3][2] == Scalar(-1, "int32")


def test_an_unknown_entry_names_the_nearest():
    with pytest.raises(LaunchError, match="did you mean 'second'"):
        tilefw.load(b"copy", target="toy-1")["secnd"]
    with pytest.raises(LaunchError, match="2 entries"):
        tilefw.load(b"copy", target="toy-1").only()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/", "/dev/zero"])
def test_files_that_cannot_be_read(path):
    with pytest.raises(CodeError) as caught:
        tilefw.load(path, target="toy-1")
    assert caught.value.code == "TFW0930"


def test_what_stays_loaded_is_bounded_by_its_code(monkeypatch):
    """Decoded code takes a multiple of its text: a hundred large kernels would take all memory."""
    class Loads:
        loaded: list[str] = []

        def load(self, artifact):
            self.loaded.append(artifact.text)
            return artifact.text

    monkeypatch.setattr(executor, "CODE_LIMIT", 100)
    keeper = executor.Executor(Loads())
    small, large, huge = (Artifact("toy-1", "text", "x" * size, ()) for size in (30, 60, 200))
    for artifact in (small, large, small, huge, huge, small):
        assert keeper.module(artifact) == artifact.text
    assert [len(text) for text in Loads.loaded] == [30, 60, 200, 30], "what is larger than the limit stays loaded alone"


def test_a_signals_handler_launches_within_a_launch(toy):
    """Both are right; an executor that its own thread cannot have twice would wait for itself."""
    x, out, other = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    launch(x, other)
    held = toy.executors["sim"]
    device, real, free = held.device, held.device.launch, []

    def interrupted(*given):
        device.launch = real
        signal.raise_signal(signal.SIGUSR1)
        return real(*given)

    def handler(*_):
        free.append(held.lock.acquire(blocking=False))
        if free[0]:
            held.lock.release()
            launch(2 * x, other)

    device.launch, before = interrupted, signal.signal(signal.SIGUSR1, handler)
    try:
        launch(x, out)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert free == [True] and (out == x).all() and (other == 2 * x).all()
