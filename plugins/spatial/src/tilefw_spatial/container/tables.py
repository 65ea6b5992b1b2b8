"""The tables of a program as the container holds them: JSON, with arrays apart in a section of their own."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.container import reading
from tilefw_spatial.container.reading import ContainerNode, ContainerReader, Damaged
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import AxisMap, BoundParameter, ChipCode, HostTensor, RowAllocation, SliceRows, SpatialProgram, Transfer

Array = NDArray[Any]

_ARRAY = struct.Struct("<8sI")
# Types of arrays in the file beside those of elements; int1 stands for the truth values of an axis too. Offsets are mostly regular:
# `runs64` holds an int64 array of one dimension as rows of first, step and count, where that is shorter.
_INT64 = "int64"
_RUNS = "runs64"
_LONGEST = 1 << 22  # numbers that the runs of one array may stand for; longer ones are written whole
_MOST = 1 << 26  # numbers of all arrays: a small file cannot ask for more than 512 MB
_DIMENSIONS = 4

# --- writing ---------------------------------------------------------------------------------------------------------------


def to_json(program: SpatialProgram, arrays: list[bytes]) -> dict[str, Any]:
    """A program without its chips; the tables' arrays are appended to `arrays`, and referred to by their number there."""
    return {
        "entry": program.entry, "machine": program.machine, "grid": list(program.grid), "cycles": program.cycles,
        "parameters": [_parameter(p) for p in program.parameters], "tensors": [_tensor(t, arrays) for t in program.tensors],
        "metadata": dict(program.metadata),
    }


def _parameter(parameter: BoundParameter) -> dict[str, Any]:
    value = parameter.value.hex() if isinstance(parameter.value, float) else parameter.value
    return {"name": parameter.name, "kind": parameter.kind, "dtype": parameter.dtype, "nbytes": parameter.nbytes, "value": value,
            "storage": None if parameter.storage is None else list(parameter.storage)}


def _tensor(tensor: HostTensor, arrays: list[bytes]) -> dict[str, Any]:
    allocation = tensor.allocation
    planes = [[[rows.slice, rows.bank, rows.row, rows.chip] for rows in plane] for plane in allocation.planes]
    return {
        "name": tensor.name, "role": tensor.role, "dtype": allocation.dtype, "vectors": allocation.vectors,
        "groups": allocation.groups, "segment": allocation.segment, "planes": planes,
        "transfers": [_transfer(t, arrays) for t in tensor.transfers],
        **_reference("data", tensor.data, allocation.dtype, arrays),
    }


def _transfer(transfer: Transfer, arrays: list[bytes]) -> dict[str, Any]:
    axes = [
        {"extent": axis.extent, "vector": axis.vector, "lane": axis.lane, **_reference("offsets", axis.offsets, _INT64, arrays),
         **_reference("valid", axis.valid, "int1", arrays)}
        for axis in transfer.axes
    ]
    return {
        "parameter": transfer.parameter, "base": transfer.base, "lanes": transfer.lanes, "chunk": transfer.chunk,
        "fill": transfer.fill, "axes": axes, **_reference("explicit", _columns(transfer.explicit), _INT64, arrays),
    }


def _columns(explicit: Array | None) -> Array | None:
    """The elements, then the vectors, then the lanes: each regular for itself."""
    return None if explicit is None else explicit.T.reshape(-1)


def _reference(key: str, array: Array | None, dtype: str, arrays: list[bytes]) -> dict[str, int]:
    if array is None:
        return {}
    if dtype == _INT64 and array.ndim == 1 and 2 < array.size < _LONGEST:
        runs = _runs(array)
        if runs.size < array.size:
            dtype, array = _RUNS, runs
    shape = struct.pack(f"<{array.ndim}I", *array.shape)
    elements = np.ascontiguousarray(array, _numpy(dtype)).tobytes()
    arrays.append(_ARRAY.pack(dtype.encode().ljust(8, b"\0"), array.ndim) + shape + elements)
    return {key: len(arrays) - 1}


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(np.int64) if dtype in (_INT64, _RUNS) else TYPES[dtype].numpy


def _runs(array: Array) -> Array:
    """[runs, 3]: first, step and count; a run ends where the step to the next number is another than the one before."""
    steps = np.diff(array)
    begins = np.concatenate(([0], np.flatnonzero(steps[1:] != steps[:-1]) + 2))
    counts = np.diff(begins, append=array.size)
    after = np.append(steps, 0)[begins]
    return np.stack((array[begins], np.where(counts > 1, after, 0), counts), axis=1)


# --- reading ---------------------------------------------------------------------------------------------------------------


def document(data: bytes) -> ContainerNode:
    """The JSON of the tables."""
    return reading.document(data, "META").keys("entry", "machine", "grid", "cycles", "parameters", "tensors", "metadata")


def machine_of(found: ContainerNode) -> Machine:
    """The packaged machine file that a program names."""
    name = found["machine"].str()
    try:
        return load(name)
    except (FileNotFoundError, ValueError):
        raise Damaged(f"there is no machine file {name[:40]!r}") from None


def arrays(data: bytes) -> list[Array]:
    """The arrays of the section."""
    reader, found, total = ContainerReader(data, "DATA"), list[Array](), 0
    while not reader.done:
        found.append(_array(reader, f"array {len(found)}"))
        total += found[-1].size
        if total > _MOST:
            raise Damaged(f"the arrays of DATA have more than {_MOST} numbers")
    return found


