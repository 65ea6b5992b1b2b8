"""The server behind a stand-in library: for each process that calls it a runtime of its own, which answers call by call."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oracles.standin.streams import CardModel, StatusError

_REQUEST = struct.Struct("<40s Q Q 12Q")
_REPLY = struct.Struct("<QQQ")
_DONE, _READ, _WRITE, _STRING = range(4)
VARIABLE = "STANDIN_SOCKET"


class Process:
    """The memory of the calling process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(min(1 << 20, size - len(data)))
            if not part:
                raise ConnectionError
            data += part
        return bytes(data)

    def read(self, address: int, size: int) -> bytes:
        self._connection.sendall(_REPLY.pack(_READ, address, size))
        return self.receive(size)

    def write(self, address: int, data: bytes) -> None:
        self._connection.sendall(_REPLY.pack(_WRITE, address, len(data)) + data)

    def string(self, address: int) -> str:
        self._connection.sendall(_REPLY.pack(_STRING, address, 0))
        (length,) = struct.unpack("<Q", self.receive(8))
        return self.receive(length).decode()

    def end(self, status: int) -> None:
        self._connection.sendall(_REPLY.pack(_DONE, status, 0))


class StandIn:
    """Cards and a library for the processes that load it while the `with` block lasts.

    `runtime` makes what answers the calls of one process: an object with a method for each function, and the number of the calling
    `thread`. `cards` are those of the machine; `version` is the library's; `failing` gives the status that a function has instead
    of working, by its name. `calls` gathers (function, arguments), `problems` what broke a rule of the interface or of the
    simulator.
    """

    def __init__(
        self, runtime: Callable[[StandIn, Process], Any], cards: Sequence[CardModel], version: tuple[int, ...],
        failing: dict[str, int] | None = None,
    ) -> None:
        self._runtime = runtime
        self.cards, self.version, self.failing = tuple(cards), version, dict(failing or {})
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        self.problems: list[str] = []

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def __enter__(self) -> StandIn:
        self._folder = tempfile.mkdtemp(prefix="standin")
        path = str(Path(self._folder, "socket"))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(path)
        self._listening.listen()
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = path
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        os.environ.pop(VARIABLE)
        if self._before is not None:
            os.environ[VARIABLE] = self._before
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        process = Process(connection)
        runtime = self._runtime(self, process)
        try:
            while True:
                name, thread, count, *words = _REQUEST.unpack(process.receive(_REQUEST.size))
                process.end(self._answer(runtime, name.rstrip(b"\0").decode(), thread, words[:count]))
        except (ConnectionError, OSError):
            pass
        finally:
            connection.close()

    def _answer(self, runtime: Any, name: str, thread: int, words: list[int]) -> int:
        self.calls.append((name, tuple(words)))
        if name in self.failing:
            return self.failing[name]
        function: Any = getattr(runtime, name)
        runtime.thread = thread
        try:
            return function(*words) or 0
        except StatusError as error:
            return error.status
        except (ConnectionError, OSError):
            raise
        except Exception as error:  # a mistake of the stand-in must not look like one of the card
            self.problems.append(f"{name}: {error!r}")
            return 999
