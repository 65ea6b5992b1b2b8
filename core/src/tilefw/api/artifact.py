"""What a backend emits: machine code with everything that a driver or simulator needs to run it; and its self-contained file.

The file is one line with magic and checksum, a JSON header, the binary's bytes. The disk cache holds the same bytes. Nothing in
them is executed or unpickled; every field is checked for its type on the way in, so that a file that is damaged or of another kind
is a clear error and never a strange artifact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

from tilefw.api import json_values as values
from tilefw.api.errors import CodeError
from tilefw.api.remark import Remark, remark_of, remark_to_json

MAGIC = b"tilefw-artifact/2"

@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry, in order; offset, size and alignment are in bytes of the argument block.

    A `struct` is passed by value as `size` bytes; its `dtype` is `uint8`.
    `hidden` names what the runtime passes by itself ("null_pointer", "scratch", …); it is None for the user's own.
    `readonly` says whether the kernel is known never to store through the pointer (True) or to hold a store that may
    (False); None where it was not analysed, as in machine code from other compilers.
    """

    name: str
    kind: Literal["pointer", "scalar", "struct"]
    dtype: str
    offset: int
    size: int
    alignment: int
    readonly: bool | None = None
    hidden: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel of the artifact: how to call it and what one workgroup of it takes.

    A program is made by `workgroups` of them, a cluster of neighbours along the first axis.
    """

    name: str
    parameters: tuple[Parameter, ...]
    workgroup: tuple[int, int, int]
    grid_rank: int = 3
    shared_bytes: int = 0
    scratch_bytes: int = 0
    workgroups: int = 1

    def workgroups_of(self, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        """The workgroups along each axis that make a grid of programs."""
        return (grid[0] * self.workgroups, *grid[1:])


@dataclass(frozen=True, slots=True)
class Resources:
    """Resource use as the tool that knows it reported it; None where nobody knows, with the reason in `unknown`.

    `instructions` counts those of the code by kind, in the chip's words.
    """

    registers: Mapping[str, int] | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    scratch_bytes: int | None = None
    occupancy: float | None = None
    unknown: str | None = None
    instructions: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """Machine code for one exact target.

    `format` is the file kind (`tile`, `machine`, or the chip's own name of it); `text` the assembly, `binary` the
    assembled bytes where the target has them. `levels` keeps the text of earlier levels (`tile`, `lane`, `machine`) when asked for.
    `remarks` are what a user should learn of the compilation though nothing is wrong. `metadata` holds plain JSON values only.
    """

    target: str
    format: str
    text: str
    entries: tuple[Entry, ...]
    binary: bytes | None = None
    resources: Resources = field(default_factory=Resources)
    levels: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str | None = None) -> Entry:
        """The entry called `name`, or the only one; raises KeyError with the names there are."""
        if name is None and len(self.entries) == 1:
            return self.entries[0]
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r}; entries: {', '.join(e.name for e in self.entries)}")

    @property
    def abi(self) -> dict[str, tuple[Parameter, ...]]:
        """How each entry is called: its parameters in order, hidden ones too."""
        return {entry.name: entry.parameters for entry in self.entries}

    def save(self, path: str | PathLike[str]) -> None:
        """Write a self-contained file that `tilefw.load` reads back; raises OSError."""
        with open(path, "wb") as file:
            file.write(encode(self))


def encode(artifact: Artifact) -> bytes:
    """The file's bytes; raises TypeError when `metadata` holds more than JSON values."""
    import hashlib  # here and below: a command that only lists targets reads no file
    import json

    header = json.dumps(_to_json(artifact), sort_keys=True, separators=(",", ":")).encode()
    body = b"%d\n%b%b" % (len(header), header, artifact.binary or b"")
    return b"%b %b\n%b" % (MAGIC, hashlib.sha256(body).hexdigest().encode(), body)


def is_artifact(data: bytes) -> bool:
    """Whether the bytes claim to be such a file, of any version."""
    return data.startswith(MAGIC.split(b"/")[0] + b"/")


def decode(data: bytes, name: str = "<bytes>") -> Artifact:
    """The artifact in `data`; raises CodeError TFW0780 (with `name` in it) for anything that `encode` did not write."""
    try:
        return _from_body(_checked_body(data))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{name} is not a whole tilefw artifact: {error}"
        raise CodeError(message, code="TFW0780", help="make it again with `Artifact.save` or `tilefw compile`") from None


def _checked_body(data: bytes) -> bytes:
    import hashlib

    line, newline, body = data.partition(b"\n")
    magic, _, digest = line.partition(b" ")
    if not newline or magic != MAGIC:
        raise ValueError(f"it does not start with {MAGIC.decode()!r}")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its checksum does not fit its content")
    return body


def _from_body(body: bytes) -> Artifact:
    import json

    length_text, _, rest = body.partition(b"\n")
    length = int(length_text)
    if not 0 <= length <= len(rest):
        raise ValueError("its header is cut short")
    header = json.loads(rest[:length])
    values.checked(header, dict, "the header")
    binary = rest[length:]
    return Artifact(
        target=values.string(header, "target"),
        format=values.string(header, "format"),
        text=values.string(header, "text"),
        entries=tuple(_entry(raw) for raw in values.array(header, "entries")),
        binary=binary if header["has_binary"] else None,
        resources=_resources(values.checked(header["resources"], dict, "resources")),
        levels={name: values.string(header["levels"], name) for name in values.checked(header["levels"], dict, "levels")},
        remarks=tuple(remark_of(raw) for raw in values.array(header, "remarks")),
        metadata=values.checked(header["metadata"], dict, "metadata"),
    )


def _to_json(artifact: Artifact) -> dict[str, Any]:
    resources = artifact.resources
    return {
        "target": artifact.target,
        "format": artifact.format,
        "text": artifact.text,
        "entries": [_entry_to_json(entry) for entry in artifact.entries],
        "has_binary": artifact.binary is not None,
        "resources": {
            name: dict(value) if isinstance(value, Mapping) else value
            for name in Resources.__dataclass_fields__
            for value in (getattr(resources, name),)
        },
        "levels": dict(artifact.levels),
        "remarks": [remark_to_json(remark) for remark in artifact.remarks],
        "metadata": dict(artifact.metadata),
    }


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    raw = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
    raw["parameters"] = [parameter_to_json(p) for p in entry.parameters]
    return raw


def _entry(raw: Any) -> Entry:
    values.checked(raw, dict, "an entry")
    workgroup = tuple(values.checked(n, int, "workgroup") for n in values.array(raw, "workgroup"))
    if len(workgroup) != 3:
        raise ValueError("an entry's workgroup has not three extents")
    return Entry(
        name=values.string(raw, "name"),
        parameters=tuple(parameter_of(p) for p in values.array(raw, "parameters")),
        workgroup=workgroup,
        **{name: values.checked(raw[name], int, name) for name in ("grid_rank", "shared_bytes", "scratch_bytes", "workgroups")},
    )


def parameter_to_json(parameter: Parameter) -> dict[str, Any]:
    """Every field by its name, but for those that are None."""
    fields = {name: getattr(parameter, name) for name in Parameter.__dataclass_fields__}
    return {name: value for name, value in fields.items() if value is not None}


def parameter_of(raw: Any) -> Parameter:
    """What `parameter_to_json` gave. Raises KeyError, ValueError."""
    values.checked(raw, dict, "a parameter")
    kind = values.string(raw, "kind")
    if kind not in ("pointer", "scalar", "struct"):
        raise ValueError(f"a parameter of kind {kind!r}")
    return Parameter(
        name=values.string(raw, "name"),
        kind=kind,
        dtype=values.string(raw, "dtype"),
        **{name: values.checked(raw[name], int, name) for name in ("offset", "size", "alignment")},
        readonly=values.optional(raw.get("readonly"), bool, "readonly"),
        hidden=values.optional(raw.get("hidden"), str, "hidden"),
    )


def _resources(raw: dict[str, Any]) -> Resources:
    occupancy = raw["occupancy"]
    if occupancy is not None:
        occupancy = float(values.checked(occupancy, (int, float), "occupancy"))
    return Resources(
        registers=values.counts(raw["registers"], "registers"),
        instructions=values.counts(raw["instructions"], "instructions"),
        occupancy=occupancy,
        unknown=values.optional(raw["unknown"], str, "unknown"),
        **{name: values.optional(raw[name], int, name) for name in ("spills", "shared_bytes", "scratch_bytes")},
    )
