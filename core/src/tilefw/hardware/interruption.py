"""Ctrl-C while the main thread runs machine code: Python's own handler waits until that returns, so another thread tells the code.

The C part of Python's handler writes each signal's number to a pipe (`signal.set_wakeup_fd`); a thread reads it, and has the launch
of the main thread end. Python then raises KeyboardInterrupt in the main thread, as ever. A handler of the user's own decides for
itself what Ctrl-C means: with one, a launch goes on.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache


class InterruptWatch:
    """Ends what it is told of when Ctrl-C comes. Its thread lives as long as the process, which has one (`interrupt_watch`).

    `stop` ends what runs now, and is called under the `lock`; `pipe` is where Python tells of signals meanwhile, and `before` where
    it told of them before."""

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self._forks = False
        self.pipe = -1
        self.before = -1
        self.reads = -1
        self.lock = threading.RLock()  # a signal's handler may launch where the main thread has it
        self._waiting = select.poll()

    def watching(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """While the block runs in the main thread, Ctrl-C calls `stop`, from another thread; what it waits for then ends the block.
        """
        if threading.get_ident() != threading.main_thread().ident:
            return _UNWATCHED
        if self.pipe < 0 and not self._begin():
            return _UNWATCHED
        return _Watched(self, stop)

    def _begin(self) -> bool:
        """Whether there is a thread that listens: where Python ends, none can be begun."""
        if not self._forks:  # a fork has no threads but the one that forked
            self._forks = True
            os.register_at_fork(after_in_child=self._forget)
        self.lock, self.stop = threading.RLock(), None
        self.reads, pipe = os.pipe()
        for end in (self.reads, pipe):
            os.set_blocking(end, False)
        self._waiting.register(self.reads, select.POLLIN)
        listening = threading.Thread(target=self._listen, args=(self.reads, self.lock), name="tilefw interrupts", daemon=True)
        try:
            listening.start()
        except RuntimeError:
            self._waiting.unregister(self.reads)
            os.close(self.reads)
            os.close(pipe)
            return False
        self.pipe = pipe
        return True

    def _forget(self) -> None:
        """In a fork, whose signals are not the parent's: a thread may have forked while the main thread had a launch."""
        pipe, self.pipe, self.stop, self.lock = self.pipe, -1, None, threading.RLock()
        self._waiting = select.poll()
        if pipe < 0:
            return
        found = signal.set_wakeup_fd(-1)
        before = self.before if found == pipe else found
        if before >= 0:
            with suppress(OSError, ValueError):  # who waited there may have gone by now
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        os.close(self.reads)
        os.close(pipe)

    def _listen(self, reads: int, lock: AbstractContextManager[bool]) -> None:
        waiting = select.poll()
        waiting.register(reads, select.POLLIN)
        while True:
            waiting.poll()
            with lock:  # what has been heard has done its work before the next launch begins
                numbers, stop = self.heard(), self.stop
                if stop is not None and signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                    stop()

    def heard(self) -> bytes:
        """The signals that nobody has heard of yet, for whoever else waits for them too."""
        if not self._waiting.poll(0):
            return b""
        numbers = os.read(self.reads, 64)
        if self.before >= 0:  # somebody else, such as an event loop, waits for signals, and may have gone by now
            with suppress(OSError):
                os.write(self.before, numbers)
        return numbers


class _Watched:
    """`InterruptWatch.watching` in the main thread. Every launch has one, and a generator would take three times as long."""

    __slots__ = ("_before", "_outer", "_pipe", "_stop", "_watch")

    def __init__(self, watch: InterruptWatch, stop: Callable[[], None]) -> None:
        self._watch, self._stop, self._pipe = watch, stop, watch.pipe

    def __enter__(self) -> None:
        watch = self._watch
        self._outer = watch.stop
        with watch.lock:
            watch.heard()  # of a launch before: it has ended by now
            watch.stop = self._stop
        self._before = before = signal.set_wakeup_fd(watch.pipe, warn_on_full_buffer=False)
        if before != watch.pipe:  # as it is where a signal's handler launches inside of a launch
            watch.before = before

    def __exit__(self, *raised: object) -> None:
        if self._watch.pipe != self._pipe:  # a fork that a signal's handler has made: it has forgotten the launch
            return
        self._watch.stop = self._outer
        signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)


_UNWATCHED = nullcontext()


@cache
def interrupt_watch() -> InterruptWatch:
    """The process's own."""
    return InterruptWatch()
