"""Where the CUDA driver library is, and whether it is new enough."""

from __future__ import annotations

import ctypes
import functools

from tilefw.api import UnsupportedError
from tilefw.api.hardware import DriverError, DriverLibrary, find
from tilefw_nvidia.chips.chip import Chip
from tilefw_nvidia.device.interface import CUDA

# One file serves a process, and it comes with the kernel's driver, never with a Python package. The second is where the Windows
# Subsystem for Linux has it, outside the loader's folders ("CUDA on WSL User Guide").
CANDIDATES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so")

Version = tuple[int, int]


@functools.cache
def opened(path: str) -> DriverLibrary:
    """The library in that file, once a process; raises UnsupportedError TFW0604, and TFW0605 where functions are missing."""
    return DriverLibrary(CUDA, path)


def library() -> DriverLibrary:
    """The library of this machine; raises UnsupportedError TFW0604 where there is none, TFW0605 where functions are missing."""
    return opened(find(CUDA, CANDIDATES))


def version(found: DriverLibrary) -> Version:
    """The version of CUDA that the driver supports: 1000 * major + 10 * minor ("CUDA Driver API", cuDriverGetVersion).

    Raises UnsupportedError TFW0605 where the library does not tell."""
    number = ctypes.c_int()
    try:
        found.call("cuDriverGetVersion", ctypes.byref(number))
    except DriverError as error:
        raise UnsupportedError(
            f"the CUDA driver library does not tell its version: {error}", code="TFW0605", note=f"the library is {found.path}",
        ) from None
    return number.value // 1000, number.value % 1000 // 10


def first_cuda(chip: Chip) -> Version:
    """The first CUDA whose driver compiles our PTX for the chip: CUDA 11.0 came with PTX 7.0, 12.0 with 8.0, and each minor version
    with one more (PTX ISA, "PTX Release History")."""
    major, minor = chip.first_version
    return major + 4, minor


def shown(said: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, said))


def too_old(said: tuple[int, ...], chip: Chip, path: str) -> UnsupportedError:
    """The error for a driver that does not know the PTX of the chip."""
    first = shown(first_cuda(chip))
    return UnsupportedError(
        f"the driver supports CUDA {shown(said)}, which is too old for {chip.name}: {first} or newer is needed", code="TFW0605",
        note=f"the library is {path}", help="install a newer driver of NVIDIA's; `nvidia-smi` shows what it supports",
    )
