"""Iterators of `for` loops and the wrapper of `while` conditions: they only exist in the head of a loop in a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilefw.api.errors import CompileError


def _outside(name: str) -> CompileError:
    return CompileError(f"tl.{name} has a meaning only in a kernel's for loop", "TFW0113")


class static_range:  # noqa: N801  (Triton's spelling)
    """`for i in tl.static_range(end)` or `(start, end, step)`: unrolled while compiling; `i` and the bounds are constexpr."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None) -> None:
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step

    def __iter__(self) -> Iterator[int]:
        raise _outside("static_range")


class range:  # noqa: N801
    """`for i in tl.range(end)` or `(start, end, step)`: a run-time loop that carries wishes to the compiler.

    Bounds may be run-time integers; a negative step must be constexpr. `num_stages`, `loop_unroll_factor`,
    `disallow_acc_multi_buffer`, `flatten`, `warp_specialize` and `disable_licm` reach the target as attributes of the loop.
    """

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: int | None = None,
        loop_unroll_factor: int | None = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step
        self.wishes = {
            "num_stages": num_stages,
            "loop_unroll_factor": loop_unroll_factor,
            "disallow_acc_multi_buffer": disallow_acc_multi_buffer,
            "flatten": flatten,
            "warp_specialize": warp_specialize,
            "disable_licm": disable_licm,
        }

    def __iter__(self) -> Iterator[Any]:
        raise _outside("range")


class condition:  # noqa: N801
    """`while tl.condition(c, disable_licm=True)`: the condition with a wish to the compiler."""

    def __init__(self, arg1: Any, disable_licm: bool = False) -> None:
        self.condition = arg1
        self.disable_licm = disable_licm
