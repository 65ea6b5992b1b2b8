"""What runs on nodes: a program with parameters as a kernel of the library has, and what a run of one is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tilefw.kernels.index import KernelInfo, ParameterInfo
from tilefw.tile.reference.accuracy import Comparison

MEMORY = ParameterInfo(
    "memory", "coherent", "whether loads return what was stored last, or what the chip's memory model allows as well",
    ("coherent", "weak"),
)
WEAK_MEMORY = "weak_memory"
RACES = "races"


class Stand(Protocol):
    """Where a program runs: one target, one seed."""

    seed: int

    def node(self, ranks: int) -> Any:
        """A new node of the target's devices (`tilefw.node`). Raises UnsupportedError TFW0873 where the target makes none."""
        ...

    def makes(self, check: str) -> bool:
        """Whether the target's executor makes a check of launches at once."""
        ...

    def checking(self, *checks: str) -> Any:
        """Launches in the `with` block make these checks beside those that the user asked for. Raises UnsupportedError TFW0873 for
        one that the target's executor does not make."""
        ...


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """`run(stand, parameters)` makes launches on nodes, and says by the name of each result how far off it is."""

    info: KernelInfo
    run: Callable[[Stand, Mapping[str, Any]], Mapping[str, Comparison]]
