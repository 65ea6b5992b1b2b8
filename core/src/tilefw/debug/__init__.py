"""`tilefw.debug`: kernels as plain Python, one program after the other, for `breakpoint()`, pdb and `print`.

    with tilefw.debug.eager():
        kernel[grid](…)

Every value has its elements at once, computed as the reference target computes them, bit for bit. Lines are the kernel's own, calls
of other jit functions are calls, and `print(x)` shows the elements of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilefw.debug.eager_launch import EagerLaunch, launched
from tilefw.debug.eager_tile import EagerTile
from tilefw.debug.stops import kernel_stops
from tilefw.runtime.debugged import DEBUGGER

__all__ = ["EagerLaunch", "EagerTile", "eager", "run"]


@contextmanager
def eager(program: int | Sequence[int] | None = None) -> Iterator[None]:
    """Launches inside run eagerly, whatever their target. `program`, such as `3` or `(3, 0)`, is the only one of a grid that
    runs."""
    chosen = (program,) if isinstance(program, int) else None if program is None else tuple(program)
    token = DEBUGGER.set(lambda kernel, given, grid, keywords: launched(kernel, given, grid, keywords, chosen))
    try:
        with kernel_stops():
            yield
    finally:
        DEBUGGER.reset(token)


def run(kernel: Any, grid: Any, *args: Any, program: int | Sequence[int] | None = None, **keywords: Any) -> EagerLaunch:
    """One eager launch: `kernel[grid](*args, **keywords)` inside `eager(program)`."""
    with eager(program):
        return kernel[grid](*args, **keywords)
