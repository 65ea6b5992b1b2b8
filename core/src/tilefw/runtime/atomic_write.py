"""A file is replaced whole or not at all: who reads it meanwhile, or after an interruption, has the old one."""

from __future__ import annotations

import os
import threading
from contextlib import suppress


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Replace the file at `path` by `content` (text as UTF-8 with `\\n`); raises OSError, and leaves nothing behind then."""
    draft = f"{os.fspath(path)}.{os.getpid()}.{threading.get_ident()}.partial"
    try:
        with open(draft, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
