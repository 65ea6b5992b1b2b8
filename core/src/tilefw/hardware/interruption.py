"""Ctrl-C while the main thread runs machine code: Python's own handler waits until that returns, so another thread tells the code.

The C part of Python's handler writes each signal's number to a pipe (`signal.set_wakeup_fd`); a thread reads it, and has the launch
of the main thread end. Python then raises KeyboardInterrupt in the main thread, as ever. A handler of the user's own decides for
itself what Ctrl-C means: with one, a launch goes on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache


class InterruptWatch:
    """Ends what it is told of when Ctrl-C comes. Its thread lives as long as the process, which has one (`interrupt_watch`).

    `stop` ends what runs now, `pipe` is where Python tells of signals meanwhile, and `before` where it told of them before."""

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self._forks = False
        self.pipe = -1
        self.before = -1

    def watching(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """While the block runs in the main thread, Ctrl-C calls `stop`, from another thread; what it waits for then ends the block.
        """
        if threading.current_thread() is not threading.main_thread():
            return _UNWATCHED
        if self.pipe < 0:
            self._begin()
        return _Watched(self, stop)

    def _begin(self) -> None:
        if not self._forks:  # a fork has no threads but the one that forked
            self._forks = True
            os.register_at_fork(after_in_child=self._forget)
        reads, self.pipe = os.pipe()
        os.set_blocking(self.pipe, False)
        threading.Thread(target=self._listen, args=(reads,), name="tilefw interrupts", daemon=True).start()

    def _forget(self) -> None:
        self.pipe = -1

    def _listen(self, reads: int) -> None:
        while numbers := os.read(reads, 64):
            stop = self.stop
            if stop is not None and signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                stop()
            if self.before >= 0:  # somebody else, such as an event loop, waits for signals, and may have gone by now
                with suppress(OSError):
                    os.write(self.before, numbers)


class _Watched:
    """`InterruptWatch.watching` in the main thread. Every launch has one, and a generator would take three times as long."""

    __slots__ = ("_before", "_outer", "_stop", "_watch")

    def __init__(self, watch: InterruptWatch, stop: Callable[[], None]) -> None:
        self._watch, self._stop = watch, stop

    def __enter__(self) -> None:
        watch = self._watch
        self._outer = watch.stop
        self._before = before = signal.set_wakeup_fd(watch.pipe, warn_on_full_buffer=False)
        if before != watch.pipe:  # as it is where a signal's handler launches inside of a launch
            watch.before = before
        watch.stop = self._stop

    def __exit__(self, *raised: object) -> None:
        self._watch.stop = self._outer
        signal.set_wakeup_fd(self._before, warn_on_full_buffer=False)


_UNWATCHED = nullcontext()


@cache
def interrupt_watch() -> InterruptWatch:
    """The process's own."""
    return InterruptWatch()
