"""Gluon's names, `triton.experimental.gluon`: programs import them beside Triton's language, and are told only where they use one.

Any name is there. It may be read, annotate and decorate; a call of it, or a launch of what it decorates, says that tilefw has no
Gluon.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NoReturn

from tilefw.api.errors import UnsupportedError
from tilefw.language import constexpr
from tilefw.runtime.jit import constexpr_function

__all__ = ["AbsentKernel", "AbsentName", "constexpr", "constexpr_function", "jit"]

__path__: list[str] = []  # what is below is found by Triton's finder


class AbsentName:
    """A name of Gluon's, and below it any other."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> AbsentName:
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentName(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        refuse(self.__name__)


class AbsentKernel:
    """A function under `gluon.jit`."""

    def __init__(self, function: Any) -> None:
        self.fn = function
        self.__name__: str = function.__name__
        self.arg_names = list(inspect.signature(function).parameters)  # for `triton.heuristics` and `triton.autotune` above it

    def __getitem__(self, grid: Any) -> NoReturn:
        self.run(grid=grid)

    def run(self, *_: Any, **__: Any) -> NoReturn:
        refuse(f"{self.__name__}, a kernel under gluon.jit")

    warmup = run

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        refuse(f"{self.__name__}, a function under gluon.jit")


def jit(function: Any = None, **_: Any) -> Any:
    """`gluon.jit`, with options or without: the function can be imported, not launched."""
    return jit if function is None else AbsentKernel(function)


def refuse(name: str) -> NoReturn:
    """Says that Gluon is absent."""
    raise UnsupportedError(f"tilefw has no Gluon: {name}", "TFW0103", help="write the kernel in Triton's language")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "language":  # as `import …gluon.language` gives it
        return sys.modules[__name__]
    return AbsentName(f"gluon.{name}")
