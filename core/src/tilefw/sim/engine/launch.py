"""A launch made ready: what the chip and the program allow is checked, and the checks that observe it are made."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.device import LaunchOptions
from tilefw.api.errors import LaunchError
from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.active import active_checks, history_of, observers_of
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.frame import all_ones, zeros
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.engine.load import LoadedProgram
from tilefw.sim.engine.state import Diagnostics, ExecutionOrder, Geometry, LaunchMemory, LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.matrix.unit import MatrixUnit
from tilefw.sim.memory.regions import GlobalMemory, Region
from tilefw.sim.program import Program, SimulatedChip
from tilefw.sim.steps.prepare import FirstRegisters, Prepared
from tilefw.sim.tracking.history import History


@dataclass(slots=True)
class RunningLaunch:
    """One launch. `first_values` and `first_poison` are what every slot holds at the start, before `Program.initial`, and its
    undefined bits; batches share the arrays. `arguments` is the packed argument block."""

    state: LaunchState
    prepared: Prepared
    history: History | None
    lanes: NumpyLanes
    arguments: bytes
    first_values: list[Array]
    first_poison: list[Array | None]

    @property
    def chip(self) -> SimulatedChip:
        return self.state.chip


def make_launch(
    loaded: LoadedProgram, memory: GlobalMemory, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: bytes,
    options: LaunchOptions, joint: JointAgents | None = None,
) -> RunningLaunch:
    """A launch of `grid` workgroups of `block` threads. Raises LaunchError."""
    chip, program = loaded.chip, loaded.program
    dynamic = options.dynamic_shared or 0
    geometry = Geometry(grid, block, chip.wave_size, program.cluster)
    own = LaunchMemory(
        memory, _parameters(arguments), loaded.constants, loaded.shared + dynamic, dynamic, loaded.local, loaded.spaces
    )
    _check_size(chip, program, geometry)
    _check_memory(chip, own)
    classes = active_checks(options)
    prepared = loaded.steps(any(c.step is not Check.step for c in classes), any(c.follows_offsets for c in classes))
    diagnostics = Diagnostics()
    schedule = ExecutionOrder(prepared.blocks, options, diagnostics)
    state = LaunchState(chip, program, options, geometry, own, schedule, diagnostics, joint)
    checks = [made for made in (c.made_for(state) for c in classes) if made is not None]
    diagnostics.observers = observers_of(checks)
    history = history_of(checks, program, prepared.blocks, loaded.histories)
    values, poison = _first_registers(prepared, diagnostics.observers.follows_undefined)
    lanes = NumpyLanes(state, MatrixUnit(options.numerics == "hw"))
    return RunningLaunch(state, prepared, history, lanes, arguments, values, poison)


def _first_registers(prepared: Prepared, undefined: bool) -> FirstRegisters:
    found = prepared.first_registers.get(undefined)
    if found is None:
        found = prepared.first_registers[undefined] = _made_registers(prepared, undefined)
    return found


def _made_registers(prepared: Prepared, undefined: bool) -> FirstRegisters:
    constants, declared = prepared.constants, len(prepared.program.registers)
    widths = set(prepared.slot_bits)
    empty = {bits: zeros(bits) for bits in widths}
    marks = {bits: all_ones(empty[bits]) if undefined else None for bits in widths}
    values = [constants.get(slot, empty[bits]) for slot, bits in enumerate(prepared.slot_bits)]
    return values, [marks[bits] if slot < declared else None for slot, bits in enumerate(prepared.slot_bits)]


def _parameters(arguments: bytes) -> Region:
    region = Region(0, len(arguments), label="the parameters")
    region.initialise(0, arguments)
    region.poison = None
    return region


def _check_size(chip: SimulatedChip, program: Program, geometry: Geometry) -> None:
    if any(n < 1 for n in geometry.block) or geometry.threads > chip.max_threads:
        raise LaunchError(
            f"a workgroup of {geometry.block} threads", code="TFW0342", note=f"{chip.name} takes 1 to {chip.max_threads} threads"
        )
    if any(n < 1 or n > limit for n, limit in zip(geometry.grid, chip.max_grid, strict=True)):
        raise LaunchError(f"a grid of {geometry.grid} workgroups", code="TFW0343", note=f"{chip.name} takes 1 to {chip.max_grid}")
    if geometry.cluster_workgroups > chip.max_cluster or any(n % c for n, c in zip(geometry.grid, geometry.cluster, strict=True)):
        raise LaunchError(
            f"a grid of {geometry.grid} workgroups in clusters of {geometry.cluster}", code="TFW0343",
            note=f"{chip.name} takes clusters of up to {chip.max_cluster} workgroups, a whole number of them along each axis",
        )
    most = chip.max_threads_along
    if most and any(n * threads > most for n, threads in zip(geometry.grid, geometry.block, strict=True)):
        raise LaunchError(
            f"a grid of {geometry.grid} workgroups of {geometry.block} threads", code="TFW0343",
            note=f"{chip.name} takes {most} threads along an axis",
        )
    required = program.required_workgroup
    if required is not None and required != geometry.block:
        raise LaunchError(f"{program.name} needs workgroups of {required}, not {geometry.block} threads", code="TFW0342")
    if program.max_workgroup is not None and geometry.threads > program.max_workgroup:
        raise LaunchError(
            f"{program.name} takes at most {program.max_workgroup} threads a workgroup, not {geometry.threads}", code="TFW0342"
        )


def _check_memory(chip: SimulatedChip, memory: LaunchMemory) -> None:
    if memory.dynamic_shared < 0 or memory.shared_bytes > chip.shared_bytes:
        raise LaunchError(
            f"{memory.shared_bytes} bytes of shared memory a workgroup", code="TFW0344", note=f"{chip.name} has {chip.shared_bytes}"
        )
    if memory.local_bytes > chip.local_bytes:
        raise LaunchError(
            f"{memory.local_bytes} bytes of local memory a thread", code="TFW0344", note=f"{chip.name} has {chip.local_bytes}"
        )
    for space in chip.spaces:
        if memory.spaces[space.name] > space.limit:
            raise LaunchError(
                f"{memory.spaces[space.name]} bytes of {space.name} memory a {space.owner}", code="TFW0344",
                note=f"{chip.name} has {space.limit}",
            )
