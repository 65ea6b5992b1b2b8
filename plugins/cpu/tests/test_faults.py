"""A kernel that the processor stops, and one that Ctrl-C stops, end their launch and neither the process nor the next launch."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api import BufferView, LaunchOptions, LaunchReport, Scalar
from tilefw_cpu.compile import NativeCode, object_of
from tilefw_cpu.device import NativeDevice
from tilefw_cpu.fault_guard import FAULT, GUARDED, fault_guard, guard_of, guard_text
from tilefw_cpu.processor import processor


@tilefw.jit
def shifted(x, out, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at + shift, mask=at < n)
    tl.store(out + at, value, mask=at < n)


@tilefw.jit
def waits(flag, lines):
    tl.atomic_add(lines, 1)
    while tl.atomic_add(flag, 0) == 0:
        pass


@tilefw.jit
def counts(x, n):
    total = 0
    for i in range(n):
        total += tl.load(x + i % 8)
    tl.store(x + 8 + tl.program_id(0) % 8, total)


FAR = 1 << 44


def _copied(shift: int = 0, grid: int = 8) -> bool:
    x, out = np.arange(grid * 128, dtype=np.float32), np.zeros(grid * 128, np.float32)
    shifted[(grid,)](x, out, grid * 128, shift, BLOCK=128, target="cpu")
    return np.array_equal(x, out)


@pytest.mark.parametrize("grid", [1, 64])
def test_an_access_to_memory_that_is_not_there_is_an_error_at_its_line(grid: int) -> None:
    for _ in range(3):
        with pytest.raises(tilefw.KernelError, match="the processor stopped the kernel") as told:
            _copied(FAR, grid)
        assert told.value.code == "TFW0355" and told.value.place is not None
        assert "tl.load(x + at + shift" in told.value.place.text and told.value.place.file == __file__
        assert _copied(grid=grid)


def test_a_fault_of_one_thread_ends_its_own_launch_alone() -> None:
    right: list[bool] = []

    def work(number: int) -> None:
        for turn in range(6):
            if (number + turn) % 2:
                right.append(_copied())
                continue
            try:
                _copied(FAR)
            except tilefw.KernelError as error:
                right.append(error.code == "TFW0355")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 24


def _interrupted(launch: Callable[[], Any], begun: Callable[[], Any]) -> None:
    """Ctrl-C comes when the launch has begun, and ends it."""

    def interrupt() -> None:
        while not begun():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a debugger that was here may have left its own
    try:
        with pytest.raises(KeyboardInterrupt):
            sender.start()
            launch()
    finally:
        signal.signal(signal.SIGINT, before)
    sender.join()
    assert _copied()


@pytest.mark.parametrize("grid", [1, 5])
def test_ctrl_c_ends_a_launch_that_waits_for_ever(grid: int) -> None:
    flag, lines = np.zeros(1, np.int32), np.zeros(1, np.int32)
    _interrupted(lambda: waits[(grid,)](flag, lines), lambda: lines[0])


def test_ctrl_c_ends_a_launch_between_its_programs() -> None:
    x = np.ones(16, np.int32)
    _interrupted(lambda: counts[(1 << 30,)](x, 100000), lambda: (x[8:] != 1).any())


@tilefw.jit
def adds(x, n):
    total = 0
    for i in range(n):
        total += tl.load(x + i % 8)
    tl.atomic_add(x + 8, total)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a second thread")
def test_a_launch_that_ctrl_c_ends_leaves_no_thread_at_work() -> None:
    x = np.ones(9, np.int32)
    _interrupted(lambda: adds[(1 << 30,)](x, 400_000, target="cpu"), lambda: x[8] != 1)
    then = x[8]
    time.sleep(0.05)
    assert x[8] == then


def test_a_handler_of_the_users_own_decides_what_ctrl_c_means() -> None:
    flag, lines, heard = np.zeros(1, np.int32), np.zeros(1, np.int32), []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))

    def interrupt() -> None:
        while not lines[0]:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        flag[0] = 1

    sender = threading.Thread(target=interrupt)
    try:
        sender.start()
        waits[(1,)](flag, lines)
        sender.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_launches_and_is_interrupted_as_its_parent_is() -> None:
    assert _copied()
    child = os.fork()
    if child == 0:  # nothing but its status gets out
        status = 1
        try:
            flag, lines = np.zeros(1, np.int32), np.zeros(1, np.int32)
            fine = _copied()
            _interrupted(lambda: waits[(2,)](flag, lines, target="cpu"), lambda: lines[0])
            status = 0 if fine else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FOREIGN = """\
import ctypes, faulthandler, numpy as np, tilefw
import tilefw.language as tl

@tilefw.jit
def one(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 1.0)

one[(1,)](np.zeros(4, np.float32), N=4, target="cpu")
faulthandler.enable()  # on top of the guard, which code that is loaded now puts on top of it
one[(1,)](np.zeros(8, np.float32), N=8, target="cpu")
ctypes.string_at(8)
"""


def test_a_fault_that_is_no_kernels_goes_once_to_each_handler_that_was_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FOREIGN)
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGSEGV and ended.stderr.count("Fatal Python error: Segmentation fault") == 1


GUARD_AGAIN = """\
import atexit, os, signal, numpy as np, tilefw
import tilefw.language as tl

