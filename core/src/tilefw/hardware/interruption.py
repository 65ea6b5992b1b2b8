"""Ctrl-C while the main thread runs machine code: Python's own handler waits until that returns, so another thread tells the code.

The C part of Python's handler writes each signal's number to a pipe (`signal.set_wakeup_fd`); a thread reads it, and has the launch
of the main thread end. Python then raises KeyboardInterrupt in the main thread, as ever. A handler of the user's own decides for
itself what Ctrl-C means: with one, a launch goes on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache


class InterruptWatch:
    """Ends what it is told of when Ctrl-C comes. Its thread lives as long as the process, which has one (`interrupt_watch`)."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self._pid = 0
        self._pipe = -1
        self._before = -1

    @contextmanager
    def watching(self, stop: Callable[[], None]) -> Iterator[None]:
        """While the block runs in the main thread, Ctrl-C calls `stop`, from another thread; what it waits for then ends the block.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if self._pid != os.getpid():  # a fork has no threads but the one that forked
            self._begin()
        outer, before = self._stop, signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)
        if before != self._pipe:  # as it is where a signal's handler launches inside of a launch
            self._before = before
        self._stop = stop
        try:
            yield
        finally:
            self._stop = outer
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)

    def _begin(self) -> None:
        reads, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._pid = os.getpid()
        threading.Thread(target=self._listen, args=(reads,), name="tilefw interrupts", daemon=True).start()

    def _listen(self, reads: int) -> None:
        while numbers := os.read(reads, 64):
            stop = self._stop
            if stop is not None and signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                stop()
            if self._before >= 0:  # somebody else, such as an event loop, waits for signals, and may have gone by now
                with suppress(OSError):
                    os.write(self._before, numbers)


@cache
def interrupt_watch() -> InterruptWatch:
    """The process's own."""
    return InterruptWatch()
