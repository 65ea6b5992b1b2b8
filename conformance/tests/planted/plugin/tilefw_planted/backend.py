"""The backend of every planted target: one rewrite of tile IR, then what the reference backend does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.api.artifact import Artifact
from tilefw.api.backend import CompileOptions
from tilefw.tile.reference_backend import ReferenceBackend
from tilefw_planted.bug import Bug
from tilefw_planted.table import BUGS


class PlantPass(ModulePass):
    """Plants one bug at each of its sites."""

    name = "plant-bug"

    def __init__(self, bug: Bug) -> None:
        self.bug = bug

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for site in self.bug.sites(op):
            self.bug.plant(site)


class Planted(ReferenceBackend):
    """The bug is that of the target's name; without one, the artifact's metadata name the bugs that could be planted."""

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        bug = BUGS.get(self.target.chip)
        return () if bug is None else (PlantPass(bug),)

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        artifact = super().emit(module, options)
        if self.target.chip in BUGS:
            return artifact
        sites = tuple(bug.name for bug in BUGS.values() if bug.sites(module))
        return replace(artifact, metadata={**artifact.metadata, "sites": sites})