def _array(reader: ContainerReader, where: str) -> Array:
    raw, dimensions = reader.unpack(_ARRAY, where)
    name = raw.rstrip(b"\0").decode("latin-1")
    if name not in TYPES and name not in (_INT64, _RUNS):
        raise Damaged(f"{where}: there is no element type {name!r}")
    if dimensions > _DIMENSIONS:
        raise Damaged(f"{where} has {dimensions} dimensions")
    shape = reader.unpack(struct.Struct(f"<{dimensions}I"), f"shape of {where}")
    elements = reader.take(math.prod(shape) * _numpy(name).itemsize, f"elements of {where}")
    if name == "int1" and elements.strip(b"\0\1"):
        raise Damaged(f"{where} has truth values that are neither 0 nor 1")
    found = np.frombuffer(elements, _numpy(name)).reshape(shape)
    return _of_runs(found, where) if name == _RUNS else found


def _of_runs(runs: Array, where: str) -> Array:
    """The numbers of runs. Raises Damaged for what are none, too many, or beyond 64 bits."""
    if runs.ndim != 2 or runs.shape[1] != 3:
        raise Damaged(f"{where}: runs have a first number, a step and a count")
    rows = runs.tolist()
    if any(count < 1 for _, _, count in rows) or sum(count for _, _, count in rows) > _LONGEST:
        raise Damaged(f"{where}: runs of fewer than one number, or of more than {_LONGEST} in all")
    if not all(-reading.INT64 <= first + step * (count - 1) < reading.INT64 for first, step, count in rows):
        raise Damaged(f"{where}: runs that leave 64 bits")
    parts = [first + step * np.arange(count, dtype=np.int64) for first, step, count in rows]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def from_json(found: ContainerNode, data: Sequence[Array], chips: tuple[ChipCode, ...], machine: Machine) -> SpatialProgram:
    """The program of the tables and its chips' code. Raises Damaged; what the numbers mean is `valid`'s to judge."""
    grid = tuple(node.int(0, 1 << 31) for node in found["grid"].list(3))
    parameters = tuple(_read_parameter(node) for node in found["parameters"].list())
    tensors = tuple(_read_tensor(node, data) for node in found["tensors"].list())
    return SpatialProgram(
        found["entry"].str(), machine.name, machine.hash, (grid[0], grid[1], grid[2]), parameters, tensors, chips,
        found["cycles"].int(0), found["metadata"].object(),
    )


def _read_parameter(node: ContainerNode) -> BoundParameter:
    node.keys("name", "kind", "dtype", "nbytes", "value", "storage")
    return BoundParameter(
        node["name"].str(), node["kind"].str(), node["dtype"].str(), node["nbytes"].int(0), _value(node["value"]),
        _storage(node["storage"]),
    )


def _storage(node: ContainerNode) -> tuple[int, int] | None:
    if node.value is None:
        return None
    number, offset = node.list(2)
    return number.int(0), offset.int(0)


def _value(node: ContainerNode) -> int | float | None:
    if node.value is None:
        return None
    if not isinstance(node.value, str):
        return node.int()
    try:
        return float.fromhex(node.value)
    except (ValueError, OverflowError):
        raise Damaged(f"{node.path} is no number") from None


def _read_tensor(node: ContainerNode, data: Sequence[Array]) -> HostTensor:
    node.keys("name", "role", "dtype", "vectors", "groups", "segment", "planes", "transfers", "data")
    planes = tuple(tuple(_read_rows(rows) for rows in plane.list()) for plane in node["planes"].list())
    allocation = RowAllocation(node["dtype"].str(), node["vectors"].int(1), planes, node["groups"].int(1), node["segment"].int(1))
    transfers = tuple(_read_transfer(transfer, data) for transfer in node["transfers"].list())
    return HostTensor(node["name"].str(), node["role"].str(), allocation, transfers, _referred(node, "data", data))


def _read_rows(node: ContainerNode) -> SliceRows:
    slice_, bank, row, chip = node.list(4)
    return SliceRows(slice_.str(), bank.int(0), row.int(0), chip.int(0))


def _read_transfer(node: ContainerNode, data: Sequence[Array]) -> Transfer:
    node.keys("parameter", "base", "lanes", "chunk", "fill", "axes", "explicit")
    axes = tuple(_read_axis(axis, data) for axis in node["axes"].list())
    return Transfer(
        node["parameter"].int(0), node["base"].int(), axes, node["lanes"].int(1), node["chunk"].int(),
        _explicit(node, data), node["fill"].int(0, 0xFFFFFFFF),
    )


def _explicit(node: ContainerNode, data: Sequence[Array]) -> Array | None:
    found = _referred(node, "explicit", data, _INT64)
    if found is not None and (found.ndim != 1 or found.size % 3):
        raise Damaged(f"{node.path}.explicit is not elements, vectors and lanes, as many of each")
    return None if found is None else np.ascontiguousarray(found.reshape(3, -1).T)


def _read_axis(node: ContainerNode, data: Sequence[Array]) -> AxisMap:
    node.keys("extent", "vector", "lane", "offsets", "valid")
    offsets = _referred(node, "offsets", data, _INT64)
    if offsets is None:
        raise Damaged(f"{node.path} has no offsets")
    return AxisMap(node["extent"].int(1), offsets, node["vector"].int(), node["lane"].int(), _referred(node, "valid", data, "int1"))


def _referred(node: ContainerNode, key: str, data: Sequence[Array], dtype: str = "") -> Array | None:
    if not node.has(key):
        return None
    found = data[node[key].int(0, len(data) - 1)]
    if dtype and found.dtype != _numpy(dtype):
        raise Damaged(f"{node.path}.{key} is of {found.dtype}, not of {dtype}")
    return found
