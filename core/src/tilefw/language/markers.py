"""How a function of the language is marked: it has a signature and a docstring here, and its meaning in the front end.

A builtin's body is never run. Inside a kernel the front end finds the function by its `__tilefw_builtin__` name; outside
of one, calling it says so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from tilefw.api.errors import CompileError

# Who carries functions of the language out while a kernel stands still in a debugger: then they may be tried at its prompt.
STANDING_KERNEL: ContextVar[Callable[..., Any] | None] = ContextVar("tilefw_standing_kernel", default=None)

F = TypeVar("F", bound=Callable[..., Any])


def builtin(function: F) -> F:
    """Mark a function of the language; its name for the front end is the function's own."""
    return _named(function, function.__name__)


def library(function: F) -> F:
    """Mark a function of `tl.extra.libdevice`, whose names collide with those of `tl` but whose type rules differ."""
    return _named(function, f"libdevice.{function.__name__}")


def distributed(function: F) -> F:
    """Mark a function of `tilefw.language.distributed`, of which several have a name that `tl` has too."""
    return _named(function, f"distributed.{function.__name__}")


def method(owner: str) -> Callable[[F], F]:
    """Mark a method of a class of the language, whose values the front end has; its name is the class's and its own."""
    return lambda function: _named(function, f"{owner}.{function.__name__}")


def on_host(function: F) -> F:
    """Mark a function of the language that runs while kernels are compiled: its body is its meaning."""
    function.__tilefw_on_host__ = True  # type: ignore[attr-defined]
    return function


def _named(function: F, name: str) -> F:
    @functools.wraps(function)
    def outside(*args: Any, _semantic: Any = None, **keywords: Any) -> Any:
        # A Python function that runs while a kernel is compiled hands on what builds there.
        builds = _semantic or STANDING_KERNEL.get()
        if builds is not None:
            return builds(outside, args, keywords)
        raise CompileError(
            f"tl.{name} has a meaning only inside a kernel",
            "TFW0113",
            help="call it from a function decorated with @tilefw.jit",
        )

    outside.__tilefw_builtin__ = name  # type: ignore[attr-defined]
    return cast(F, outside)
