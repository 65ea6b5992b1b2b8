"""A backend whose artifacts are machine functions: their text, their entries and resources; `SimtBackend` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tilefw.api.artifact import Artifact, Entry, Resources
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.errors import CodeError, UnsupportedError
from tilefw.machine.inst import Function
from tilefw.machine.promises import Promises, promises_of
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable
from tilefw.machine.text import parse_functions, print_function

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass


class MachineBackend(Backend):
    """A backend whose `pipeline` ends in machine functions (`FunctionOp`), by whatever lowering.

    The text of machine functions is itself an artifact (`format` "machine") for a chip that has no other; a chip with an
    assembly language of its own says its format and overrides `emit_functions` and `parse_functions`. A function's
    attributes tell how it is called (`entry_of`).
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
        promised = _promises(functions)
        return Artifact(
            self.target.name, self.format, text, tuple(entry_of(f) for f in functions), None, _resources(functions),
            metadata={"offsets": promised} if promised else {},
        )

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """The artifact around what `emit_functions` prints."""
        from tilefw.machine.function_op import FuncOp

        functions = [op.function for op in module.body.block.ops if isinstance(op, FuncOp)]
        text = self.emit_functions(functions, options)
        return Artifact(
            self.target.name, self.format, text, tuple(entry_of(f) for f in functions), None, self.resources(functions),
            metadata={"offsets": promised} if (promised := _promises(functions)) else {},
            remarks=tuple(remark for function in functions for remark in function.attributes.remarks),
        )


def assign_registers(
    table: InstructionTable, limits: Mapping[str, int] | None = None, spills: SpillModel | None = None, verify: bool = True,
    limited_by: str = "", steps: Mapping[str, Sequence[int]] | None = None,
) -> ModulePass:
    """The pass that gives every virtual register a physical one of `table`, by file at most `limits` where they are given (for the
    reason `limited_by`, which a refusal tells); what finds none goes where `spills` says. With `verify`, a checker replays the
    result. `steps`: by file, ascending, the numbers of registers that are worth staying at."""
    from tilefw.machine.assign_registers import AssignRegisters

    return AssignRegisters(table, limits, spills, verify, limited_by, steps or {})


def entry_of(function: Function) -> Entry:
    """The entry that a machine function's attributes describe; raises CodeError (TFW0702) where they tell no workgroup."""
    attributes = function.attributes
    if attributes.workgroup is None:
        raise CodeError(f"the attributes of {function.name} do not give its workgroup", code="TFW0702")
    return Entry(
        function.name, attributes.parameters, attributes.workgroup, shared_bytes=attributes.shared_bytes,
        workgroups=attributes.workgroups,
    )


def _promises(functions: Sequence[Function]) -> dict[str, Promises]:
    """What is promised of offsets, by function."""
    return {function.name: promises for function in functions if (promises := promises_of(function))}


def _resources(functions: Sequence[Function]) -> Resources:
    """What the functions tell themselves: the most shared memory of any, and what register assignment used, by class."""
    shared = max((function.attributes.shared_bytes for function in functions), default=0)
    used = [function.attributes.registers for function in functions if function.attributes.registers is not None]
    if not used or len(used) < len(functions):
        return Resources(shared_bytes=shared)
    classes = {cls: max(each.get(cls, 0) for each in used) for cls in sorted({cls for each in used for cls in each})}
    spills = sum(sum(function.attributes.spills.values()) for function in functions)
    return Resources(registers=classes, spills=spills, shared_bytes=shared)
