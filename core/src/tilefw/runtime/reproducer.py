"""A bug of ours becomes a file: what was being done, with which versions, the traceback, and the input that shows it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from tilefw.api.errors import InternalError
from tilefw.runtime import config


def internal(doing: str, error: BaseException, facts: Mapping[str, object], text: str = "") -> NoReturn:
    """Raise InternalError for `error`, which arose while `doing`, with the path of a reproducer that holds `text`."""
    path = write(doing, error, facts, text)
    raise InternalError(f"{doing}: {type(error).__name__}: {error}", path) from error


def write(doing: str, error: BaseException, facts: Mapping[str, object], text: str = "") -> str | None:
    """The path of the file written, or None where no folder can be written.

    The head is comments in the manner of IR text (`//`), so that a reproducer that holds a module is itself a module:
    `tilefw opt FILE` and `tilefw compile FILE --target T` take it as it is.
    """
    from importlib.metadata import version

    head = [f"tilefw {version('tilefw-core')}, Python {platform.python_version()}, {sys.platform}", f"while: {doing}"]
    head += [f"{name}: {value}" for name, value in facts.items()]
    head += "".join(traceback.format_exception(error)).splitlines()
    content = "\n".join(f"// {line}" for line in head) + "\n" + text
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.mlir"
    state = config.state_directory()
    for folder in ([state / "reproducers"] if state else []) + [Path(tempfile.gettempdir())]:
        path = folder / f"tilefw-{name}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return str(path)
    return None
