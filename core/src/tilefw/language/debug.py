"""What runs while the kernel is compiled, and the checks of debug builds."""

from __future__ import annotations

from typing import Any

from tilefw.language.markers import builtin


@builtin
def static_assert(cond: Any, msg: Any = "") -> None:
    """Stop the compilation with `msg` unless the constexpr `cond` is true; `msg` is evaluated only then."""
    ...


@builtin
def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Print constexpr values while the kernel is compiled; tensors print as their type."""
    ...


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """A check that only debug builds make: `@tilefw.jit(debug=True)`, `debug=True` at a launch, or TRITON_DEBUG=1.

    Where an element of `cond` is false, and `mask` is true, the program gives up, and the launch reports it with its line. Without
    a debug build it is nothing. A run-time `assert` means the same.
    """
    ...
