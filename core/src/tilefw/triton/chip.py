"""The chosen target in the words of Triton and PyTorch.

A target that Triton has no name for, the reference or a machine without lanes, answers as the GPU that most programs were written
for, so that they choose configurations at all: PROXY.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilefw.api.errors import UsageError
from tilefw.runtime.names import suggest


@dataclass(frozen=True)
class GPUTarget:
    """Triton's words for a chip: `backend` (`"cuda"`, …), `arch` (80, …), `warp_size` in lanes."""

    backend: str
    arch: int | str
    warp_size: int


PROXY = GPUTarget("cuda", 80, 32)
# What a program reads of a chip whose plugin does not say it.
_UNSAID = {"shared_bytes": 64 << 10, "registers_per_processor": 1 << 16, "threads_per_workgroup": 1024, "processors": 1}


def current_target() -> GPUTarget:
    """The chosen target in Triton's words."""
    info = target_info()
    if info.triton is None:
        return PROXY
    return GPUTarget(info.triton.backend, info.triton.arch, info.limits.get("lanes", PROXY.warp_size))


def limits() -> dict[str, int]:
    """The numbers of the chosen target (`TargetInfo.limits`), each of them there."""
    info = target_info()
    return {**_UNSAID, "lanes": current_target().warp_size, **info.limits}


def summary() -> str:
    """The chosen target's name and chip, as a device's name."""
    info = target_info()
    return f"tilefw {info.name} ({info.chip})"


def target_info() -> Any:
    from tilefw.runtime.config import resolve
    from tilefw.runtime.plugins.loader import find_target

    return find_target(resolve().target).info


def max_shared_mem(device: int = 0) -> int:
    """Bytes of shared memory that a workgroup can have."""
    return limits()["shared_bytes"]


def threads_per_processor() -> int:
    """Threads that one processor of the chip keeps at a time: two of the largest workgroups where the plugin does not say it."""
    found = limits()
    return found.get("threads_per_processor", 2 * found["threads_per_workgroup"])


def named(words: str) -> str:
    """The target that `words` names: its own name, or Triton's `backend:arch`. Raises UsageError TFW0919."""
    from tilefw.runtime.plugins.listings import targets

    if ":" not in words:
        return words
    known = {f"{t.info.triton.backend}:{t.info.triton.arch}": t.info.name for t in targets() if t.info.triton is not None}
    if words not in known:
        raise UsageError(f"no installed target is Triton's '{words}'", code="TFW0919", help=suggest(words, known, what="chips"))
    return known[words]


def capability() -> tuple[int, int]:
    """The chip's generation as PyTorch tells it: (8, 0) of 80, (9, 4) of a name that ends in `942`."""
    arch = current_target().arch
    if isinstance(arch, int):
        return divmod(arch, 10)
    digits = [int(c) for c in arch if c.isdigit()]
    return (digits[0], digits[1]) if len(digits) > 1 else (0, 0)
