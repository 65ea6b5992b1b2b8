"""`tl.target_info`: which chip a kernel is compiled for, asked while it is compiled, in Triton's words.

The names are made of Triton's words for chips: `is_cuda()` asks for a backend, `is_hip_NAME()` for the generation of one as well,
and `cuda_capability_geq(8, 9)` for a number of a backend at least so high. A word that no chip has is false.
"""

from __future__ import annotations

from typing import Any

from tilefw.runtime.jit import ConstexprFunction, constexpr_function
from tilefw.triton import chip

__all__ = ["current_target"]

_IS, _AT_LEAST = "is_", "_capability_geq"


@constexpr_function
def current_target() -> chip.GPUTarget:
    """The chosen target in Triton's words."""
    return chip.current_target()


def _is(words: str) -> ConstexprFunction:
    backend, _, generation = words.partition("_")

    @constexpr_function
    def asked() -> bool:
        target = chip.current_target()
        if target.backend != backend:
            return False
        return not generation or str(target.arch).startswith(generation) or generation in chip.target_info().name.split("-")

    return asked


def _at_least(backend: str) -> ConstexprFunction:
    @constexpr_function
    def asked(major: int, minor: int = 0) -> bool:
        target = chip.current_target()
        return target.backend == backend and isinstance(target.arch, int) and target.arch >= major * 10 + minor

    return asked


def __getattr__(name: str) -> Any:
    if name.startswith(_IS) and name.removeprefix(_IS).isidentifier():
        return _is(name.removeprefix(_IS))
    if name.endswith(_AT_LEAST):
        return _at_least(name.removesuffix(_AT_LEAST))
    raise AttributeError(f"tl.target_info has no name {name!r}")
