"""Kernels written for Triton-distributed, on a simulated node: those of a checkout as they are, over stand-ins for its language.

`open_checkout(root).kernels(file)` has a file's kernels, which a node launches. The library compiles with a fork of Triton and
links device code of NVSHMEM, rocSHMEM or MORI; here its primitives are functions over `tilefw.language.distributed`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import tilefw
import tilefw.language as tl
from tilefw.triton.absent import StandInModule
from tilefw.triton.checkout import Checkout
from tilefw.triton.triton_dist import language, language_extra, libshmem_device
from tilefw.triton.triton_dist.threads import COUNT, over_threads

PACKAGE = Path("python", "triton_dist")
"""Where a checkout has it."""

_AHEAD = ("aot_compile_spaces",)  # a decorator that says for what to compile ahead, by code of the host
_LANGUAGE = ("wait", "consume_token", "rank", "num_ranks", "symm_at", "notify")


def open_checkout(root: Path) -> Checkout:
    """The kernels of a checkout. Raises CodeError TFW0780 for a file that cannot be read, or that has none."""
    return Checkout({"triton_dist": root / PACKAGE}, stand_ins(), over_threads, {COUNT: language_extra.THREADS}, _AHEAD)


def stand_ins() -> dict[str, ModuleType]:
    """By name, the modules that kernels import and that we have instead."""
    extra = {name: getattr(language_extra, name) for name in language_extra.NAMES}
    made: dict[str, dict[str, Any]] = {
        "triton_dist": {"jit": tilefw.jit},
        "triton_dist.language": {name: getattr(language, name) for name in _LANGUAGE},
        "triton_dist.language.core": {},
        "triton_dist.tools": {},
        "triton_dist.tune": {"autotune": _undecorated},
    }
    for home in ("language_extra", "cuda.language_extra", "hip.language_extra"):
        made[f"triton_dist.language.extra.{home}"] = extra
    for home in ("libshmem_device", "cuda.libnvshmem_device", "hip.librocshmem_device", "hip.libmori_shmem_device"):
        made[f"triton_dist.language.extra.{home}"] = libshmem_device.NAMES
        made[f"triton.language.extra.{home}"] = libshmem_device.NAMES
    for package in ("triton_dist.language.extra", "triton_dist.language.extra.cuda", "triton_dist.language.extra.hip"):
        made[package] = {}
    # Triton's own releases have this function in `triton` alone; the library's fork has it here too.
    made["triton.language"] = {**{name: getattr(tl, name) for name in dir(tl)}, "constexpr_function": tilefw.constexpr_function}
    modules: dict[str, ModuleType] = {name: StandInModule(name, names) for name, names in made.items()}
    for name, module in modules.items():
        home, _, word = name.rpartition(".")
        if home in modules:
            vars(modules[home])[word] = module
    return modules


def _undecorated(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator that says what to choose of: launches name their choice here."""
    return lambda kernel: kernel
