"""The AMD backend: gfx942 code objects and assembly text, read, written and simulated. Kernels are not compiled for it yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tilefw.api import Artifact, Backend, CompileOptions, Device
from tilefw.api.errors import UnsupportedError

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass


class AmdBackend(Backend):
    """One chip."""

    binary_suffix: ClassVar[str] = ".hsaco"

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        raise self._no_compiler()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        raise self._no_compiler()

    def _no_compiler(self) -> UnsupportedError:
        return UnsupportedError(
            f"{self.target.name} does not compile kernels yet", code="TFW0604",
            help="its code objects of other compilers load and run: tilefw.load, `tilefw simulate`",
        )

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_amd.foreign import artifact

        return artifact(data, name, self.target)

    def to_binary(self, text: str, name: str) -> bytes:
        from tilefw_amd.assemble import assemble

        return assemble(text, name)

    def to_text(self, data: bytes, name: str) -> str:
        from tilefw_amd.disassemble import disassemble

        return disassemble(data, name)

    def simulator(self) -> Device:
        from tilefw_amd.simulate import Simulator

        return Simulator(self.target)
