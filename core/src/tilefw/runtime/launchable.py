"""A launch whose code and arguments are ready, before it is made or after: what it takes to run it, or a part of it, once more."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.artifact import Entry
from tilefw.runtime import config
from tilefw.runtime.arguments.binding import Bound
from tilefw.runtime.compilation import compiler
from tilefw.runtime.plugins.loader import Target


@dataclass(frozen=True, slots=True)
class Launchable:
    """One launch of a kernel on a target, not made yet. `block` and `dynamic_shared`: what the machine code does not say itself."""

    name: str
    target: Target
    resolved: config.Resolved
    compiled: compiler.CompiledArtifact
    entry: Entry
    grid: tuple[int, int, int]
    args: list[Bound]
    block: tuple[int, int, int] | None = None
    dynamic_shared: int | None = None
