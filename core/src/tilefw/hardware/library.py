"""A vendor's driver library, opened with ctypes: where it is looked for, which functions it must have, and their status codes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilefw.api.errors import UnsupportedError
from tilefw.hardware.failures import DriverError, Failure


@dataclass(frozen=True, slots=True)
class Interface:
    """What is asked of a library.

    `product` is what people call it, `variable` the environment variable that names its file, `functions` its functions that give a
    status (0: success) with the types of their parameters, of which older libraries may lack those that are `optional`. `texts` are
    those that give the text of a status: they return it, or with `text_through_pointer` write its address to their second
    parameter. `failures` says what a status means for a launch; any other one is `other`.
    """

    product: str
    variable: str
    functions: Mapping[str, Sequence[Any]]
    texts: Sequence[str]
    failures: Mapping[int, Failure]
    text_through_pointer: bool = False
    optional: frozenset[str] = frozenset()


class DriverLibrary:
    """An open library with all functions of its interface; `call` raises DriverError for a status that is not success."""

    def __init__(self, interface: Interface, path: str) -> None:
        """Raises UnsupportedError TFW0604 where the file cannot be opened, TFW0605 where functions are missing."""
        self.interface = interface
        self.path = path
        self._library = _opened(interface, [path])[0]
        self._functions = {name: self._function(name, types) for name, types in interface.functions.items()}
        self._texts = [self._text_function(name) for name in interface.texts]
        needed = [name for name in (*interface.functions, *interface.texts) if name not in interface.optional]
        missing = [name for name in needed if not hasattr(self._library, name)]
        if missing:
            raise UnsupportedError(
                f"{path} is not a {interface.product} that can be used: it lacks {', '.join(missing)}", code="TFW0605",
                help=f"install a newer {interface.product}, or name its file in {interface.variable}",
            )

    def _function(self, name: str, types: Sequence[Any]) -> Callable[..., int] | None:
        found = getattr(self._library, name, None)
        if found is not None:
            found.argtypes, found.restype = list(types), ctypes.c_int
        return found

    def _text_function(self, name: str) -> Callable[[int], bytes | None] | None:
        found = getattr(self._library, name, None)
        if found is None:
            return None
        if not self.interface.text_through_pointer:
            found.argtypes, found.restype = [ctypes.c_int], ctypes.c_char_p
            return found
        found.argtypes, found.restype = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)], ctypes.c_int

        def text(status: int) -> bytes | None:
            words = ctypes.c_char_p()
            return None if found(status, ctypes.byref(words)) else words.value

        return text

    def function(self, name: str) -> Callable[..., int]:
        """A function that gives a status, as it is: for what every launch calls."""
        function = self._functions[name]
        if function is None:
            assert name in self.interface.optional  # else the library was refused
            raise UnsupportedError(
                f"{self.path} lacks {name}", code="TFW0605", help=f"install a newer {self.interface.product}"
            )
        return function

    def status(self, name: str, *args: Any) -> int:
        """The status that the function gives."""
        return self.function(name)(*args)

    def call(self, name: str, *args: Any) -> None:
        """Call a function; raises DriverError."""
        status = self.status(name, *args)
        if status:
            raise self.error(name, status)

    def error(self, name: str, status: int) -> DriverError:
        """What a function's status says, in the library's own words."""
        words = [text.decode("utf-8", "replace") for function in self._texts if function is not None and (text := function(status))]
        return DriverError(name, status, words, self.interface.failures.get(status, "other"))


class TakenBlock(NamedTuple):
    """One block: the `data` of so many bytes, and the `address` of the `extra` array, which `holds` keeps."""

    nbytes: int
    data: Any
    address: int
    holds: object


class LaunchBlock(threading.local):
    """Argument blocks of launches as drivers take them in an `extra` array: key, value, …, end. Each thread has
    one for each size, used again: a launch has read it when its function returns. Who takes one within a launch, as a signal's
    handler may, gets another.

    `keys` are those of the block, of its size, and of the end."""

    def __init__(self, keys: tuple[int, int, int]) -> None:
        self._keys = keys
        self._free: dict[int, TakenBlock] = {}  # by size

    def take(self, arguments: bytes) -> TakenBlock:
        """A block with these bytes."""
        nbytes = len(arguments)
        taken = self._free.pop(nbytes, None) or self._new(nbytes)
        taken.data.raw = arguments
        return taken

    def give_back(self, taken: TakenBlock) -> None:
        """A launch has read it."""
        self._free[taken.nbytes] = taken

    def _new(self, nbytes: int) -> TakenBlock:
        block, nbytes_key, end = self._keys
        size, data = ctypes.c_size_t(nbytes), ctypes.create_string_buffer(max(1, nbytes))
        extra = (ctypes.c_void_p * 5)(block, ctypes.addressof(data), nbytes_key, ctypes.addressof(size), end)
        return TakenBlock(nbytes, data, ctypes.addressof(extra), (size, extra))


def find(interface: Interface, candidates: Iterable[str]) -> str:
    """The file or name of the library: what the interface's variable says, else the first of the `candidates` that opens.

    Raises UnsupportedError TFW0604, with all that was tried."""
    named = os.environ.get(interface.variable)
    return _opened(interface, [named] if named else candidates)[1]


def _opened(interface: Interface, candidates: Iterable[str]) -> tuple[ctypes.CDLL, str]:
    problems = []
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate), candidate
        except OSError as error:
            problems.append(str(error))
    raise UnsupportedError(
        f"no {interface.product} is found", code="TFW0604", note="\n".join(problems) or None,
        help=f"install it, or name its file in {interface.variable}; `executor='sim'` needs none",
    )
