"""A simulator as a device: arguments and launches, the same for every chip of lanes; a plugin decodes its artifacts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.checks import CHECKS
from tilefw.api.device import Argument, BufferView, DescribedArray, JointLaunch, LaunchOptions, LaunchReport
from tilefw.api.errors import CodeError, LaunchError
from tilefw.api.garbage_collection import paused
from tilefw.argument_block import argument_block
from tilefw.sim.engine.joint import run_jointly
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.engine.launch import RunningLaunch
from tilefw.sim.engine.load import LoadedProgram, load_program
from tilefw.sim.engine.run import made_ready, run
from tilefw.sim.memory.buffers import SimulatedBuffers
from tilefw.sim.memory.regions import GlobalMemory
from tilefw.sim.program import OffsetPromises, Program, SimulatedChip

Decoders = Mapping[str, Callable[[], Program]]
"""For each entry, by name, what decodes it; asked when the entry is first launched."""


@dataclass(slots=True)
class SimulatedModule:
    """A loaded artifact: each entry is decoded when it is first launched. `globals` are the addresses that entries share."""

    artifact: Artifact
    decoders: Decoders
    entries: dict[str, LoadedProgram] = field(default_factory=dict)
    globals: dict[str, int] = field(default_factory=dict)


class SimulatorDevice(SimulatedBuffers, ABC):
    """`tilefw.api.Device` for artifacts of one `format` on one `chip`."""

    executor: Literal["sim"] = "sim"
    assembled = False
    checks = frozenset(CHECKS)
    joint_checks = checks
    observable = True
    samples = True
    traces = True
    format: ClassVar[str]

    def __init__(self, chip: SimulatedChip) -> None:
        super().__init__(GlobalMemory(first=chip.first_address, end=1 << chip.address_bits))
        self.name = chip.name
        self.chip = chip

    @abstractmethod
    def decoders(self, artifact: Artifact, name: str) -> Decoders:
        """The entries in an artifact of this device's format; `name` is its file's, for messages. Raises CodeError."""

    def load(self, artifact: Artifact) -> SimulatedModule:
        """Prepare an artifact; raises CodeError."""
        if artifact.format != self.format:
            raise CodeError(f"{self.name} runs code of the format '{self.format}', not '{artifact.format}'", "TFW0702")
        name = str(artifact.metadata.get("source_name", f"{artifact.target}.{artifact.format}"))
        return SimulatedModule(artifact, self.decoders(artifact, name))

    def launch(
        self, module: SimulatedModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions
    ) -> LaunchReport:
        """Run an entry; `args` are all its parameters in order. Raises LaunchError, CodeError."""
        return run(self._ready(module, entry, grid, args, options))

    def launch_jointly(self, launches: Sequence[JointLaunch], seed: int) -> Sequence[LaunchReport]:
        """As `JointDevice.launch_jointly`."""
        joint, ranks = JointAgents(), [one.rank for one in launches]
        ready = [self._ready(one.module, one.entry, one.grid, one.args, one.options, joint) for one in launches]
        joint.begin([one.state for one in ready], ranks, seed)
        return run_jointly(ready, ranks, self._memory, seed)

    def _ready(
        self, module: SimulatedModule, entry: str, grid: Sequence[int], args: Sequence[Argument], options: LaunchOptions,
        joint: JointAgents | None = None,
    ) -> RunningLaunch:
        loaded = self._entry(module, entry)
        declared = next((e for e in module.artifact.entries if e.name == entry), None)
        block = _workgroup_size(loaded, declared, options)
        if options.dynamic_shared is None and declared is not None:
            options = replace(options, dynamic_shared=max(0, declared.shared_bytes - loaded.shared))
        arguments = self.argument_block(loaded, args, grid, block, options)
        return made_ready(loaded, self._memory, grid, block, arguments, options, joint)

    def _entry(self, module: SimulatedModule, entry: str) -> LoadedProgram:
        loaded = module.entries.get(entry)
        if loaded is None:
            if entry not in module.decoders:
                note = "entries: " + (", ".join(module.decoders) or "none")
                raise LaunchError(f"no entry {entry!r}", code="TFW0346", note=note)
            with paused():
                program = module.decoders[entry]()
                program = replace(program, promises=_promises(module.artifact, program))
                loaded = module.entries[entry] = load_program(program, self.chip, self._memory, module.globals)
        return loaded

    def argument_block(
        self, loaded: LoadedProgram, args: Sequence[Argument], grid: Sequence[int], block: tuple[int, int, int],
        options: LaunchOptions,
    ) -> bytes:
        """The bytes that the entry finds its arguments in: each at its offset. A chip may add what it passes besides. Raises
        LaunchError."""
        program = loaded.program
        return argument_block(
            program.name, program.parameters, args, self._address, self.chip.address_bits, self.name, self.copy_descriptor
        )

    def copy_descriptor(self, array: DescribedArray) -> bytes:
        """What the chip's copy engine reads of an array; a plugin with such engines brings it. Raises LaunchError TFW0347."""
        raise LaunchError(f"{self.name} has no copy engine", code="TFW0347")

    def _address(self, view: BufferView) -> int:
        return self._memory.region(view.handle).base + view.offset


def _promises(artifact: Artifact, program: Program) -> OffsetPromises | None:
    """What the artifact of one of our compilers tells of an entry's offsets (`tilefw.machine.promises`); None where the program has
    other instructions at these numbers, as after an emitter that makes several of one."""
    instructions = program.instructions
    try:
        told = artifact.metadata.get("offsets", {}).get(program.name)
        if told is None or not all(
            0 <= number < len(instructions) and instructions[number].mnemonic.startswith(opcode)
            for named in told.values() for number, opcode, *_ in named
        ):
            return None
        wide: dict[int, tuple[int, ...]] = {}
        for number, _, destination in told["wide"]:
            if not 0 <= destination < len(instructions[number].destinations) - 1:
                raise ValueError(f"{instructions[number].text} has no pair of destinations {destination}")
            wide[number] = (*wide.get(number, ()), destination)
        exact, lost = (frozenset(number for number, _ in told[kind]) for kind in ("exact", "lost"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CodeError(f"what the artifact tells of {program.name}'s offsets cannot be read: {error}", "TFW0780") from None
    return OffsetPromises(exact, lost, wide)


def _workgroup_size(loaded: LoadedProgram, declared: Entry | None, options: LaunchOptions) -> tuple[int, int, int]:
    """Threads of a workgroup: the launch's, else what the code requires, else what the artifact says."""
    program = loaded.program
    block = options.block or program.required_workgroup or (declared.workgroup if declared is not None else None)
    if block is None or not all(block):
        raise LaunchError(
            f"the number of threads of a workgroup of {program.name} is missing", code="TFW0342",
            help="give `block` in the launch options",
        )
    sizes = [*(int(n) for n in block), 1, 1][:3]
    return sizes[0], sizes[1], sizes[2]
