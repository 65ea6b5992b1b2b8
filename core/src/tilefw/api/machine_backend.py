"""A backend whose artifacts are machine functions: their text, their entries and resources; `SimtBackend` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tilefw.api.artifact import Artifact, Entry, Parameter, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.machine.inst import Function
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable
from tilefw.machine.text import parse_functions, print_function

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass


class MachineBackend(Backend):
    """A backend whose `pipeline` ends in machine functions (`FunctionOp`), by whatever lowering.

    The text of machine functions is itself an artifact (`format` "machine") for a chip that has no other; a chip with an
    assembly language of its own says its format and overrides `emit_functions` and `parse_functions`. Of each function's attributes
    `parameters` and `workgroup` say how it is called (`entry_of`).
    """

    format = "machine"

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        """The artifact's text."""
        return "\n".join(print_function(function) for function in functions)

    def resources(self, functions: Sequence[Function]) -> Resources:
        """What the functions take of the chip, as far as they say it themselves."""
        return _resources(functions)

    def parse_functions(self, text: str, name: str) -> Sequence[Function]:
        """The functions of a file of the chip's text, which `emit_functions` prints; `name` is the file's, for messages.

        Raises CodeError, with the place, for text that cannot be read, UnsupportedError TFW0701 where the chip reads none."""
        if self.format != "machine":
            raise UnsupportedError(f"{self.target.name} does not load machine code from files", code="TFW0701")
        return parse_functions(text, name)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        """A file of the chip's text as an artifact; raises what `parse_functions` raises."""
        try:
            text = data if isinstance(data, str) else data.decode()
        except UnicodeDecodeError as error:
            raise CodeError(f"{name} is not text: {error}", code="TFW0702") from None
        functions = self.parse_functions(text, name)
        return Artifact(self.target.name, self.format, text, tuple(entry_of(f) for f in functions), None, _resources(functions))

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
