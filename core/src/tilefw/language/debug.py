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
def device_print(prefix: str, *args: Any, hex: bool = False) -> None:
    """Print a line for each element of `args` after the launch: `pid (0, 0, 0) idx (  5) x: 1.500000`; without any, the text alone.

    `prefix` is a string of ASCII. `hex` writes integers and floats in base 16. Python's `print` means the same. Lines are in the
    order of the programs, each program's in the order in which it prints.
    """
    ...


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """A check that only debug builds make: `@tilefw.jit(debug=True)`, `debug=True` at a launch, or TRITON_DEBUG=1.

    Where an element of `cond` is false, and `mask` is true, the program gives up, and the launch reports it with its line. Without
    a debug build it is nothing. A run-time `assert` means the same.
    """
    ...
