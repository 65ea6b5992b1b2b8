"""Whether a program's tensors lie where the machine has rows: what a file says is not believed."""

from __future__ import annotations

from tilefw.api import CodeError
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home, Program, Tensor, Transfer


def validate(program: Program, machine: Machine) -> None:
    """Raises CodeError (TFW0839) where the tables of a program do not fit the machine."""
    for tensor in program.tensors:
        wrong = _home(tensor.home, machine, len(program.chips)) or _data(tensor, machine)
        for transfer in tensor.transfers:
            wrong = wrong or _transfer(transfer, tensor, program, machine)
        if wrong:
            raise CodeError(f"tensor {tensor.name}: {wrong}", code="TFW0839")
    for number, chip in enumerate(program.chips):
        for index, lanes in enumerate(chip.maps):
            if len(lanes) != machine.lanes or not all(-1 <= lane < machine.lanes for lane in lanes):
                raise CodeError(f"map {index} of chip {number} is not one of {machine.lanes} lanes", code="TFW0839")


def _home(home: Home, machine: Machine, chips: int) -> str | None:
    if home.dtype not in TYPES or len(home.planes) != TYPES[home.dtype].nbytes:
        return f"{len(home.planes)} byte planes of {home.dtype}"
    if home.groups < 1 or home.segment < 1 or home.segment % home.groups:
        return f"segments of {home.segment} vectors in {home.groups} places"
    places = -(-home.vectors // home.segment) * home.groups
    if any(len(plane) != places for plane in home.planes):
        return f"a plane has not {places} places"
    rows = -(-min(home.segment, home.vectors) // home.groups)
    for plane in home.planes:
        for at in plane:
            if not (at.slice.startswith("MEM.") and at.slice in machine.positions and 0 <= at.chip < chips):
                return f"there is no slice {at.slice} of chip {at.chip}"
            if not (0 <= at.bank < machine.banks and 0 <= at.row <= machine.rows - rows):
                return f"rows {at.row} to {at.row + rows} of bank {at.bank} of {at.slice}"
    return None


def _data(tensor: Tensor, machine: Machine) -> str | None:
    if tensor.data is None:
        return None
    shape, size = (tensor.home.vectors, machine.lanes), TYPES[tensor.home.dtype].nbytes
    return None if tensor.data.shape == shape and tensor.data.dtype.itemsize == size else "its data are not its vectors"


def _transfer(transfer: Transfer, tensor: Tensor, program: Program, machine: Machine) -> str | None:
    if not 0 <= transfer.parameter < len(program.parameters) or program.parameters[transfer.parameter].kind != "pointer":
        return f"parameter {transfer.parameter} is no pointer"
    if transfer.explicit is not None:
        table = transfer.explicit
        if table.ndim != 2 or table.shape[1] != 3:
            return "an explicit transfer has not three columns"
        fits = not len(table) or (
            table[:, 1:].min() >= 0 and table[:, 1].max() < tensor.home.vectors and table[:, 2].max() < machine.lanes
        )
        return None if fits else "an element goes to no vector of it"
    if not 1 <= transfer.lanes <= machine.lanes:
        return f"{transfer.lanes} lanes of a vector"
    return _axes(transfer, tensor)


def _axes(transfer: Transfer, tensor: Tensor) -> str | None:
    vector = position = 0
    for axis in transfer.axes:
        if axis.extent < 1 or len(axis.offsets) != axis.extent or (axis.valid is not None and len(axis.valid) != axis.extent):
            return "an axis has not as many offsets as it is long"
        if axis.vector < 0 or axis.lane < 0:
            return "an axis goes backwards"
        last = axis.extent - 1 if axis.valid is None else int(axis.valid.nonzero()[0].max(initial=0))
        vector, position = vector + last * axis.vector, position + last * axis.lane
    last_vector = vector + position // transfer.lanes * transfer.chunk
    return None if transfer.chunk >= 0 and last_vector < tensor.home.vectors else f"an element goes to vector {last_vector}"
