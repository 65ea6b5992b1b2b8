"""The directives of arrays: `.tensor` and what belongs to it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

import numpy as np

from tilefw.api import DTYPES
from tilefw_spatial.isa import TYPES, Use
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import AxisMap, BoundParameter, HostTensor, RowAllocation, SliceRows, Transfer
from tilefw_spatial.text.operands import read_row
from tilefw_spatial.text.runs import read_bytes, read_numbers
from tilefw_spatial.text.source import DIRECTIVE, TextSpan
from tilefw_spatial.valid import KINDS, ROLES, tensor_faults

# What one array may be large as: the rows of all slices of all chips of a node.
_VECTORS = 1 << 24


def keys(words: list[TextSpan], *names: str, optional: tuple[str, ...] = ()) -> dict[str, TextSpan]:
    """`name=value` words. Raises Fault for one that is missing, unknown or there twice."""
    found: dict[str, TextSpan] = {}
    for word in words:
        name, equals, value = word.text.partition("=")
        if not equals or name not in (*names, *optional) or name in found:
            raise word.fault(f"{word.text[:40]!r} is none of {'=, '.join((*names, *optional))}=, each once")
        found[name] = TextSpan(value, word.start + len(name) + 1)
    missing = [name for name in names if name not in found]
    if missing:
        raise (words[-1] if words else TextSpan("", 0)).fault(f"{missing[0]}= is missing")
    return found


def string(span: TextSpan) -> str:
    """A text in quotes, as JSON has it."""
    try:
        found = json.loads(span.text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, str):
        raise span.fault(f"a text in quotes is expected here, not {span.text[:40]!r}")
    return found


def words_of(span: TextSpan, least: int, form: str) -> list[TextSpan]:
    """The words of a directive, `least` or more; else an error with its `form`."""
    words = span.words()
    if len(words) < least:
        raise span.fault(f"the directive is {form}")
    return words


def read_parameter(span: TextSpan) -> BoundParameter:
    """`.parameter scalar "n" int32 value=5`."""
    kind, name, dtype, *rest = words_of(span, 3, '.parameter KIND "NAME" TYPE [value=V] [nbytes=N] [storage=S+OFFSET]')
    if kind.text not in KINDS:
        raise kind.fault(f"a parameter is a {' or '.join(KINDS)}", DIRECTIVE)
    found = keys(rest, optional=("value", "nbytes", "storage"))
    value = _value(found["value"]) if "value" in found else None
    if dtype.text not in DTYPES:
        raise dtype.fault(f"there is no element type {dtype.text[:40]}", DIRECTIVE)
    nbytes = found["nbytes"].number() if "nbytes" in found else 0
    storage = _storage(found["storage"]) if "storage" in found else None
    return BoundParameter(string(name), kind.text, dtype.text, nbytes, value, storage)


def _storage(span: TextSpan) -> tuple[int, int]:
    """`1+64`: 64 bytes into memory number 1."""
    parts = [part.number() for part in span.split("+")]
    if len(parts) != 2 or min(parts) < 0:
        raise span.fault("a storage is a number and an offset in bytes, as 0+64", DIRECTIVE)
    return parts[0], parts[1]


def _value(span: TextSpan) -> int | float:
    if re.fullmatch(r"-?\d{1,20}", span.text):
        return span.number()
    try:
        return float.fromhex(span.text)
    except (ValueError, OverflowError):
        raise span.fault(f"{span.text[:40]!r} is no number") from None


@dataclass
class TensorText:
    """An array while its directives are read; `head` is the `.tensor` line."""

    head: TextSpan
    name: str
    role: str
    dtype: str
    vectors: int
    groups: int
    segment: int
    planes: list[tuple[SliceRows, ...]] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)

    def finish(self, machine: Machine, parameters: list[BoundParameter], chips: int) -> HostTensor:
        """The array. Raises Fault at its head for what is wrong with the whole."""
        allocation = RowAllocation(self.dtype, self.vectors, tuple(self.planes), self.groups, self.segment)
        data = None
        if self.data or self.role == "const":
            raw = np.frombuffer(b"".join(self.data), TYPES[self.dtype].numpy)
            data = raw.reshape(-1, machine.lanes)
        tensor = HostTensor(self.name, self.role, allocation, tuple(self.transfers), data)
        for fault in tensor_faults(machine, tensor, parameters, chips):
            raise self.head.fault(f"tensor {self.name}: {fault}", DIRECTIVE)
        return tensor

    # --- directives below `.tensor`

    def plane(self, machine: Machine, span: TextSpan) -> None:
        """`.plane MEM.E1 b0:0, MEM.E2 b0:0 chip=1`."""
        self.planes.append(tuple(_rows(machine, place) for place in span.split()))

    def transfer(self, span: TextSpan) -> None:
        """`.transfer parameter=0 base=0 lanes=320 chunk=0 fill=0x0`."""
        found = {name: value.number() for name, value in keys(span.words(), "parameter", "base", "lanes", "chunk", "fill").items()}
        if not 0 <= found["fill"] <= 0xFFFFFFFF:
            raise span.fault("fill is the bits of one element", DIRECTIVE)
        self.transfers.append(Transfer(found["parameter"], found["base"], (), found["lanes"], found["chunk"], None, found["fill"]))

    def axis(self, span: TextSpan) -> None:
        """`.axis extent=4 vector=1 lane=0 offsets=0+1*4 valid=1+0*4`."""
        found = keys(span.words(), "extent", "vector", "lane", "offsets", optional=("valid",))
        extent = _extent(found["extent"])
        offsets = np.array(read_numbers(found["offsets"], extent), np.int64)
        valid = np.array(read_numbers(found["valid"], extent), np.int64) if "valid" in found else None
        if valid is not None and np.any((valid != 0) & (valid != 1)):
            raise found["valid"].fault("valid is 0 or 1", DIRECTIVE)
        axis = AxisMap(extent, offsets, found["vector"].number(), found["lane"].number(), None if valid is None else valid == 1)
        last = self._last(span)
        self.transfers[-1] = replace(last, axes=(*last.axes, axis))

    def explicit(self, span: TextSpan) -> None:
        """`.explicit count=2 elements=0,5 vectors=0,0 lanes=1,2`."""
        found = keys(span.words(), "count", "elements", "vectors", "lanes")
        count = _extent(found["count"])
        columns = [read_numbers(found[name], count) for name in ("elements", "vectors", "lanes")]
        explicit = np.ascontiguousarray(np.array(columns, np.int64).T)
        self.transfers[-1] = replace(self._last(span), explicit=explicit)

    def bytes(self, machine: Machine, span: TextSpan) -> None:
        """`.data 3 x 0000803f*320`: three vectors."""
        times, cross, *rest = words_of(span, 3, ".data TIMES x BYTES")
        count = times.number()
        if cross.text != "x" or not 1 <= count <= self.vectors - len(self.data):
            raise span.fault(f".data TIMES x BYTES, for at most the {self.vectors} vectors that there are", DIRECTIVE)
        vector = read_bytes(rest, machine.lanes * TYPES[self.dtype].nbytes)
        if self.dtype == "int1" and vector.strip(b"\0\1"):
            raise span.fault("an int1 is 00 or 01", DIRECTIVE)
        self.data += [vector] * count

    def _last(self, span: TextSpan) -> Transfer:
        if not self.transfers:
            raise span.fault("this belongs to a .transfer before it", DIRECTIVE)
        return self.transfers[-1]


def read_tensor(span: TextSpan) -> TensorText:
    """`.tensor in "x" fp32 vectors=4 groups=1 segment=4`."""
    role, name, dtype, *rest = words_of(span, 3, '.tensor ROLE "NAME" TYPE vectors= groups= segment=')
    if role.text not in ROLES:
        raise role.fault(f"an array is {', '.join(ROLES)}", DIRECTIVE)
    if dtype.text not in TYPES:
        raise dtype.fault(f"there is no element type {dtype.text[:40]}", DIRECTIVE)
    found = keys(rest, "vectors", "groups", "segment")
    vectors, groups, segment = (_extent(found[key]) for key in ("vectors", "groups", "segment"))
    return TensorText(span, string(name), role.text, dtype.text, vectors, groups, segment)


def _extent(span: TextSpan) -> int:
    value = span.number()
    if not 1 <= value <= _VECTORS:
        raise span.fault(f"1 to {_VECTORS} are possible here, not {value}", DIRECTIVE)
    return value


def _rows(machine: Machine, span: TextSpan) -> SliceRows:
    slice_, at, *rest = words_of(span, 2, ".plane SLICE b0:ROW [chip=C], …")
    if slice_.text not in machine.queues or machine.queues[slice_.text].kind != "MEM":
        raise slice_.fault(f"there is no slice {slice_.text[:40]}", DIRECTIVE)
    address = read_row(machine, Use.ROW, at)
    found = keys(rest, optional=("chip",))
    chip = found["chip"].number() if "chip" in found else 0
    return SliceRows(slice_.text, address // machine.rows, address % machine.rows, chip)
