"""`breakpoint()` in a kernel: pdb in the kernel's frame, which steps through kernels and not through what carries them out."""

from __future__ import annotations

import os
import pdb
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from tilefw.debug.rewritten import HOOKS

_OWN = __name__.rpartition(".")[0]


class KernelDebugger(pdb.Pdb):
    """Python's debugger, to which a call in a kernel is one step unless it is of another jit function."""

    def stop_here(self, frame: FrameType) -> bool:
        return not _hidden(frame) and super().stop_here(frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        stack, index = super().get_stack(f, t)
        here = stack[index][0]
        shown = [entry for entry in stack if entry[0] is here or not _hidden(entry[0])]
        return shown, next(i for i, entry in enumerate(shown) if entry[0] is here)


def _hidden(frame: FrameType) -> bool:
    """Whether a frame is neither a kernel's nor the user's: it carries out a kernel's operation, or is called by what does."""
    if HOOKS in frame.f_globals:
        return False
    above: FrameType | None = frame
    while above is not None:
        if str(above.f_globals.get("__name__")).startswith(_OWN):
            return True
        above = None if HOOKS in above.f_globals else above.f_back
    return str(frame.f_globals.get("__name__")).startswith("tilefw.runtime")  # the launch


@contextmanager
def kernel_stops() -> Iterator[None]:
    """`breakpoint()` stops so where nobody has chosen another debugger, by `sys.breakpointhook` or PYTHONBREAKPOINT."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = _stop
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__


def _stop(*args: Any, **keywords: Any) -> None:
    KernelDebugger().set_trace(sys._getframe(1))
