"""The spatial backend: a launch's tile IR to a program of timed queues, its file and its text, and the simulator that runs it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilefw.api import (
    Artifact,
    Backend,
    ChainLaunch,
    CompileError,
    CompileOptions,
    Device,
    InternalError,
    LaunchSequence,
    LinkedArtifact,
    Resources,
)

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp, ModulePass
    from tilefw_spatial.link.chain import LinkedProgram
    from tilefw_spatial.machine import Machine
    from tilefw_spatial.program import SpatialProgram

FORMAT = "sdm"
MACHINE_FILE = "TILEFW_SPATIAL_MACHINE"
"""The environment variable that names another machine file."""


class SpatialBackend(Backend):
    """Compiles for one launch: sizes, strides, the grid and which arguments share memory are constants of the program."""

    binary_suffix = ".sdm"
    links = True

    toolchain_variables = (MACHINE_FILE,)

    @property
    def machine(self) -> Machine:
        """The machine that `TILEFW_SPATIAL_MACHINE` names by the path of its file, else the target's own. Raises CodeError TFW0739
        for a file that cannot be read or is no machine file."""
        from tilefw_spatial.machine import given, load

        path = os.environ.get(MACHINE_FILE)
        return given(path) if path else load(self.target.chip)

    def toolchain_digest(self) -> str:
        """The machine's hash: an artifact that was cached for one machine is none for another."""
        return self.machine.hash

    program_steps = (
        ("lower", "Lowers tile IR of one launch to a graph of arrays over named axes."),
        ("elements", "Splits 64-bit integers into pairs of words, and replaces small formats by their codes."),
        ("arrange", "Chooses which axes lie along lanes and which in time; elementwise work becomes chains of ALUs."),
        ("partition", "Divides the launch among several chips, with sends between them."),
        ("schedule", "Allocates arrays, and gives every burst its cycle."),
        ("emit", "Writes the queues in order of time."),
    )

    def pipeline(self, options: CompileOptions) -> Sequence[ModulePass]:
        """No level between tile IR and the program is IR: `pipeline.py` has the stages."""
        return ()

    def emit(self, module: ModuleOp, options: CompileOptions) -> Artifact:
        """The program of one launch. Raises UnsupportedError, CapacityError, and CompileError where the launch is missing."""
        from tilefw.api.ir import refuse_unserved
        from tilefw_spatial.partition import node_options
        from tilefw_spatial.pipeline import compile_kernel

        machine = self.machine
        chips, split = node_options(options.extra, machine)
        if options.launch is None:
            raise CompileError(
                f"{self.target.name} compiles for one launch, and is not told which", code="TFW0642",
                help="give the grid, the scalars and the extents of the buffers",
            )
        refuse_unserved(module, self.target.name, self.capabilities, options.launch)
        compiled = compile_kernel(module, options.launch, machine, chips, split, options.enable_fp_fusion)
        if options.verify:
            self._verify(compiled.program, machine)
        return replace(self._artifact(compiled.program, machine), entries=(compiled.entry,))

    def link(self, launches: Sequence[ChainLaunch], options: CompileOptions) -> LinkedArtifact | None:
        """The program of as many launches as go into one, of one chip. What passes between them stays in the slices."""
        from tilefw_spatial.link import compile_chain
        from tilefw_spatial.partition import node_options

        machine = self.machine
        if node_options(options.extra, machine)[0] > 1:
            return None
        compiled = compile_chain(launches, machine)
        if compiled is None:
            return None
        needed, observed = (self._linked(one, machine, options.verify) for one in (compiled.needed, compiled.observed))
        return LinkedArtifact(
            needed, compiled.count, compiled.needed.storages, observed, compiled.observed.storages, compiled.ended
        )

    def launch_cost(self, launches: LaunchSequence) -> float:
        """The cycles that their schedules take, which are exact; between launches that are not linked the host lays tensors out."""
        return sum(int(str(artifact.metadata["cycles"])) for artifact in launches.compiled())

    def _linked(self, linked: LinkedProgram, machine: Machine, verify: bool) -> Artifact:
        if verify:
            self._verify(linked.program, machine)
        return replace(self._artifact(linked.program, machine), entries=(linked.entry,))

    def _verify(self, program: SpatialProgram, machine: Machine) -> None:
        """The checker's word on a program. Raises InternalError with the first constraint that is broken."""
        from tilefw_spatial.check import check

        problems = check(program, machine)
        if problems:
            raise InternalError(f"a schedule breaks {len(problems)} constraints of the machine; the first: {problems[0]}")

    def _artifact(self, program: SpatialProgram, machine: Machine) -> Artifact:
        """A program with its file and its text."""
        from tilefw_spatial.container import write
        from tilefw_spatial.text import render

        counts: dict[str, int] = {}
        for code in program.chips:
            for queue in code.queues.values():
                for inst in queue:
                    counts[inst.op] = counts.get(inst.op, 0) + 1
        return Artifact(
            target=self.target.name, format=FORMAT, text=render(program, machine), entries=(), binary=write(program, machine),
            resources=Resources(unknown="slices and streams are placed by the schedule", instructions=counts),
            metadata={"cycles": program.cycles, **program.metadata},
        )

    def parse(self, data: str | bytes, name: str) -> Artifact:
        from tilefw_spatial import foreign
        from tilefw_spatial.simulate.device import FROM_TEXT

        machine = self.machine
        program, given = foreign.read(data, name, machine)
        made = replace(self._artifact(program, machine), entries=(foreign.entry(program),))
        return made if given is None else replace(made, text=given, metadata={**made.metadata, FROM_TEXT: True})

    def to_binary(self, text: str, name: str) -> bytes:
        from tilefw_spatial.foreign import assemble

        return assemble(text, name, self.machine)

    def to_text(self, data: bytes, name: str) -> str:
        from tilefw_spatial.foreign import disassemble

        return disassemble(data, name, self.machine)

    def simulator(self) -> Device:
        from tilefw_spatial.simulate.device import SpatialDevice

        return SpatialDevice(self.machine, self.target.name)
