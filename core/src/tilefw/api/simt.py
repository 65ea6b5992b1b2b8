"""The SIMT kit's face for plugins: a backend for a chip with lanes brings a `LaneChip` and an emitter, and inherits the rest.

    class MyBackend(SimtBackend):
        def chip(self, options): return MyChip(...)
        def emit_functions(self, functions, options): return text

The kit itself is loaded when it is first asked for: a backend is also there to run code that was compiled before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilefw.api.backend import CompileOptions
from tilefw.api.errors import CapacityError
from tilefw.api.machine_backend import MachineBackend, assign_registers, entry_of

if TYPE_CHECKING:
    from tilefw.api.ir import DotScaledOp, ModuleOp, ModulePass
    from tilefw.simt.chip import LaneChip, Registers, Rule, alias, template
    from tilefw.simt.chip_requests import (
        AsmOperand,
        AsyncCopy,
        AtomicAccess,
        BulkCopy,
        BulkStore,
        FragmentAccess,
        InlineAssembly,
        LaneAccess,
        Scale,
        SharedSource,
    )
    from tilefw.simt.description import (
        AtomScales,
        ChipDescription,
        CopyEngine,
        FragmentLoad,
        LaneMachine,
        MatrixAtom,
        RoleRegisters,
        SharedForm,
        TransposedLoad,
    )
    from tilefw.simt.layout import LinearLayout
    from tilefw.simt.select.code import Code, Const, Element
    from tilefw.simt.select.combine import Addresses, Combiner, Fusion

__all__ = [
    "Addresses", "AsmOperand", "AsyncCopy", "AtomScales", "AtomicAccess", "BulkCopy", "BulkStore", "ChipDescription", "Code",
    "Combiner", "Const", "CopyEngine", "Element", "FragmentAccess", "FragmentLoad", "Fusion", "InlineAssembly", "LaneAccess",
    "LaneChip", "LaneMachine", "LinearLayout", "MatrixAtom", "Registers", "RoleRegisters", "Rule", "Scale", "SharedForm",
    "SharedSource", "SimtBackend", "TransposedLoad", "alias", "assign_registers", "entry_of", "selection_passes", "template",
]

_KIT = {
    **dict.fromkeys(("LaneChip", "Registers", "Rule", "alias", "template"), "tilefw.simt.chip"),
    **dict.fromkeys(("AsmOperand", "AsyncCopy", "AtomicAccess", "BulkCopy", "BulkStore"), "tilefw.simt.chip_requests"),
    **dict.fromkeys(("FragmentAccess", "InlineAssembly", "LaneAccess", "Scale", "SharedSource"), "tilefw.simt.chip_requests"),
    **dict.fromkeys(("Code", "Const", "Element"), "tilefw.simt.select.code"),
    **dict.fromkeys(("Addresses", "Combiner", "Fusion"), "tilefw.simt.select.combine"),
    **dict.fromkeys(("AtomScales", "ChipDescription", "CopyEngine", "FragmentLoad", "LaneMachine"), "tilefw.simt.description"),
    **dict.fromkeys(("MatrixAtom", "RoleRegisters", "SharedForm", "TransposedLoad"), "tilefw.simt.description"),
    "LinearLayout": "tilefw.simt.layout",
}


def __getattr__(name: str) -> Any:
    if name not in _KIT:
        raise AttributeError(f"module 'tilefw.api.simt' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_KIT[name]), name)


_SHARED_MEMORY = "shared memory"  # the resource of PlaceShared's error
_DEEPEST = 4  # stages: who wants as many or more has less by one at first, as each try lowers the kernel again


class SimtBackend(MachineBackend):
    """A backend whose lowering is the kit's: tile IR to lanes, lanes to machine code, machine code to text."""

    @abstractmethod
    def chip(self, options: CompileOptions) -> LaneChip:
        """The chip description under these options."""

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        """Passes on machine code after selection (`assign_registers`, hazards); none for virtual instruction sets."""
        return ()

    def takes_scaled_dot(self, op: DotScaledOp, options: CompileOptions) -> bool:
        """Whether a matrix atom of the chip has scales and serves the formats and sizes."""
        from tilefw.simt.lower.dot import takes_scaled_dot

        return takes_scaled_dot(op, self.chip(options).description)

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """The kit's passes to lane IR (`tilefw.simt.passes`), lane to machine, then the chip's own `machine_passes`."""
        from tilefw.simt.passes import lane_passes, selection_passes

        chip = self.chip(options)
        return (
            *lane_passes(self.lane_machine(options), options.num_stages, options.most_stages, options.verify),
            *selection_passes(chip, self.target.name),
            *self.machine_passes(options),
        )

    def lane_machine(self, options: CompileOptions) -> LaneMachine:
        """The chip with the waves of a program under these options."""
        from tilefw.simt.description import lane_machine

        small, disjoint = (fact in options.facts for fact in ("under_2_gib", "disjoint"))
        return lane_machine(self.chip(options).description, options.num_warps, options.num_ctas, small, disjoint)

    def with_less_memory(self, module: ModuleOp, options: CompileOptions, error: CapacityError) -> CompileOptions | None:
        """A stage less for the pipelined loops, where shared memory is what there is too little of."""
        from tilefw.simt.software_pipeline.loops import most_stages

        most = min(most_stages(module, options.num_stages), _DEEPEST if options.most_stages is None else options.most_stages)
        return replace(options, most_stages=most - 1) if error.resource == _SHARED_MEMORY and most > 1 else None


def selection_passes(chip: LaneChip, target: str) -> Sequence[ModulePass]:
    """The passes from lane IR to machine code of `chip` with virtual registers: instruction selection, then dead-code elimination,
    combining and their like. `target` is the target's name, for messages."""
    from tilefw.simt import passes

    return passes.selection_passes(chip, target)
