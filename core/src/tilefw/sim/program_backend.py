"""TextBackend: a backend whose code is the text of a `TextMachine`, which a `ProgramDevice` runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from tilefw.api.artifact import Artifact
from tilefw.api.backend import Backend, CompileOptions
from tilefw.api.errors import CodeError
from tilefw.sim.program_text import TextTable, parse_programs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tilefw.loops.text_machine import TextMachine


class TextBackend(Backend):
    """Writes each kernel on a machine of its own, and reads files of such text. A plugin says what the machine is, and gives the
    `simulator`."""

    format: ClassVar[str]

    @property
    @abstractmethod
    def table(self) -> TextTable:
        """What the machine has."""

    @abstractmethod
    def machine(self) -> Callable[[], TextMachine]:
        """What gives a new machine to write on."""

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """None: simplified tile IR is what `emit` takes."""
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """The text of all kernels. Raises CapacityError where a program needs more than the machine's own memory."""
        from tilefw.loops.module import loop_artifact, lower_module
        from tilefw.loops.text_machine import text_of

        programs = lower_module(module, self.machine(), options, self.table.local_bytes)
        text = "\n".join(text_of(program.entry, program.machine) for program in programs)
        return loop_artifact(self.target.name, self.format, text, programs)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        """A file of such text; raises CodeError."""
        try:
            text = data if isinstance(data, str) else data.decode()
        except UnicodeDecodeError as error:
            raise CodeError(f"{name} is not text: {error}", code="TFW0702") from None
        entries = tuple(kernel.entry for kernel in parse_programs(text, name, self.table))
        return Artifact(self.target.name, self.format, text, entries, metadata={"source_name": name})
