"""Constants that are mapped from a file, which another process may cut while they are read: what a processor answers with a signal
is told before.

A file that is replaced, as `tilefw compile` does, keeps its old content for whoever has mapped it. One that is cut in place has no
pages behind its new end, and reading one ends the process (SIGBUS).
"""

from __future__ import annotations

import mmap

from tilefw.api.errors import CodeError


def require_whole(name: str, constant: memoryview) -> None:
    """Raise CodeError TFW0782 where the file that a constant is mapped from has become shorter."""
    source = constant.obj
    if isinstance(source, mmap.mmap) and source.size() < len(source):
        raise CodeError(
            f"the file that has '{name}' was cut from {len(source):,} to {source.size():,} bytes while it was in use",
            code="TFW0782",
            help="write a new file and rename it; `tilefw compile` does so",
        )