@tilefw.jit
def read(x, out, shift, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.load(x + at + shift))

def launch(shift):
    x, out = np.ones(256, np.float32), np.zeros(256, np.float32)
    read[(64,)](x, out, shift, N=4, target="cpu")
    return out.all()

heard = []
signal.signal(signal.SIGSEGV, lambda *_: heard.append(1))
launch(0)
os.kill(os.getpid(), signal.SIGSEGV)  # which is no kernel's
try:
    launch(1 << 44)
except tilefw.KernelError as error:
    print(error.code, heard)
atexit.register(lambda: print("at the end", launch(0)))
"""


def test_the_guard_stands_again_and_a_program_that_ends_still_launches(tmp_path: Path) -> None:
    """After a signal that was no kernel's; and where Python begins no threads any more."""
    program = tmp_path / "program.py"
    program.write_text(GUARD_AGAIN)
    told = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout == "TFW0355 [1]\nat the end True\n", told.stderr


DEEP = """
define i32 @"tilefw.shifted"(ptr %b, ptr %s, ptr %n, i64 %all, i32 %x, i32 %y, i32 %z) noinline "probe-stack"="inline-asm" {
  %frame = alloca [100000 x i8]
  store volatile i8 1, ptr %frame
  %found = call i32 @"tilefw.shifted"(ptr %frame, ptr %s, ptr %n, i64 %all, i32 %x, i32 %y, i32 %z)
  %again = load volatile i8, ptr %frame
  %sum = zext i8 %again to i32
  %result = add i32 %found, %sum
  ret i32 %result
}
"""


TOUCHES = """
define i32 @"tilefw.touches"(ptr %b, ptr %s, ptr %n, i64 %all, i32 %x, i32 %y, i32 %z) null_pointer_is_valid {
  store volatile i8 1, ptr inttoptr (i64 64 to ptr)
  ret i32 0
}
"""


@pytest.mark.parametrize("main", [True, False])
def test_a_kernel_that_needs_more_stack_than_there_is_is_an_error(main: bool) -> None:
    x = np.zeros(128, np.float32)
    artifact = shifted[(1,)](x, x.copy(), 128, 0, BLOCK=128, target="cpu").artifact
    here = processor()
    text = f'target triple = "{here.triple}"\n{DEEP}'
    device = NativeDevice("cpu-native", here)
    module = device.load(replace(artifact, text=text, binary=object_of(text, here)))
    parameters = artifact.entries[0].parameters
    arguments = [Scalar(0, parameter.dtype) if parameter.kind == "scalar" else BufferView(0) for parameter in parameters]
    reports: list[LaunchReport] = []

    def launch() -> None:
        reports.append(device.launch(module, "shifted", (1, 1, 1), arguments, LaunchOptions(checks=frozenset())))

    if main:
        launch()
    else:
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
    assert reports[0].findings[0].code == "TFW0355" and "thread's stack" in reports[0].findings[0].message
    assert _copied()


@pytest.mark.skipif(not 0 < resource.getrlimit(resource.RLIMIT_STACK)[0] <= 64 << 20, reason="the stack may take all there is")
def test_an_access_below_the_stack_that_no_frame_makes_is_an_access() -> None:
    """A little below what the stack may grow to: its size does not make an access one of the stack."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    (end,) = (int(line.split("-")[1].split()[0], 16) for line in lines if line.endswith("[stack]"))
    below = end - resource.getrlimit(resource.RLIMIT_STACK)[0] - (4 << 20)
    x = np.zeros(128, np.float32)
    with pytest.raises(tilefw.KernelError, match="at an access to address"):
        shifted[(1,)](x, x.copy(), 128, (below - x.ctypes.data) // 4, BLOCK=128, target="cpu")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_knows_of_no_thread_that_its_parent_has_in_a_kernel() -> None:
    """It has none of them, and a new thread may have the identity of one."""
    guard = fault_guard(processor())
    assert guard is not None
    records = (ctypes.c_uint64 * 256).from_address(guard.active)
    flag, lines = np.zeros(1, np.int32), np.zeros(1, np.int32)
    waiting = threading.Thread(target=lambda: waits[(1,)](flag, lines, target="cpu"))
    waiting.start()
    while not lines[0]:
        time.sleep(0.001)
    child = os.fork()
    if not child:
        os._exit(int(any(records)))
    there = any(records)
    flag[0] = 1
    waiting.join()
    assert there
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_guard_without_memory_for_its_stack_still_tells_of_an_access() -> None:
    """The guard stands alone here: in a process of its own, whose `malloc` has none left."""
    here = processor()
    text = guard_text(here)
    assert text is not None
    none = 'define internal ptr @none(i64 %bytes) {\n  ret ptr null\n}\n'
    lone = guard_of(text.replace("declare ptr @malloc(i64)", none).replace("@malloc", "@none"), here)
    child = os.fork()
    if child == 0:
        lone.stand()
        code = NativeCode(object_of(f'target triple = "{here.triple}"\n{TOUCHES}', here), here)
        words = (ctypes.c_int64 * 6)()
        answer = GUARDED(lone.enter)(code.address("touches"), 0, 0, ctypes.addressof(words), 1, 1, 1, 1)
        os._exit(0 if answer == FAULT and words[3] == 64 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
