"""A target that emits nothing but the lowered text: with it a kernel goes through all of core where no plugin is installed.

A plugin in one file, on `tilefw.api` alone. It has no executor, so what it proves is the way to an artifact: discovery,
front end, tile passes, entries, cache. Register it as any plugin, under the name `null`:

    [project.entry-points."tilefw.backends"]
    null = "tilefw.testing.null_backend"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import Artifact, Backend, CompileOptions, TargetInfo, hookimpl

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass

TILEFW_API = (0, 1)

TARGET = TargetInfo(
    name="null-text",
    vendor="null",
    chip="text",
    summary="no chip: the lowered tile IR as text",
    backend="tilefw.testing.null_backend:NullBackend",
    provides=frozenset({"lower", "emit"}),
)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    return (TARGET,)


class NullBackend(Backend):
    """Lowers nothing and prints what it gets."""

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        from tilefw.api.ir import FuncOp, entry_of, with_locations

        entries = tuple(entry_of(op) for op in module.body.block.ops if isinstance(op, FuncOp))
        return Artifact(self.target.name, "tile", with_locations(module), entries)
