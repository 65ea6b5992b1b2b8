"""An artifact as a self-contained file: one line with magic and checksum, a JSON header, the binary's bytes.

The same bytes are what the disk cache holds. Nothing in them is executed or unpickled; every field is checked for its
type on the way in, so that a damaged or foreign file is a clear error and never a strange artifact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tilefw.api.artifact import Artifact, Entry, Parameter, Resources
from tilefw.api.errors import CodeError

MAGIC = b"tilefw-artifact/1"


def encode(artifact: Artifact) -> bytes:
    """The file's bytes; raises TypeError when `metadata` holds more than JSON values."""
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
    line, newline, body = data.partition(b"\n")
    magic, _, digest = line.partition(b" ")
    if not newline or magic != MAGIC:
        raise ValueError(f"it does not start with {MAGIC.decode()!r}")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its checksum does not fit its content")
    return body


def _from_body(body: bytes) -> Artifact:
    length_text, _, rest = body.partition(b"\n")
    length = int(length_text)
    if not 0 <= length <= len(rest):
        raise ValueError("its header is cut short")
    header = json.loads(rest[:length])
    _want(header, dict, "the header")
    binary = rest[length:]
    return Artifact(
        target=_string(header, "target"),
        format=_string(header, "format"),
        text=_string(header, "text"),
        entries=tuple(_entry(raw) for raw in _list(header, "entries")),
        binary=binary if header["has_binary"] else None,
        resources=_resources(_want(header["resources"], dict, "resources")),
        levels={name: _string(header["levels"], name) for name in _want(header["levels"], dict, "levels")},
        metadata=_want(header["metadata"], dict, "metadata"),
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
        "metadata": dict(artifact.metadata),
    }


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    raw = {name: getattr(entry, name) for name in Entry.__dataclass_fields__}
    raw["parameters"] = [{name: getattr(p, name) for name in Parameter.__dataclass_fields__} for p in entry.parameters]
    return raw


def _entry(raw: Any) -> Entry:
    _want(raw, dict, "an entry")
    workgroup = tuple(_want(n, int, "workgroup") for n in _list(raw, "workgroup"))
    if len(workgroup) != 3:
        raise ValueError("an entry's workgroup has not three extents")
    return Entry(
        name=_string(raw, "name"),
        parameters=tuple(_parameter(p) for p in _list(raw, "parameters")),
        workgroup=workgroup,
        **{name: _want(raw[name], int, name) for name in ("grid_rank", "shared_bytes", "scratch_bytes")},
    )


def _parameter(raw: Any) -> Parameter:
    _want(raw, dict, "a parameter")
    kind = _string(raw, "kind")
    if kind not in ("pointer", "scalar"):
        raise ValueError(f"a parameter of kind {kind!r}")
    return Parameter(
        name=_string(raw, "name"),
        kind=kind,
        dtype=_string(raw, "dtype"),
        **{name: _want(raw[name], int, name) for name in ("offset", "size", "alignment")},
        readonly=_optional(raw["readonly"], bool, "readonly"),
        hidden=_optional(raw["hidden"], str, "hidden"),
    )


def _resources(raw: dict[str, Any]) -> Resources:
    occupancy = raw["occupancy"]
    if occupancy is not None:
        occupancy = float(_want(occupancy, (int, float), "occupancy"))
    return Resources(
        registers=_counts(raw["registers"], "registers"),
        instructions=_counts(raw["instructions"], "instructions"),
        occupancy=occupancy,
        unknown=_optional(raw["unknown"], str, "unknown"),
        **{name: _optional(raw[name], int, name) for name in ("spills", "shared_bytes", "scratch_bytes")},
    )


def _counts(raw: Any, what: str) -> dict[str, int] | None:
    counts = _optional(raw, dict, what)
    return None if counts is None else {_want(k, str, what): _want(v, int, what) for k, v in counts.items()}


def _string(raw: dict[str, Any], name: str) -> str:
    return _want(raw[name], str, name)


def _list(raw: dict[str, Any], name: str) -> list[Any]:
    return _want(raw[name], list, name)


def _optional(value: Any, kind: type, what: str) -> Any:
    return None if value is None else _want(value, kind, what)


def _want(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ValueError(f"{what} has the wrong type ({type(value).__name__})")
    return value
