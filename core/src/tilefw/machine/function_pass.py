"""A pass that changes each machine function by itself: what all passes on machine code are."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.api.errors import InternalError, IRError
from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function
from tilefw.machine.opcodes import check_opcodes
from tilefw.machine.table import InstructionTable


class FunctionPass(ModulePass):
    """A pass over the machine functions of a module; `level` is the IR that it reads, for listings."""

    level: ClassVar[str] = "machine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Runs on each function. Raises PluginError (TFW0512) for an opcode that an earlier pass wrote and this one's `table`
        does not have."""
        table = getattr(self, "table", None)
        for each in op.body.block.ops:
            if isinstance(each, FuncOp):
                function = each.function
                if function.writer is not None and isinstance(table, InstructionTable):
                    check_opcodes(function.insts(), table, function.writer)
                    function.writer = None
                try:
                    self.run(function)
                except (KeyError, InternalError):
                    self._check_opcodes(function)
                    raise
                function.writer = self.writer() or function.writer

    def writer(self) -> object:
        """What of a plugin writes instructions in this pass: a pass of its own, or a function that a pass of core calls; else
        None."""
        return None if type(self).__module__.startswith("tilefw.") else type(self)

    def _check_opcodes(self, function: Function) -> None:
        """Raise IRError (TFW0512) at the first instruction that the pass's table does not have, where it has a table."""
        table: InstructionTable | None = getattr(self, "table", None)
        if table is None:
            return
        for inst in (inst for block in function.blocks for inst in block.insts):
            try:
                table.traits(inst.opcode)
            except KeyError:
                message, note = f"the instruction table of {table.name} has no '{inst.opcode}'", f"in {function.name}: {inst}"
                raise IRError(message, code="TFW0512", place=inst.place, note=note) from None

    @abstractmethod
    def run(self, function: Function) -> None:
        """Change one function in place."""
