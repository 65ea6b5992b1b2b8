"""SharedLibrary: code that an outside compiler made, loaded into this process from its bytes."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from tilefw.api.errors import CodeError


class SharedLibrary:
    """The functions of a library; those of entries are called `prefix` and the entry's name. Raises CodeError TFW0702, also
    where it has no such function."""

    def __init__(self, data: bytes, prefix: str = "") -> None:
        self._prefix = prefix
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernel.so")
            file.write_bytes(data)
            try:
                self._library = ctypes.CDLL(str(file))
            except OSError as error:
                raise CodeError(f"the kernel's library cannot be loaded: {error}", code="TFW0702") from None

    def address(self, name: str) -> int:
        """Where the function of an entry begins."""
        try:
            function = getattr(self._library, self._prefix + name)
        except AttributeError:
            raise CodeError(f"the kernel's library has no function '{self._prefix}{name}'", code="TFW0702") from None
        return ctypes.cast(function, ctypes.c_void_p).value or 0
