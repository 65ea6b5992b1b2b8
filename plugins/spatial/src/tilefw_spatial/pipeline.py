"""The stages from a kernel to its program, on one page: tile IR of one launch -> graph -> stream operations -> schedule -> program.

Each stage is a plain function of what the one before it made; none knows of the stages around it. The count of cycles is known when
`schedule` returns; `emit` only writes down what was decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilefw.api import DTYPES, CapacityError, Entry, InternalError, LaunchArguments, Place
from tilefw.api.ir import FuncOp, ModuleOp, entry_of, place_of
from tilefw_spatial.arrange import arrange
from tilefw_spatial.checked import CHECK
from tilefw_spatial.elements import on_machine_types
from tilefw_spatial.emit import emit
from tilefw_spatial.footprint import check as check_footprint
from tilefw_spatial.graph import BoundsCheck, Graph
from tilefw_spatial.index_tables import LARGEST, TooLarge
from tilefw_spatial.limits import beyond
from tilefw_spatial.lower import check_grid, lower
from tilefw_spatial.lower.constant_tile import canonical
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition import partition
from tilefw_spatial.program import BoundParameter, SpatialProgram
from tilefw_spatial.schedule import ChipSchedule, schedule, schedule_node
from tilefw_spatial.supported import check_machine


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """What the stages made of one kernel: a schedule for each chip, and the program of all."""

    entry: Entry
    schedules: Sequence[ChipSchedule]
    program: SpatialProgram


def compile_kernel(
    module: ModuleOp, launch: LaunchArguments, machine: Machine, chips: int = 1, split: str = "n", fusion: bool = True
) -> CompiledLaunch:
    """The program of the module's kernel for one launch, on as many chips; `fusion` lets sums take products unrounded. Raises
    UnsupportedError and CapacityError, and CompileError for a machine that the stages are not made for."""
    check_machine(machine)
    kernel = _kernel(module)
    entry, place = entry_of(kernel), place_of(kernel)
    try:
        graph = lower(module, launch, fusion)
        check_footprint(graph, machine, [parameter.name for parameter in entry.parameters], chips, place)
        check_grid(module, launch)
        timed = _timed(on_machine_types(graph), machine, chips, split)
    except TooLarge as error:
        what = "the elements of an access are listed one by one, as they are not affine"
        raise beyond(what, error.needed, LARGEST, "numbers", place) from None
    except CapacityError as error:
        error.place = error.place or place
        raise
    parameters = [*_parameters(entry, launch), *map(bound_flags, graph.checks)]
    program = emit(timed, entry.name, launch.grid, parameters, metadata_of(timed, graph.checks))
    return CompiledLaunch(entry, timed, program)


def _timed(graph: Graph, machine: Machine, chips: int, split: str) -> Sequence[ChipSchedule]:
    if chips == 1:
        return [schedule(arrange(graph, machine), machine)]
    return schedule_node(partition(graph, chips, split, machine), machine)


def _kernel(module: ModuleOp) -> FuncOp:
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    if len(functions) != 1:
        raise InternalError(f"a module of {len(functions)} functions: calls are inlined before a backend sees them")
    return functions[0]


def _parameters(entry: Entry, launch: LaunchArguments) -> list[BoundParameter]:
    """The kernel's parameters with what this launch bound them to."""
    found: list[BoundParameter] = []
    numbers: dict[int, int] = {}  # of storages, in the order of parameters: the launch's own depend on addresses
    for parameter in entry.parameters:
        if parameter.kind == "scalar":
            value = canonical(launch.scalars[parameter.name], DTYPES[parameter.dtype])
            found.append(BoundParameter(parameter.name, "scalar", parameter.dtype, parameter.size, value))
        else:
            buffer = launch.buffers.get(parameter.name)
            nbytes = 0 if buffer is None else buffer.nbytes - buffer.offset
            storage = None if buffer is None else (numbers.setdefault(buffer.storage, len(numbers)), buffer.offset)
            found.append(BoundParameter(parameter.name, "pointer", parameter.dtype, nbytes, None, storage))
    return found


def bound_flags(check: BoundsCheck) -> BoundParameter:
    """A check's flags, a byte each: memory that the device has, and no argument."""
    return BoundParameter(check.what, CHECK, "int1", check.elements)


def metadata_of(timed: Sequence[ChipSchedule], checks: Sequence[BoundsCheck]) -> Mapping[str, object]:
    found: dict[str, object] = {"memory_bytes": max(chip.used for chip in timed)}
    if checks:
        found["checks"] = [_site(check.place) for check in checks]
    return found


def _site(place: Place | None) -> list[object]:
    """A source location as `checked.place_of` reads it."""
    return [] if place is None else [place.file, place.line, place.column, place.end_column, place.text]
