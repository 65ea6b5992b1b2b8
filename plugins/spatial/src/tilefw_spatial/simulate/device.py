"""The simulator as a device: allocations as plain bytes, arguments that must be those the program was made for, launches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilefw.api import Argument, Artifact, BufferView, CodeError, LaunchError, LaunchOptions, LaunchReport
from tilefw.api.sim import SimulatedBuffers
from tilefw_spatial.checked import CHECK, arguments, broken, flags
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import BoundParameter, SpatialProgram
from tilefw_spatial.simulate.bound import check_launch, check_threads
from tilefw_spatial.simulate.engine import Simulation
from tilefw_spatial.simulate.findings import Faults, Findings
from tilefw_spatial.simulate.trace import timeline
from tilefw_spatial.simulate.transfers import HostBuffer, collect, fill
from tilefw_spatial.simulate.utilisation import counted, utilisation
from tilefw_spatial.text.parser import Listing
from tilefw_spatial.valid import program_faults

FROM_TEXT = "from_text"
"""In an artifact's metadata: its text is what somebody gave, and messages name the lines of it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program that is ready to be launched, with the lines that it was read from, if it was."""

    program: SpatialProgram
    listing: Listing | None = None


class SpatialDevice(SimulatedBuffers):
    """`tilefw.api.Device` for programs of one machine."""

    executor: Literal["sim"] = "sim"
    assembled = True
    checks = frozenset(fault.value.check for fault in Faults)

    def __init__(self, machine: Machine, name: str = "") -> None:
        super().__init__()
        self.name = name or machine.name
        self.machine = machine
        self.last: Simulation | None = None  # what the last launch ran, for reports and timelines

    def load(self, artifact: Artifact) -> Loaded:
        """The program of an artifact. Raises CodeError."""
        from tilefw_spatial.container import read

        if artifact.binary is None:
            raise CodeError(f"the artifact for {artifact.target} has no assembled program", code="TFW0702")
        name = str(artifact.metadata.get("source_name", f"{artifact.target}.sdm"))
        listing = Listing(artifact.text, name) if artifact.metadata.get(FROM_TEXT) else None
        return Loaded(read(artifact.binary, name, self.machine), listing)

    def launch(
        self, module: Loaded, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run a program with the arguments that it was made for. Raises LaunchError, CodeError."""
        begin = time.perf_counter()
        program = module.program
        if entry != program.entry:
            raise LaunchError(f"no entry {entry!r}", code="TFW0346", note=f"entries: {program.entry}")
        check_threads(program, options)
        check_launch(program, grid, args, lambda handle: self._memory.region(handle).size)
        buffers = [self._buffer(p, a) for p, a in zip(arguments(program), args, strict=True)]
        simulation = _executed(program, self.machine, buffers, options, module.listing)
        simulation.chips.clear()  # as much memory as the chips have
        self.last = simulation
        shown = timeline(simulation) if options.timeline else None
        return LaunchReport(
            simulation.findings.all, counted(simulation), time.perf_counter() - begin, utilisation(simulation), shown
        )

    def _buffer(self, parameter: BoundParameter, argument: Argument) -> HostBuffer | None:
        if not isinstance(argument, BufferView) or argument.handle == 0:
            return None
        region = self._memory.region(argument.handle)
        data: Any = region.data[: region.size]
        poison: Any = None if region.poison is None else region.poison[: region.size]
        return HostBuffer(parameter.name, data, argument.offset, poison)


def simulate(
    program: SpatialProgram, machine: Machine, buffers: Sequence[HostBuffer | None], options: LaunchOptions | None = None
) -> Simulation:
    """Run a program that nobody has looked at: fill its slices from the buffers, one an argument, execute it, bring back what it
    made. Raises CodeError."""
    for fault in program_faults(machine, program):
        raise CodeError(f"{program.entry}: {fault}", code="TFW0736")
    return _executed(program, machine, buffers, options or LaunchOptions())


def _executed(
    program: SpatialProgram, machine: Machine, buffers: Sequence[HostBuffer | None], options: LaunchOptions,
    listing: Listing | None = None,
) -> Simulation:
    findings = Findings(options.checks, machine, listing)
    checks = flags(program)
    buffers = [*buffers[: len(arguments(program))], *(HostBuffer(CHECK, data, 0) for data in checks)]
    # A budget counts what threads execute: here each superlane executes every instruction once a vector.
    simulation = Simulation(program, machine, findings, options.budget // machine.superlanes)
    for tensor in program.tensors:
        if tensor.role in ("in", "const"):
            fill(tensor, buffers, simulation.chips, findings)
    simulation.run()
    if simulation.cycles != program.cycles:
        findings.add(Faults.CYCLES, f"the program takes {simulation.cycles} cycles and says {program.cycles}", None)
    for tensor in program.tensors:
        if tensor.role == "out":
            collect(tensor, buffers, simulation.chips, findings)
    findings.include(broken(program, checks))
    return simulation
