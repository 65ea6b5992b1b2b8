"""`tl.core.builtin` and `tl.core.extern`: marks of Python that builds Triton's own IR while a kernel is compiled.

There is none of that IR here. A module that has such functions beside its kernels is imported; a call of one is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tilefw.api.errors import UnsupportedError


class CompilerExtension:
    """A function under such a mark."""

    # Kernels may read what is marked so; a call then comes here.
    __tilefw_constexpr_function__ = True
    __tilefw_on_host__ = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.fn = function
        self.__name__: str = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(
            f"`{self.__name__}` extends Triton's compiler (`tl.core.builtin`), and tilefw has none of Triton's IR", "TFW0103",
            help="write it as a jit function",
        )


builtin = extern = CompilerExtension
