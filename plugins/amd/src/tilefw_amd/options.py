"""The launch keywords that this target takes beside those of every target: what each means, and which values it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import LaunchError

if TYPE_CHECKING:
    from tilefw.api import CompileOptions


@dataclass(frozen=True, slots=True)
class Option:
    """`values` says in words what `takes` accepts."""

    text: str
    values: str
    takes: Callable[[int], bool]
    default: int = 0


# The last three are Triton's for HIP; kernels that are tuned for it pass them.
OPTIONS: Mapping[str, Option] = {
    "xcd_chunk": Option(
        "so many programs with consecutive ids (a power of two) run on one die (XCD) and share its L2; 0: programs are dealt to "
        "the dies one by one, as the hardware does it",
        "0 or a power of two up to 65536", lambda n: 0 <= n <= 1 << 16 and n & n - 1 == 0,
    ),
    "waves_per_eu": Option(
        "a lane gets so few registers that this many waves fit on a SIMD; 0: as many registers as a workgroup can have",
        "0 to 8", lambda n: 0 <= n <= 8,
    ),
    "matrix_instr_nonkdim": Option(
        "rows and columns of the matrix instructions, where there is such a one for the types; 0: those that cost least",
        "0, 16 or 32", lambda n: n in (0, 16, 32),
    ),
    "kpack": Option(
        "taken for Triton's sake, of no effect: how k lies in a lane's registers follows from the widest accesses to LDS",
        "1 or 2", lambda n: n in (1, 2), 1,
    ),
}


def chosen(options: CompileOptions) -> dict[str, int]:
    """The value of every option; raises LaunchError TFW0321 for one that it does not have."""
    return {name: _checked(name, option, options.extra.get(name, option.default)) for name, option in OPTIONS.items()}


def _checked(name: str, option: Option, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not option.takes(value):
        raise LaunchError(f"{name} is {option.values}, not {value!r}", code="TFW0321", note=f"{name}: {option.text}")
    return value
