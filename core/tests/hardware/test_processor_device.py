"""A launch in this process ends whole: threads in its memory are waited for. One thread listens for Ctrl-C, for all devices."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tilefw.api import Artifact, Entry, LaunchOptions
from tilefw.api.hardware import LOOKING, ProcessorCode, ProcessorDevice
from tilefw.hardware.interruption import interrupt_watch

ARTIFACT = Artifact("toy-1", "toy", "", (Entry("k", (), (1, 1, 1)),))


class Calling(ProcessorDevice):
    """Calls a function of Python's for each thread of a launch."""

    def __init__(self, threads: int, work: Callable[..., int]) -> None:
        super().__init__("toy-1", threads)
        self._work = work

    def load_code(self, artifact: Artifact) -> Any:
        return None

    def entered(self, code: ProcessorCode, name: str) -> Callable[..., int]:
        return self._work

    def run(self, programs: int) -> None:
        self.launch(self.load(ARTIFACT), "k", (programs, 1, 1), [], LaunchOptions(checks=frozenset()))


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def pythons_own_handler() -> Iterator[None]:
    """A shell's background job ignores Ctrl-C, and a debugger that was here may have left a handler of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_second_ctrl_c_leaves_no_thread_in_the_memory_of_a_launch() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(*_: int) -> int:
        if threading.current_thread() is threading.main_thread():
            begun.wait()
            _interrupt()
            return 0
        begun.set()
        time.sleep(0.1)
        _interrupt()  # while the launch waits for this thread
        time.sleep(0.1)
        ended.set()
        return 0

    with pytest.raises(KeyboardInterrupt):
        Calling(2, work).run(2)
    assert ended.is_set()


def test_ctrl_c_while_a_thread_is_begun_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes before the caller has heard that the thread has begun."""
    begun, ended = threading.Event(), threading.Event()
    submit = ThreadPoolExecutor.submit

    def work(*_: int) -> int:
        begun.set()
        time.sleep(0.05)
        ended.set()
        return 0

    def interrupted(self: ThreadPoolExecutor, *work: Any) -> None:
        submit(self, *work)
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Calling(2, work).run(2)
    assert ended.is_set()


def test_devices_that_come_and_go_share_what_listens_for_ctrl_c() -> None:
    for _ in range(3):
        Calling(1, lambda *_: 0).run(1)
    assert [thread.name for thread in threading.enumerate()].count("tilefw interrupts") == 1


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_ctrl_c_of_a_launch_that_has_ended_does_not_stop_the_next() -> None:
    watch, stopped = interrupt_watch(), []
    for _ in range(20):
        with watch.watching(lambda: None):
            wakes = signal.set_wakeup_fd(-1)
            os.write(wakes, bytes([signal.SIGINT]))  # as Python's handler does, without the exception that it raises
        with watch.watching(lambda: stopped.append(1)):
            time.sleep(0.001)
    assert not stopped


@pytest.mark.usefixtures("pythons_own_handler")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
def test_ctrl_c_in_a_fork_that_another_thread_has_made_ends_no_launch_of_the_parents() -> None:
    watch, stopped, status = interrupt_watch(), [], []

    def fork() -> None:
        child = os.fork()
        if child == 0:  # nothing but its status gets out
            signal.signal(signal.SIGINT, lambda *_: None)
            _interrupt()
            wakes = signal.set_wakeup_fd(-1)
            os._exit(0 if wakes == -1 and _closed(reads) and _closed(pipe) else 1)
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with watch.watching(lambda: stopped.append(1)):
        reads, pipe = watch.reads, watch.pipe
        other = threading.Thread(target=fork)
        other.start()
        other.join()
        time.sleep(0.05)
    assert status == [0] and not stopped


def _closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def test_a_launch_by_a_signals_handler_within_a_launch_runs_in_memory_of_its_own() -> None:
    places: list[int] = []

    def work(block: bytes, scratch: int, *_: int) -> int:
        places.append(scratch)
        if len(places) == 1:
            signal.raise_signal(signal.SIGUSR1)
        return 0

    device = Calling(2, work)
    module = device.load(replace(ARTIFACT, entries=(replace(ARTIFACT.entries[0], scratch_bytes=64),)))
    options = LaunchOptions(checks=frozenset())
    before = signal.signal(signal.SIGUSR1, lambda *_: device.launch(module, "k", (4, 1, 1), [], options))
    try:
        device.launch(module, "k", (1, 1, 1), [], options)
        device.launch(module, "k", (1, 1, 1), [], options)
    finally:
        signal.signal(signal.SIGUSR1, before)
    outer, inner, after = places
    assert outer == after != inner


@pytest.mark.parametrize(("looking", "programs", "watched"), [(["k"], 1, True), ([], 2, True), ([], 1, False), (None, 1, True)])
def test_a_launch_is_watched_unless_it_is_one_program_that_looks_at_nothing(
    looking: list[str] | None, programs: int, watched: bool
) -> None:
    """Then nothing could end it early."""
    seen: list[bool] = []

    def work(*_: object) -> int:
        seen.append(interrupt_watch().stop is not None)
        return 0

    artifact = replace(ARTIFACT, metadata={} if looking is None else {LOOKING: looking})
    device = Calling(1, work)
    device.launch(device.load(artifact), "k", (programs, 1, 1), [], LaunchOptions(checks=frozenset()))
    assert seen == [watched]


def test_launches_of_two_threads_that_end_in_the_order_in_which_they_began_leave_the_device_free() -> None:
    """The second has no other thread meanwhile; the next one has again."""
    inside, go_on, threads = threading.Barrier(3), threading.Event(), list[list[int]]()

    def work(_block: bytes, scratch: int, *_: object) -> int:
        threads[-1].append(scratch)
        if len(threads) == 1:
            inside.wait(10)
            go_on.wait(10)
        return 0

    device = Calling(2, work)
    with ThreadPoolExecutor(1) as pool:
        threads.append([])
        first = pool.submit(device.run, 2)
        inside.wait(10)  # both threads of it
        threads.append([])
        device.run(2)
        go_on.set()
        first.result()
    assert len(threads[1]) == 1
    assert threads[1][0] not in threads[0]
    barrier = threading.Barrier(2)
    device._work = lambda *_: barrier.wait(10) * 0
    device.run(2)
