"""The SIMT kit's face for plugins: a backend for a chip with lanes brings a `LaneChip` and an emitter, and inherits the rest.

    class MyBackend(SimtBackend):
        def chip(self, options): return MyChip(...)
        def emit_functions(self, functions, options): return text

The kit itself is loaded when it is first asked for: a backend is also there to run code that was compiled before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tilefw.api.artifact import Artifact, Entry, Parameter, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.errors import CodeError
from tilefw.machine.inst import Function
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable
from tilefw.machine.text import parse_functions, print_function

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw.simt.chip import Access, AsyncCopy, FragmentAccess, LaneChip, Registers, Rule, alias, template
    from tilefw.simt.description import ChipDescription, FragmentLoad, Machine, MatrixAtom
    from tilefw.simt.layout import LinearLayout
    from tilefw.simt.select.code import Code, Const, Element
    from tilefw.simt.select.combine import Addresses, Combiner, Fusion

__all__ = [
    "Access", "Addresses", "AsyncCopy", "ChipDescription", "Code", "Combiner", "Const", "Element", "FragmentAccess", "FragmentLoad",
    "Fusion", "LaneChip", "LinearLayout", "Machine", "MatrixAtom", "Registers", "Rule", "SimtBackend", "alias", "assign_registers",
    "entry_of", "lane_to_machine", "template",
]

_KIT = {
    **dict.fromkeys(
        ("Access", "AsyncCopy", "FragmentAccess", "LaneChip", "Registers", "Rule", "alias", "template"), "tilefw.simt.chip"
    ),
    **dict.fromkeys(("Code", "Const", "Element"), "tilefw.simt.select.code"),
    **dict.fromkeys(("Addresses", "Combiner", "Fusion"), "tilefw.simt.select.combine"),
    **dict.fromkeys(("ChipDescription", "FragmentLoad", "Machine", "MatrixAtom"), "tilefw.simt.description"),
    "LinearLayout": "tilefw.simt.layout",
}


def __getattr__(name: str) -> Any:
    if name not in _KIT:
        raise AttributeError(f"module 'tilefw.api.simt' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_KIT[name]), name)


class SimtBackend(Backend):
    """A backend whose lowering is the kit's: tile IR to lanes, lanes to machine code, machine code to text.

    The text of machine functions is itself an artifact (`format` "machine") for a chip that has no other; a chip with an
    assembly language of its own says its format and overrides `emit_functions` and `parse`.
    """

    format = "machine"

    @abstractmethod
    def chip(self, options: CompileOptions) -> LaneChip:
        """The chip description under these options."""

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        """The artifact's text."""
        return "\n".join(print_function(function) for function in functions)

    def resources(self, functions: Sequence[Function]) -> Resources:
        """What the functions take of the chip, as far as they say it themselves."""
        return _resources(functions)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        """A file of `machine.func` text, where that is the chip's format."""
        if self.format != "machine":
            return super().parse(data, name)
        try:
            text = data if isinstance(data, str) else data.decode()
        except UnicodeDecodeError as error:
            raise CodeError(f"{name} is not text: {error}", code="TFW0702") from None
        functions = parse_functions(text, name)
        return Artifact(self.target.name, self.format, text, tuple(entry_of(f) for f in functions), None, _resources(functions))

    def machine_passes(self, options: CompileOptions) -> Sequence[ModulePass]:
        """Passes on machine code after selection (`assign_registers`, hazards); none for virtual instruction sets."""
        return ()

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """The kit's passes to lane IR (`tilefw.simt.passes`), lane to machine, then the chip's own `machine_passes`."""
        from tilefw.simt.description import Machine
        from tilefw.simt.passes import lane_passes
        from tilefw.simt.select.lane_to_machine import LaneToMachine

        chip = self.chip(options)
        machine = Machine(chip.description, options.num_warps, "under_2_gib" in options.facts)
        return (
            *lane_passes(machine, options.num_stages, "disjoint" in options.facts),
            LaneToMachine(chip, self.target.name),
            *self.machine_passes(options),
        )

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """The artifact around what `emit_functions` prints."""
        from tilefw.machine.function_op import FuncOp

        functions = [op.function for op in module.body.block.ops if isinstance(op, FuncOp)]
        text = self.emit_functions(functions, options)
        notes = [note for function in functions for note in cast(list[Any], function.attributes.get("notes", []))]
        return Artifact(
            self.target.name, self.format, text, tuple(entry_of(f) for f in functions), None, self.resources(functions),
            metadata={"notes": notes} if notes else {},
        )


def lane_to_machine(chip: LaneChip, target: str) -> ModulePass:
    """The pass that selects instructions of `chip`."""
    from tilefw.simt.select.lane_to_machine import LaneToMachine

    return LaneToMachine(chip, target)


def assign_registers(
    table: InstructionTable, limits: Mapping[str, int] | None = None, spills: SpillModel | None = None, verify: bool = True,
    limited_by: str = "",
) -> ModulePass:
    """The pass that gives every virtual register a physical one of `table`, by file at most `limits` where they are given (for the
    reason `limited_by`, which a refusal tells); what finds none goes where `spills` says. With `verify`, a checker replays the
    result."""
    from tilefw.machine.assign_registers import AssignRegisters

    return AssignRegisters(table, limits, spills, verify, limited_by)


def entry_of(function: Function) -> Entry:
    """The entry that a machine function's attributes describe; raises CodeError (TFW0702) where they do not."""
    try:
        listed: Any = function.attributes["parameters"]
        x, y, z = map(int, function.attributes["workgroup"])
        shared = int(function.attributes.get("shared_bytes", 0))
        return Entry(function.name, tuple(Parameter(**p) for p in listed), (x, y, z), shared_bytes=shared)
    except (KeyError, TypeError, ValueError) as error:
        message = f"the attributes of {function.name} do not give its parameters and workgroup: {error}"
        raise CodeError(message, code="TFW0702") from None


def _resources(functions: Sequence[Function]) -> Resources:
    """What the functions say of themselves: the most shared memory of any, and what register assignment noted, by class."""
    shared = max((int(function.attributes.get("shared_bytes", 0)) for function in functions), default=0)
    noted: list[Any] = [function.attributes.get("registers") for function in functions]
    if not noted or not all(isinstance(used, dict) for used in noted):
        return Resources(shared_bytes=shared)
    classes = {cls: max(used.get(cls, 0) for used in noted) for cls in sorted({cls for used in noted for cls in used})}
    spills = sum(sum(cast(dict[str, int], function.attributes.get("spills", {})).values()) for function in functions)
    return Resources(registers=classes, spills=spills, shared_bytes=shared)
