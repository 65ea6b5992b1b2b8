"""A file is written whole or not at all: who reads it meanwhile, or after an interruption, has the old one."""

from __future__ import annotations

import os
from contextlib import suppress


def write(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file at `path`; raises OSError, and leaves nothing behind then."""
    temporary = f"{os.fspath(path)}.{os.getpid()}.partial"
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
