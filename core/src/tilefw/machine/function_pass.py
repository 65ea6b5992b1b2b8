"""A pass that changes each machine function by itself: what all passes on machine code are."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefw.machine.function_op import FuncOp
from tilefw.machine.inst import Function


class FunctionPass(ModulePass):
    """A pass over the machine functions of a module; `level` is the IR that it reads, for listings."""

    level: ClassVar[str] = "machine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.body.block.ops:
            if isinstance(each, FuncOp):
                self.run(each.function)

    @abstractmethod
    def run(self, function: Function) -> None:
        """Change one function in place."""
