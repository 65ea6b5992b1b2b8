"""Names that Triton keeps outside of its core language.

Triton has a copy of them for each vendor (`tl.extra.<vendor>.libdevice`). There is one here, and every vendor's name leads to it.
"""

from __future__ import annotations

from tilefw.language.dtypes import dtype
from tilefw.language.extra import libdevice
from tilefw.language.markers import builtin
from tilefw.language.tensor import tensor

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


# What the machine knows while a kernel runs. No program determines it, so the reference gives numbers of its own.


@builtin
def globaltimer() -> tensor:
    """Nanoseconds since some moment, int64, one reading for the program; all programs of a launch have one clock."""
    ...


@builtin
def memrealtime() -> tensor:
    """Ticks of the chip's clock of constant frequency, int64; how long one is depends on the chip."""
    ...


@builtin
def smid() -> tensor:
    """The number of the processor that runs the program, int32: a multiprocessor or a compute unit.

    On a chip of several dies it may be unique within one die alone."""
    ...


# What it runs a program on, known when the kernel is compiled.


@builtin
def num_warps() -> int:
    """How many warps, or waves, a program has: a compile-time value. The reference and chips without lanes have none."""
    ...


@builtin
def num_threads() -> int:
    """How many lanes all warps of a program have: a compile-time value."""
    ...


@builtin
def convert_custom_float8(arg: tensor, dst_ty: dtype, fp_downcast_rounding: str | None = None) -> tensor:
    """A cast from or to `tl.float8e4b15`: `arg.to(dst_ty)`."""
    ...


class Vendor:
    """`tl.extra.<vendor>`: the same functions, whatever the vendor."""

    __slots__ = ("__name__",)

    libdevice = libdevice
    gdc_wait = staticmethod(gdc_wait)
    gdc_launch_dependents = staticmethod(gdc_launch_dependents)

    globaltimer = staticmethod(globaltimer)
    memrealtime = staticmethod(memrealtime)
    smid = staticmethod(smid)

    num_warps = staticmethod(num_warps)
    num_threads = staticmethod(num_threads)
    convert_custom_float8_sm70 = convert_custom_float8_sm80 = staticmethod(convert_custom_float8)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"tl.extra.{self.__name__}"


def __getattr__(name: str) -> Vendor:
    if name.startswith("_"):
        raise AttributeError(f"tilefw.language.extra has no name {name!r}")
    return Vendor(name)
