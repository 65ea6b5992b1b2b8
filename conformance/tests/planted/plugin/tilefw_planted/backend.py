"""The backend of every planted target: one rewrite of tile IR, then what the reference backend does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.api.artifact import Artifact
from tilefw.api.backend import CompileOptions
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.reference.backend import ReferenceBackend
from tilefw_planted.bug import Bug, by_row, changed, element, made
from tilefw_planted.table import BUGS

SITES = "planted.sites"


class PlantPass(ModulePass):
    """Plants one bug at each of its sites."""

    name = "plant-bug"

    def __init__(self, bug: Bug) -> None:
        self.bug = bug

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for site in self.bug.sites(op):
            self.bug.plant(site)


class SitesPass(ModulePass):
    """Notes at the module which bugs have sites in it."""

    name = "note-sites"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes[SITES] = ArrayAttr([StringAttr(bug.name) for bug in BUGS.values() if bug.sites(op)])


class UnderflowPass(ModulePass):
    """Makes an approximation below its type's least number a zero, as a machine does: the interpreter keeps it in f64.

    No more than that: whatever takes the rest of the value to its type by way of its bits loses the bound, and what has no bound
    the interpreter rounds nowhere, not even where the kernel casts it to a narrower type.
    """

    name = "underflow-approximations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for site in [site for site in op.walk() if isinstance(site, ElementwiseOp) and site.row.error.kind == "ulp"]:
            if element(site.result) != types.f64:
                changed(site, _underflows)


def _underflows(value: SSAValue, before: Operation) -> SSAValue:
    kind = types.dtype_of(element(value))
    least = 2.0 ** (1 - kind.bias - kind.mantissa_bits)
    small = by_row("ltf", made("absf", value, before=before), before=before, number=least)
    zero = by_row("mulf", value, before=before, number=0.0)  # of the value's sign
    return made("select", small, zero, value, before=before)


class Planted(ReferenceBackend):
    """The bug is that of the target's name; without one, the artifact's metadata name the bugs that could be planted."""

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        bug = BUGS.get(self.target.chip)
        return (SitesPass() if bug is None else PlantPass(bug), UnderflowPass())

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        noted = module.attributes.pop(SITES, ArrayAttr([]))
        assert isinstance(noted, ArrayAttr)
        artifact = super().emit(module, options)
        return replace(artifact, metadata={**artifact.metadata, "sites": tuple(name.data for name in noted)})
