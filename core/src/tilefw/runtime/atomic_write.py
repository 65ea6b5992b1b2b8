"""A file is replaced whole or not at all: who reads it meanwhile, or after an interruption, has the old one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Replace the file at `path` by `content` (text as UTF-8 with `\n`); raises OSError, and leaves nothing behind then."""
    write_parts(path, [content.encode() if isinstance(content, str) else content])


def write_parts(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """As `write`, of content that comes in parts."""
    draft = f"{os.fspath(path)}.{os.getpid()}.{threading.get_ident()}.partial"
    try:
        with open(draft, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
