"""The tables of a program as the container holds them: JSON, with arrays apart in a section of their own."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial import reading
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine, load
from tilefw_spatial.program import AxisMap, ChipCode, Home, Parameter, Program, Rows, Tensor, Transfer
from tilefw_spatial.reading import Damaged, Node, Reader

Array = NDArray[Any]

_ARRAY = struct.Struct("<8sI")
# Types of arrays in the file beside those of elements; int1 stands for the truth values of an axis too.
_INT64 = "int64"
_DIMENSIONS = 4

# --- writing ---------------------------------------------------------------------------------------------------------------


def to_json(program: Program, arrays: list[bytes]) -> dict[str, Any]:
    """A program without its chips; the tables' arrays are appended to `arrays`, and referred to by their number there."""
    return {
        "entry": program.entry, "machine": program.machine, "grid": list(program.grid), "cycles": program.cycles,
        "parameters": [_parameter(p) for p in program.parameters], "tensors": [_tensor(t, arrays) for t in program.tensors],
        "metadata": dict(program.metadata),
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    value = parameter.value.hex() if isinstance(parameter.value, float) else parameter.value
    return {"name": parameter.name, "kind": parameter.kind, "dtype": parameter.dtype, "nbytes": parameter.nbytes, "value": value}


def _tensor(tensor: Tensor, arrays: list[bytes]) -> dict[str, Any]:
    home = tensor.home
    planes = [[[rows.slice, rows.bank, rows.row, rows.chip] for rows in plane] for plane in home.planes]
    return {
        "name": tensor.name, "role": tensor.role, "dtype": home.dtype, "vectors": home.vectors, "groups": home.groups,
        "segment": home.segment, "planes": planes, "transfers": [_transfer(t, arrays) for t in tensor.transfers],
        **_reference("data", tensor.data, home.dtype, arrays),
    }


def _transfer(transfer: Transfer, arrays: list[bytes]) -> dict[str, Any]:
    axes = [
        {"extent": axis.extent, "vector": axis.vector, "lane": axis.lane, **_reference("offsets", axis.offsets, _INT64, arrays),
         **_reference("valid", axis.valid, "int1", arrays)}
        for axis in transfer.axes
    ]
    return {
        "parameter": transfer.parameter, "base": transfer.base, "lanes": transfer.lanes, "chunk": transfer.chunk,
        "fill": transfer.fill, "axes": axes, **_reference("explicit", transfer.explicit, _INT64, arrays),
    }


def _reference(key: str, array: Array | None, dtype: str, arrays: list[bytes]) -> dict[str, int]:
    if array is None:
        return {}
    shape = struct.pack(f"<{array.ndim}I", *array.shape)
    elements = np.ascontiguousarray(array, _numpy(dtype)).tobytes()
    arrays.append(_ARRAY.pack(dtype.encode().ljust(8, b"\0"), array.ndim) + shape + elements)
    return {key: len(arrays) - 1}


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(np.int64) if dtype == _INT64 else TYPES[dtype].numpy


# --- reading ---------------------------------------------------------------------------------------------------------------


def document(data: bytes) -> Node:
    """The JSON of the tables."""
    return reading.document(data, "META").keys("entry", "machine", "grid", "cycles", "parameters", "tensors", "metadata")


def machine_of(found: Node) -> Machine:
    """The packaged machine file that a program names."""
    name = found["machine"].str()
    try:
        return load(name)
    except (FileNotFoundError, ValueError):
        raise Damaged(f"there is no machine file {name[:40]!r}") from None


def arrays(data: bytes) -> list[Array]:
    """The arrays of the section."""
    reader, found = Reader(data, "DATA"), []
    while not reader.done:
        found.append(_array(reader, f"array {len(found)}"))
    return found


def _array(reader: Reader, where: str) -> Array:
    raw, dimensions = reader.unpack(_ARRAY, where)
    name = raw.rstrip(b"\0").decode("latin-1")
    if name not in TYPES and name != _INT64:
        raise Damaged(f"{where}: there is no element type {name!r}")
    if dimensions > _DIMENSIONS:
        raise Damaged(f"{where} has {dimensions} dimensions")
    shape = reader.unpack(struct.Struct(f"<{dimensions}I"), f"shape of {where}")
    elements = reader.take(math.prod(shape) * _numpy(name).itemsize, f"elements of {where}")
    if name == "int1" and elements.strip(b"\0\1"):
        raise Damaged(f"{where} has truth values that are neither 0 nor 1")
    return np.frombuffer(elements, _numpy(name)).reshape(shape)


def from_json(found: Node, data: Sequence[Array], chips: tuple[ChipCode, ...], machine: Machine) -> Program:
    """The program of the tables and its chips' code. Raises Damaged; what the numbers mean is `valid`'s to judge."""
    grid = tuple(node.int(0, 1 << 31) for node in found["grid"].list(3))
    parameters = tuple(_read_parameter(node) for node in found["parameters"].list())
    tensors = tuple(_read_tensor(node, data) for node in found["tensors"].list())
    return Program(
        found["entry"].str(), machine.name, machine.hash, (grid[0], grid[1], grid[2]), parameters, tensors, chips,
        found["cycles"].int(0), found["metadata"].object(),
    )


def _read_parameter(node: Node) -> Parameter:
    node.keys("name", "kind", "dtype", "nbytes", "value")
    return Parameter(node["name"].str(), node["kind"].str(), node["dtype"].str(), node["nbytes"].int(0), _value(node["value"]))


def _value(node: Node) -> int | float | None:
    if node.value is None:
        return None
    if not isinstance(node.value, str):
        return node.int()
    try:
        return float.fromhex(node.value)
    except (ValueError, OverflowError):
        raise Damaged(f"{node.path} is no number") from None


def _read_tensor(node: Node, data: Sequence[Array]) -> Tensor:
    node.keys("name", "role", "dtype", "vectors", "groups", "segment", "planes", "transfers", "data")
    planes = tuple(tuple(_read_rows(rows) for rows in plane.list()) for plane in node["planes"].list())
    home = Home(node["dtype"].str(), node["vectors"].int(1), planes, node["groups"].int(1), node["segment"].int(1))
    transfers = tuple(_read_transfer(transfer, data) for transfer in node["transfers"].list())
    return Tensor(node["name"].str(), node["role"].str(), home, transfers, _referred(node, "data", data))


def _read_rows(node: Node) -> Rows:
    slice_, bank, row, chip = node.list(4)
    return Rows(slice_.str(), bank.int(0), row.int(0), chip.int(0))


def _read_transfer(node: Node, data: Sequence[Array]) -> Transfer:
    node.keys("parameter", "base", "lanes", "chunk", "fill", "axes", "explicit")
    axes = tuple(_read_axis(axis, data) for axis in node["axes"].list())
    return Transfer(
        node["parameter"].int(0), node["base"].int(), axes, node["lanes"].int(1), node["chunk"].int(),
        _referred(node, "explicit", data, _INT64), node["fill"].int(0, 0xFFFFFFFF),
    )


def _read_axis(node: Node, data: Sequence[Array]) -> AxisMap:
    node.keys("extent", "vector", "lane", "offsets", "valid")
    offsets = _referred(node, "offsets", data, _INT64)
    if offsets is None:
        raise Damaged(f"{node.path} has no offsets")
    return AxisMap(node["extent"].int(1), offsets, node["vector"].int(), node["lane"].int(), _referred(node, "valid", data, "int1"))


def _referred(node: Node, key: str, data: Sequence[Array], dtype: str = "") -> Array | None:
    if not node.has(key):
        return None
    found = data[node[key].int(0, len(data) - 1)]
    if dtype and found.dtype != _numpy(dtype):
        raise Damaged(f"{node.path}.{key} is of {found.dtype}, not of {dtype}")
    return found
