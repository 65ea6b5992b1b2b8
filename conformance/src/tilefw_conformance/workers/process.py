"""One worker process as its supervisor sees it: pipes, what it printed, how much memory it holds, how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from tilefw_conformance.workers.protocol import LINE_LIMIT, Message, OpenSession, ProtocolError, decode, encode

OUTPUT_LIMIT = 4096  # bytes of what a worker printed that are kept, the last ones
_CHUNK, _CHUNKS = 1 << 16, 64  # bytes at once, and how often before others have their turn
_LAST_WORDS = 1.0  # seconds for a process that hangs to say where
_ENVIRONMENT = {
    # One thread a worker: threads of a matrix library split sums by their number, and results would differ with it.
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    # Every case is compiled anew: an artifact that is kept serves nobody, and keeping thousands takes longer than many a case.
    "TILEFW_CACHE": "0",
}


class Worker:
    """A started process; it says `ready` or `refused` when it has read `opening`."""

    def __init__(self, opening: OpenSession) -> None:
        self.began = time.monotonic()
        self.printed = b""
        self._unread = b""
        self.answers, theirs = os.pipe()
        self.output, printed = os.pipe()
        for end in (self.answers, self.output):
            os.set_blocking(end, False)
        try:
            # -P keeps the current folder off the path; our own path goes along, so that the child finds what we would find. A
            # group of its own: Ctrl-C is the suite's to act on, and what a plugin started ends with the worker.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tilefw_conformance.workers.child", str(theirs)],
                stdin=subprocess.PIPE, stdout=printed, stderr=printed, pass_fds=(theirs,), start_new_session=True,
                env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        finally:
            os.close(theirs)
            os.close(printed)
        self.pid = self._process.pid
        self.send(opening)

    def send(self, message: Message) -> None:
        """To a worker that has ended, nothing is sent: that it ended is seen when it does not answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(encode(message))
            self._process.stdin.flush()

    def read(self) -> Iterator[Message]:
        """What it said since; raises ProtocolError where that is not a message."""
        for piece in _pieces(self.answers):
            self._unread += piece
            if len(self._unread) > LINE_LIMIT:
                raise ProtocolError(f"more than {LINE_LIMIT} bytes without an end of line")
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            yield decode(line)

    def drain(self) -> None:
        """Take what it printed, so that it is not held up by a full pipe, and keep the end of that."""
        for piece in _pieces(self.output):
            self.printed = (self.printed + piece)[-OUTPUT_LIMIT:]

    @property
    def ended(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def resident(self) -> int | None:
        """Bytes of memory that it holds, None where the system does not tell (no /proc).

        Not a limit of the system on its address space: cases with large strides reserve far more than they ever touch.
        """
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return None

    def interrogate(self) -> None:
        """End it in the way that makes it print where it is: `faulthandler` answers an abort with every thread's stack."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGABRT)
        deadline = time.monotonic() + _LAST_WORDS
        while self.ended is None and time.monotonic() < deadline:
            self.drain()
            time.sleep(0.01)

    def kill(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self.drain()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        for end in (self.answers, self.output):
            os.close(end)

    def words(self) -> str:
        """The end of what it printed, as text."""
        return self.printed.decode("utf-8", "backslashreplace").strip()


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended by itself with status {status}"
    try:
        return f"was ended by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was ended by signal {-status}"


def _pieces(end: int) -> Iterator[bytes]:
    """What a pipe holds now; of a process that writes without a pause, some of it."""
    with contextlib.suppress(BlockingIOError):
        for _ in range(_CHUNKS):
            if piece := os.read(end, _CHUNK):
                yield piece
            else:
                return
