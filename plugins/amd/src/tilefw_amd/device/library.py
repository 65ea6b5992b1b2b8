"""Where the HIP runtime library is, and whether it is new enough."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator
from importlib.util import find_spec

from tilefw.api import UnsupportedError
from tilefw.api.hardware import DriverError, DriverLibrary, find
from tilefw_amd.device.interface import HIP

FILE = "libamdhip64.so"
# The first version whose properties of a device have the layout that `properties.py` reads (ROCm 6.0 release notes).
FIRST_VERSION = (6, 0)
# Packages of Python that bring the library: PyTorch's wheels, and AMD's own.
_PACKAGES = ("torch", "_rocm_sdk_core")

Version = tuple[int, int, int]


def candidates() -> Iterator[str]:
    """Where the library may be, the best first: the one that this process has already, since two do not know each other's
    memory."""
    yield from _loaded()
    for package in _PACKAGES:
        try:
            spec = find_spec(package)
        except ValueError:  # a module of that name that came from no file
            continue
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield from _in_folder(os.path.join(folder, "lib"))
    yield from (f"{FILE}.7", f"{FILE}.6", FILE)
    yield from _in_folder(os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), "lib"))


def _loaded() -> Iterator[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            found = [line.split(maxsplit=5)[5].rstrip("\n") for line in maps if f"/{FILE}" in line]
    except (OSError, IndexError):
        return
    yield from dict.fromkeys(found)


def _in_folder(folder: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name == FILE or name.startswith(f"{FILE}."))


@functools.cache
def opened(path: str) -> DriverLibrary:
    """The library in that file, once a process; raises UnsupportedError TFW0604, and TFW0605 where functions are missing."""
    return DriverLibrary(HIP, path)


def library() -> DriverLibrary:
    """The library of this machine; raises UnsupportedError TFW0604 where there is none, TFW0605 where it is too old."""
    found = opened(find(HIP, candidates()))
    try:
        said = version(found)
    except DriverError as error:
        raise UnsupportedError(
            f"the HIP runtime library does not tell its version: {error}", code="TFW0605", note=f"the library is {found.path}",
        ) from None
    if said[:2] < FIRST_VERSION:
        raise too_old(said, FIRST_VERSION, found.path)
    return found


def version(found: DriverLibrary) -> Version:
    """HIP's version: major * 10^7 + minor * 10^5 + patch (`hip_version.h`)."""
    number = ctypes.c_int()
    found.call("hipRuntimeGetVersion", ctypes.byref(number))
    return number.value // 10_000_000, number.value // 100_000 % 100, number.value % 100_000


def shown(said: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, said))


def too_old(said: tuple[int, ...], first: tuple[int, int], path: str, what: str = "") -> UnsupportedError:
    """The error for a library of a version before `first`; `what` needs a newer one."""
    return UnsupportedError(
        f"HIP {shown(said)} is too old{f' for {what}' if what else ''}: {shown(first)} or newer is needed", code="TFW0605",
        note=f"the library is {path}", help=f"install ROCm {shown(first)} or newer, or name another library in {HIP.variable}",
    )
