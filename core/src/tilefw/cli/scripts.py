"""Python files that a user names: run as a program, or for one function in it."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from typing import Any

from tilefw.api.errors import InternalError, KernelError, UsageError
from tilefw.runtime.names import suggest


def run_program(path: str, arguments: list[str]) -> int:
    """Run a file as `python FILE arguments…` would; an exception of the program's own shows its own traceback and is exit 1."""
    _readable(path)
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [path, *arguments], os.path.dirname(os.path.abspath(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except (KernelError, InternalError):
        raise
    except Exception as error:
        _print_traceback(error, path)
        return 1
    finally:
        sys.argv, sys.path[0] = before
    return 0


def function(path: str, name: str) -> Any:
    """The function called `name` in a Python file, where `import triton` means tilefw; raises UsageError TFW0916."""
    _readable(path)
    from tilefw.triton.importing import in_tritons_place

    before = [*sys.path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        with in_tritons_place():
            namespace = runpy.run_path(path)
    except (KernelError, InternalError):
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} does not run as Python: {type(error).__name__}: {error}", code="TFW0916") from None
    finally:
        sys.path[:] = before
    if name not in namespace:
        kernels = [n for n, value in namespace.items() if hasattr(value, "cache_key_source")]
        raise UsageError(f"{path} has no '{name}'", code="TFW0916", help=suggest(name, kernels, what="kernels"))
    return namespace[name]


def _readable(path: str) -> None:
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path}", code="TFW0930")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read: permission denied", code="TFW0930")


def _print_traceback(error: Exception, path: str) -> None:
    """The traceback from the program's own first frame on, as Python itself would show it."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename not in (path, os.path.abspath(path)):
        frames = frames.tb_next
    sys.stderr.write("".join(traceback.format_exception(type(error), error, frames)))
