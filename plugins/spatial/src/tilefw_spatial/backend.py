"""The spatial backend: a launch's tile IR to a program of timed queues, its file and its text, and the simulator that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilefw.api import Artifact, Backend, CompileError, CompileOptions, Device, InternalError, Resources

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw_spatial.machine import Machine
    from tilefw_spatial.program import Program

FORMAT = "sdm"


class SpatialBackend(Backend):
    """Compiles for one launch: sizes, strides, the grid and which arguments share memory are constants of the program."""

    binary_suffix = ".sdm"

    @property
    def machine(self) -> Machine:
        """The machine file of the target."""
        from tilefw_spatial.machine import load

        return load(self.target.chip)

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """No level between tile IR and the program is IR: `pipeline.py` has the stages."""
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """The program of one launch. Raises UnsupportedError, CapacityError, and CompileError where no launch is known."""
        from tilefw.api.ir import refuse_unserved
        from tilefw_spatial.node_options import node_options
        from tilefw_spatial.pipeline import compile_kernel

        chips, split = node_options(options.extra, self.machine)
        if options.launch is None:
            raise CompileError(
                f"{self.target.name} compiles for one launch, and is not told which", code="TFW0642",
                help="say the grid, the scalars and the extents of the buffers",
            )
        refuse_unserved(module, self.target.name, self.capabilities, options.launch)
        compiled = compile_kernel(module, options.launch, self.machine, chips, split, options.enable_fp_fusion)
        if options.verify:
            self._verify(compiled.program)
        return replace(self._artifact(compiled.program), entries=(compiled.entry,))

    def _verify(self, program: Program) -> None:
        """The checker's word on a program. Raises InternalError with the first constraint that is broken."""
        from tilefw_spatial.check import check

        problems = check(program, self.machine)
        if problems:
            raise InternalError(f"a schedule breaks {len(problems)} constraints of the machine; the first: {problems[0]}")

    def _artifact(self, program: Program) -> Artifact:
        """A program with its file and its text."""
        from tilefw_spatial.container import write
        from tilefw_spatial.text import render

        counts: dict[str, int] = {}
        for code in program.chips:
            for queue in code.queues.values():
                for inst in queue:
                    counts[inst.op] = counts.get(inst.op, 0) + 1
        return Artifact(
            target=self.target.name, format=FORMAT, text=render(program), entries=(), binary=write(program),
            resources=Resources(unknown="slices and streams are placed by the schedule", instructions=counts),
            metadata={"cycles": program.cycles, **program.metadata},
        )

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_spatial import foreign
        from tilefw_spatial.simulate.device import FROM_TEXT

        program, given = foreign.read(data, name)
        made = replace(self._artifact(program), entries=(foreign.entry(program),))
        return made if given is None else replace(made, text=given, metadata={**made.metadata, FROM_TEXT: True})

    def to_binary(self, text: str, name: str) -> bytes:
        from tilefw_spatial.foreign import assemble

        return assemble(text, name)

    def to_text(self, data: bytes, name: str) -> str:
        from tilefw_spatial.foreign import disassemble

        return disassemble(data, name)

    def simulator(self) -> Device:
        from tilefw_spatial.simulate.device import SpatialDevice

        return SpatialDevice(self.machine, self.target.name)
