"""The Acme backend: the SIMT kit to machine code, physical registers, machine text as the artifact, the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefw.api import Artifact, CompileOptions, Device
from tilefw.api.simt import LaneChip, SimtBackend, entry_of

if TYPE_CHECKING:
    from tilefw.api.machine import Function


class AcmeBackend(SimtBackend):
    """The M1 has no file format of its own: `machine.func` text with physical registers is what it loads."""

    format = "machine"

    def chip(self, options: CompileOptions) -> LaneChip:
        from tilefw_acme.chip import M1

        return M1()

    def emit_functions(self, functions: Sequence[Function], options: CompileOptions) -> str:
        from tilefw.api.machine import allocate, drop_identities, print_function
        from tilefw_acme.isa import TABLE

        for function in functions:
            allocate(function, TABLE)
            drop_identities(function, TABLE)
        return "\n".join(print_function(function) for function in functions)

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_acme.simulate import functions

        text = data.decode() if isinstance(data, bytes) else data
        return Artifact(self.target.name, self.format, text, tuple(entry_of(f) for f in functions(text, name)))

    def simulator(self) -> Device:
        from tilefw_acme.simulate import Simulator

        return Simulator(self.target)
