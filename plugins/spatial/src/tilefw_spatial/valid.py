"""Whether a program is one that the machine can be given: queues that there are, maps of lanes, arrays inside the slices.

What its instructions do together in time is not judged here: the simulators and the checker do that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tilefw.api import DTYPES
from tilefw.api.integers import ceil_div
from tilefw_spatial.checked import CHECK, arguments
from tilefw_spatial.isa import OPS, TYPES, Use
from tilefw_spatial.isa.wellformed import faults, misplaced
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import (
    AxisMap,
    BoundParameter,
    ChipCode,
    HostTensor,
    QueueInst,
    RowAllocation,
    SliceRows,
    SpatialProgram,
    Transfer,
)

ROLES = ("in", "out", "const")
KINDS = ("pointer", "scalar", CHECK)
MAPS = 4096  # what the word's field can name


def program_faults(machine: Machine, program: SpatialProgram) -> Iterator[str]:
    """All that is wrong with a program, each with its location."""
    if not 1 <= len(program.chips) <= machine.node_chips:
        yield f"a program is for 1 to {machine.node_chips} chips, not {len(program.chips)}"
    if program.cycles < 0 or any(extent < 0 for extent in program.grid):
        yield "cycles and the grid's extents are not negative"
    for chip, code in enumerate(program.chips):
        for fault in chip_faults(machine, code):
            yield f"chip {chip}, {fault}"
    for parameter in program.parameters:
        if parameter.kind not in KINDS:
            yield f"parameter {parameter.name} is a {parameter.kind}, none of {', '.join(KINDS)}"
        if parameter.dtype not in DTYPES:
            yield f"parameter {parameter.name}: there is no element type {parameter.dtype}"
        if parameter.kind == CHECK and not 0 < parameter.nbytes <= machine.capacity:
            yield f"parameter {parameter.name} has {parameter.nbytes} flags"
    if arguments(program) != list(program.parameters[: len(arguments(program))]):
        yield "parameters that are checks come after all others"
    for tensor in program.tensors:
        for fault in tensor_faults(machine, tensor, program.parameters, len(program.chips)):
            yield f"tensor {tensor.name}: {fault}"


def chip_faults(machine: Machine, code: ChipCode) -> Iterator[str]:
    """What is wrong with one chip's queues and maps."""
    if len(code.maps) > MAPS:
        yield f"{len(code.maps)} maps: an instruction can name {MAPS}"
    for number, lanes in enumerate(code.maps):
        fault = map_fault(machine, lanes)
        if fault:
            yield f"map {number}: {fault}"
    for name, insts in code.queues.items():
        if name not in machine.queues:
            yield f"there is no queue {name}"
            continue
        for index, inst in enumerate(insts):
            fault = inst_fault(machine, name, insts, index, code.maps)
            if fault:
                yield f"{name}, instruction {index} ({inst.op}): {fault}"


def map_fault(machine: Machine, lanes: Sequence[int]) -> str | None:
    """Why a map of lanes is none, or None."""
    if len(lanes) != machine.lanes:
        return f"{len(lanes)} lanes instead of {machine.lanes}"
    wrong = next((lane for lane in lanes if not -1 <= lane < machine.lanes), None)
    return None if wrong is None else f"there is no lane {wrong}"


def inst_fault(machine: Machine, queue: str, insts: Sequence[QueueInst], index: int, maps: Sequence[Sequence[int]]) -> str | None:
    """The first thing that is wrong with an instruction in its queue, or None."""
    inst = insts[index]
    found = _first_fault(machine, inst) or misplaced(machine.queues[queue], inst)
    if found:
        return found
    if inst.op == "REP":
        return _repeat_fault(inst, insts[index - 1] if index else None)
    if any(field.use is Use.LANES for field in OPS[inst.op][0].fields):
        return _lanes_fault(machine, inst, maps)
    return None


@lru_cache(maxsize=1 << 16)
def _first_fault(machine: Machine, inst: QueueInst) -> str | None:
    """Kept, as a program is judged when it is checked, written and read, and many of its instructions are equal."""
    return next(faults(machine, inst), None)


def _repeat_fault(inst: QueueInst, before: QueueInst | None) -> str | None:
    if before is None or before.op not in OPS or OPS[before.op][0].unit == "ICU":
        return "there is nothing before it that can be repeated"
    if inst.imm < before.burst:
        return f"a burst of {before.burst} cannot be repeated each {inst.imm} cycles"
    return None


