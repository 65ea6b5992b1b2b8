"""Names that Triton keeps outside of its core language.

Triton has a copy of them for each vendor (`tl.extra.<vendor>.libdevice`). There is one here, and every vendor's name leads to it.
"""

from __future__ import annotations

from tilefw.language.extra import libdevice
from tilefw.language.markers import builtin

__all__ = ["libdevice"]


# Order between launches that a chip may overlap. Launches follow one another here, so both functions have nothing to do.


@builtin
def gdc_wait() -> None:
    """Wait until the launch before this one is complete, and its stores can be seen."""
    ...


@builtin
def gdc_launch_dependents() -> None:
    """Let the launch after this one begin."""
    ...


class Vendor:
    """`tl.extra.<vendor>`: the same functions, whatever the vendor."""

    __slots__ = ("__name__",)

    libdevice = libdevice
    gdc_wait = staticmethod(gdc_wait)
    gdc_launch_dependents = staticmethod(gdc_launch_dependents)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"tl.extra.{self.__name__}"


def __getattr__(name: str) -> Vendor:
    if name.startswith("_"):
        raise AttributeError(f"tilefw.language.extra has no name {name!r}")
    return Vendor(name)
