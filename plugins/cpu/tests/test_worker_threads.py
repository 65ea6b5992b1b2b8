"""Threads that share launches: each works, sleeps once nothing comes, is awake for the next launch, and is the process's own."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tilefw_cpu.compile import NativeCode, object_of
from tilefw_cpu.fault_guard import FAULT, fault_guard
from tilefw_cpu.processor import processor
from tilefw_cpu.worker_threads import WorkerThreads, worker_threads

HERE = processor()
# Each thread adds 1 to its scratch and to the count, and waits there until all have; its answer is its scratch's second word.
MEETING = f"""target triple = "{HERE.triple}"
define i32 @"tilefw.meeting"(ptr %b, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z) {{
begin:
  %had = load i32, ptr %scratch
  %has = add i32 %had, 1
  store i32 %has, ptr %scratch
  %before = atomicrmw add ptr %next, i64 1 seq_cst
  br label %wait
wait:
  %now = load atomic i64, ptr %next seq_cst, align 8
  %there = icmp sge i64 %now, %all
  br i1 %there, label %end, label %wait
end:
  %answer.at = getelementptr i32, ptr %scratch, i64 1
  %answer = load i32, ptr %answer.at
  ret i32 %answer
}}
define i32 @"tilefw.counts"(ptr %b, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z) {{
  %before = atomicrmw add ptr %next, i64 1 seq_cst
  ret i32 0
}}
define i32 @"tilefw.fault"(ptr %b, ptr %scratch, ptr %next, i64 %all, i32 %x, i32 %y, i32 %z) null_pointer_is_valid {{
  store volatile i8 1, ptr inttoptr (i64 64 to ptr)
  ret i32 0
}}
"""


@pytest.fixture(scope="module")
def code() -> NativeCode:
    return NativeCode(object_of(MEETING, HERE), HERE)


@pytest.fixture(scope="module")
def workers() -> WorkerThreads:
    found = worker_threads(HERE, 3, os.getpid())
    if found is None or fault_guard(HERE) is None:
        pytest.skip("the system's calls are not known")
    return found


def meet(workers: WorkerThreads, code: NativeCode, answers: Sequence[int], name: str = "meeting") -> tuple[int, list[int]]:
    guard = fault_guard(HERE)
    assert guard is not None
    guard.stand()
    scratch = [(ctypes.c_int32 * 2)(0, answer) for answer in answers]
    words = (ctypes.c_int64 * 6)()
    places = [ctypes.addressof(one) for one in scratch]
    found = workers.run(guard.enter, code.address(name), b"", places, ctypes.addressof(words), len(answers), (1, 1, 1))
    return found, [one[0] for one in scratch]


@pytest.mark.parametrize("pause", [0.0, 0.02])
def test_each_thread_works_once_in_a_place_of_its_own_and_its_answer_counts(
    workers: WorkerThreads, code: NativeCode, pause: float
) -> None:
    """Without a pause the threads are awake when the next launch comes, with one they sleep."""
    for turn in range(20 if pause else 100):
        answers = [0] * (2 + turn % 3)
        answers[turn % len(answers)] = turn
        assert meet(workers, code, answers) == (turn, [1] * len(answers))
        time.sleep(pause)


def test_a_thread_alone_works_itself(workers: WorkerThreads, code: NativeCode) -> None:
    assert meet(workers, code, [3]) == (3, [1])


def test_launches_at_once_begin_each_thread_once(code: NativeCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them has the threads, the other works alone. Of two threads of one slot one would be woken in the caller's place."""
    own = worker_threads.__wrapped__(HERE, 3, os.getpid())
    assert own is not None
    before, start = len(list(Path("/proc/self/task").iterdir())), threading.Barrier(2)
    guard = fault_guard(HERE)
    assert guard is not None
    counts = [(ctypes.c_int64 * 6)() for _ in range(2)]
    address = NativeCode.address

    def slow(found: NativeCode, name: str) -> int:
        if name == "member":  # the other launch comes while a thread is begun
            time.sleep(0.01)
        return address(found, name)

    monkeypatch.setattr(NativeCode, "address", slow)

    def launches(count: ctypes.Array[ctypes.c_int64]) -> None:
        start.wait()
        for _ in range(300):
            own.run(guard.enter, code.address("counts"), b"", [0] * 4, ctypes.addressof(count), 4, (1, 1, 1))

    threads = [threading.Thread(target=launches, args=(count,)) for count in counts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(300 <= count[0] <= 1200 for count in counts)
    until = time.monotonic() + 2
    while (now := len(list(Path("/proc/self/task").iterdir()))) != before + 3:  # those of Python end a moment after they are joined
        assert time.monotonic() < until, f"{now - before} threads"


def test_a_fault_of_each_thread_comes_back(workers: WorkerThreads, code: NativeCode) -> None:
    for _ in range(20):
        assert meet(workers, code, [0, 0], "fault")[0] == FAULT
    assert meet(workers, code, [0, 0, 0]) == (0, [1, 1, 1])


def test_threads_that_nothing_comes_for_take_no_time(workers: WorkerThreads, code: NativeCode) -> None:
    meet(workers, code, [0, 0, 0, 0])
    time.sleep(0.02)
    begin = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - begin < 0.02


def test_signals_go_to_the_threads_of_python(workers: WorkerThreads, code: NativeCode) -> None:
    meet(workers, code, [0, 0, 0, 0])
    tasks = [(path / "status").read_text() for path in Path("/proc/self/task").iterdir()]
    masks = [int(line.split()[1], 16) for task in tasks for line in task.splitlines() if line.startswith("SigBlk")]
    interrupt, fault = 1 << 1, 1 << 10  # SIGINT and SIGSEGV
    assert sum(bool(mask & interrupt) for mask in masks) >= 3
    assert not any(mask & fault for mask in masks)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(workers: WorkerThreads, code: NativeCode) -> None:
    meet(workers, code, [0, 0])
    child = os.fork()
    if child == 0:  # nothing but its status gets out
        status = 1
        try:
            own = worker_threads(HERE, 3, os.getpid())
            assert own is not None and own is not workers
            status = 0 if meet(own, code, [0, 5, 0]) == (5, [1, 1, 1]) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
