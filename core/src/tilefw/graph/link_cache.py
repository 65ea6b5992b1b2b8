"""Links that are kept on disk, by the keys of their launches: also that a backend links nothing of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tilefw.api import json_values as values
from tilefw.api.artifact import Artifact, decode, encode
from tilefw.api.backend import CompileOptions
from tilefw.api.errors import CodeError
from tilefw.api.linking import LinkedArtifact
from tilefw.runtime.compilation import artifact_cache
from tilefw.runtime.compilation.cache import digest, disk_cache
from tilefw.runtime.compilation.kernel_source import ModuleSource
from tilefw.runtime.plugins.loader import Target


@dataclass(frozen=True, slots=True)
class StepSource:
    """What a step's artifact was made of."""

    source: ModuleSource
    request: CompileOptions


@dataclass(frozen=True, slots=True)
class KeptLink:
    """What a backend made of a chain; None where it linked nothing."""

    linked: LinkedArtifact | None


def key_of(chain: Sequence[StepSource], needed: Sequence[Collection[int]], target: Target) -> str | None:
    """A key of everything that can change the link of a chain; None where a launch of it has none. A backend's tools count as
    where artifacts are assembled: a link is whole."""
    keys = [artifact_cache.key_of(one.source, target, one.request, True) for one in chain]
    return None if None in keys else digest("link", keys, [sorted(one) for one in needed])


def find(key: str | None) -> KeptLink | None:
    """The link kept under `key`, or None."""
    disk = None if key is None else disk_cache()
    data = None if disk is None or key is None else disk.get(key)
    try:
        return None if data is None else _decoded(data)
    except (ValueError, KeyError, TypeError, RecursionError, CodeError):
        return None


def keep(key: str | None, linked: LinkedArtifact | None) -> None:
    """Keep what a backend made; nothing without a key."""
    if key is not None and (disk := disk_cache()) is not None:
        disk.put(key, _encoded(linked))


def _encoded(linked: LinkedArtifact | None) -> bytes:
    if linked is None:
        return b"{}\n"
    parts = [encode(linked.artifact), encode(linked.observed)]
    header = {
        "count": linked.count, "storages": linked.storages, "observed_storages": linked.observed_storages, "ended": linked.ended,
        "bytes": len(parts[0]),
    }
    return json.dumps(header).encode() + b"\n" + b"".join(parts)


def _decoded(data: bytes) -> KeptLink:
    line, _, parts = data.partition(b"\n")
    header = values.checked(json.loads(line), dict, "the header")
    if not header:
        return KeptLink(None)
    length = values.checked(header["bytes"], int, "bytes")
    artifacts = _artifact(parts[:length]), _artifact(parts[length:])
    storages, observed = (_numbers(header, name) for name in ("storages", "observed_storages"))
    count, ended = values.checked(header["count"], int, "count"), values.string(header, "ended")
    return KeptLink(LinkedArtifact(artifacts[0], count, storages, artifacts[1], observed, ended))


def _artifact(data: bytes) -> Artifact:
    return decode(data, "cache entry")


def _numbers(header: dict[str, Any], name: str) -> tuple[int, ...]:
    return tuple(values.checked(number, int, name) for number in values.array(header, name))
