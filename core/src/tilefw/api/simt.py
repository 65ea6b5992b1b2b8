"""The SIMT kit's face for plugins: a backend for a chip with lanes brings a `LaneChip` and an emitter, and inherits the rest.

    class MyBackend(SimtBackend):
        def chip(self, options): return MyChip(...)
        def emit_function(self, function, options): return text, entry
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact, Entry, Parameter
from tilefw.api.backend import Backend, CompileOptions
from tilefw.machine.inst import Function
from tilefw.simt.chip import Access, LaneChip, Rule
from tilefw.simt.code import Code, Const, Element

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass

__all__ = ["Access", "Code", "Const", "Element", "LaneChip", "Rule", "SimtBackend", "entry_of", "lane_to_machine"]


class SimtBackend(Backend):
    """A backend whose lowering is the kit's: tile IR to lanes, lanes to machine code, machine code to text."""

    format = "machine"

    @abstractmethod
    def chip(self, options: CompileOptions) -> LaneChip:
        """The chip description under these options."""

    @abstractmethod
    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        """The artifact's text."""

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        """Passes on machine code after selection (allocation, hazards); none for virtual instruction sets."""
        return ()

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        from tilefw.simt.select import LaneToMachine
        from tilefw.simt.tile_to_lane import TileToLane

        chip = self.chip(options)
        return (
            TileToLane(chip.lanes, options.num_warps, chip.access_bytes, chip.pointer_bits),
            LaneToMachine(chip, self.target.name),
            *self.machine_passes(options),
        )

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        from tilefw.machine.function_op import FuncOp

        functions = [op.function for op in module.body.block.ops if isinstance(op, FuncOp)]
        text = self.emit_functions(functions, options)
        return Artifact(self.target.name, self.format, text, tuple(entry_of(f) for f in functions))


def lane_to_machine(chip: LaneChip, target: str) -> ModulePass:
    """The pass that selects instructions of `chip`."""
    from tilefw.simt.select import LaneToMachine

    return LaneToMachine(chip, target)


def entry_of(function: Function) -> Entry:
    """The entry that a machine function's attributes describe."""
    listed: Any = function.attributes["parameters"]
    workgroup: Any = function.attributes["workgroup"]
    return Entry(function.name, tuple(Parameter(**p) for p in listed), tuple(workgroup))