def _lanes_fault(machine: Machine, inst: QueueInst, maps: Sequence[Sequence[int]]) -> str | None:
    if inst.map >= len(maps):
        return f"there is no map {inst.map}: the chip has {len(maps)}"
    if inst.op == "DST":
        size = machine.superlane_lanes
        crossing = next((i for i, lane in enumerate(maps[inst.map]) if lane >= 0 and lane // size != i // size), None)
        return None if crossing is None else f"map {inst.map} leaves the superlane at lane {crossing}"
    return None


# --- arrays ----------------------------------------------------------------------------------------------------------------


def tensor_faults(machine: Machine, tensor: HostTensor, parameters: Sequence[BoundParameter], chips: int) -> Iterator[str]:
    """What is wrong with an array: its type, allocation, transfers, data."""
    if tensor.role not in ROLES:
        yield f"its role is {tensor.role}, none of {', '.join(ROLES)}"
    if tensor.allocation.dtype not in TYPES:
        yield f"there is no element type {tensor.allocation.dtype}"
        return
    yield from _allocation_faults(machine, tensor.allocation, chips)
    for number, transfer in enumerate(tensor.transfers):
        if not 0 <= transfer.fill < 1 << 8 * TYPES[tensor.allocation.dtype].nbytes:
            yield f"transfer {number}: {transfer.fill:#x} are not the bits of one {tensor.allocation.dtype}"
        for fault in _transfer_faults(machine, transfer, parameters):
            yield f"transfer {number}: {fault}"
    if (tensor.role == "const") != (tensor.data is not None):
        yield "a const has data, and nothing else has"
    if tensor.data is not None and tensor.data.shape != (tensor.allocation.vectors, machine.lanes):
        yield f"data of shape {list(tensor.data.shape)} instead of {[tensor.allocation.vectors, machine.lanes]}"
    if tensor.data is not None and tensor.data.dtype != TYPES[tensor.allocation.dtype].numpy:
        yield f"data of {tensor.data.dtype} instead of {TYPES[tensor.allocation.dtype].numpy}"


def _allocation_faults(machine: Machine, allocation: RowAllocation, chips: int) -> Iterator[str]:
    vectors, segment, groups = allocation.vectors, allocation.segment, allocation.groups
    if vectors < 1 or groups < 1 or segment < groups or segment % groups:
        yield f"{vectors} vectors in segments of {segment} and {groups} groups"
        return
    if len(allocation.planes) != TYPES[allocation.dtype].nbytes:
        yield f"{len(allocation.planes)} byte planes instead of {TYPES[allocation.dtype].nbytes}"
    blocks = ceil_div(allocation.vectors, allocation.segment) * allocation.groups
    for plane in allocation.planes:
        if len(plane) != blocks:
            yield f"{len(plane)} row blocks of a byte plane instead of {blocks}"
        for number, rows in enumerate(plane):
            yield from _rows_faults(machine, rows, _rows_at(allocation, number), chips)


def _rows_at(allocation: RowAllocation, index: int) -> int:
    """How many rows an array has in one of its row blocks."""
    segment, group = divmod(index, allocation.groups)
    left = min(allocation.segment, allocation.vectors - segment * allocation.segment) - group
    return max(0, ceil_div(left, allocation.groups))


def _rows_faults(machine: Machine, rows: SliceRows, count: int, chips: int) -> Iterator[str]:
    if rows.slice not in machine.queues or machine.queues[rows.slice].kind != "MEM":
        yield f"there is no slice {rows.slice}"
    if not 0 <= rows.chip < chips:
        yield f"there is no chip {rows.chip}"
    if not 0 <= rows.bank < machine.banks:
        yield f"there is no bank {rows.bank}"
    if not 0 <= rows.row <= machine.rows - count:
        yield f"{count} rows from row {rows.row} of {rows.slice} leave the bank of {machine.rows}"


def _transfer_faults(machine: Machine, transfer: Transfer, parameters: Sequence[BoundParameter]) -> Iterator[str]:
    if not 0 <= transfer.parameter < len(parameters) or parameters[transfer.parameter].kind == "scalar":
        yield f"parameter {transfer.parameter} is no pointer"
    if not 1 <= transfer.lanes <= machine.lanes:
        yield f"{transfer.lanes} lanes of {machine.lanes}"
    if transfer.explicit is not None and (transfer.axes or transfer.explicit.ndim != 2 or transfer.explicit.shape[1] != 3):
        yield "what is explicit has no axes, and rows of element, vector and lane"
    for axis in transfer.axes:
        yield from _axis_faults(axis)


def _axis_faults(axis: AxisMap) -> Iterator[str]:
    if axis.extent < 1 or axis.offsets.shape != (axis.extent,):
        yield f"an axis of {axis.extent} with {axis.offsets.size} offsets"
    if axis.valid is not None and axis.valid.shape != (axis.extent,):
        yield f"an axis of {axis.extent} with validity of {axis.valid.size}"
