"""Artifacts that are kept, in memory for this process and on disk for all, by a key of everything that decides them."""

from __future__ import annotations

from tilefw.api.artifact import Artifact, decode, encode
from tilefw.api.backend import CompileOptions
from tilefw.api.errors import CodeError
from tilefw.runtime import config
from tilefw.runtime.bug_guard import guarded
from tilefw.runtime.compilation.cache import digest, disk_cache
from tilefw.runtime.compilation.fingerprint import fingerprint
from tilefw.runtime.compilation.kernel_source import ModuleSource, Unstable, stable
from tilefw.runtime.plugins.loader import Target

MEMORY_LIMIT = 512  # artifacts of one target kept in memory; the oldest goes first


def key_of(source: ModuleSource, target: Target, request: CompileOptions, assemble: bool) -> str | None:
    """A key of everything that can change the artifact; None where the source or a target's option has no key."""
    if source.key is None:
        return None
    info = target.info
    options = {**{n: getattr(request, n) for n in CompileOptions.__dataclass_fields__}, "facts": sorted(request.facts)}
    try:
        options["extra"] = [(name, stable(value)) for name, value in sorted(request.extra.items())]
    except Unstable:
        return None
    facts = (info.name, info.backend, sorted(info.capabilities), sorted(info.limits.items()))
    tools = tools_of(target, assemble)
    return digest(source.key, source.name, facts, sorted(options.items()), assemble, tools, fingerprint(target.plugin))


def tools_of(target: Target, assemble: bool) -> str:
    """The digest of the tools that assemble the target's code; empty where none is asked to."""
    if not assemble:
        return ""
    with guarded(f"toolchain_digest of {target.name}", target.facts):
        return target.toolchain_digest()


def find(key: str | None, target: Target) -> tuple[Artifact, str] | None:
    """The artifact kept under `key` and where (`memory`, `disk`), or None. TILEFW_CACHE=0 turns both off: compile every time."""
    if key is None or not config.cache_enabled():
        return None
    if (kept := target.memory.get(key)) is not None:
        return kept, "memory"
    disk = disk_cache()
    data = None if disk is None else disk.get(key)
    if data is None:
        return None
    try:
        artifact = decode(data, "cache entry")
    except CodeError:
        return None
    _remember(key, target, artifact)
    return artifact, "disk"


def keep(key: str | None, target: Target, artifact: Artifact) -> None:
    """Keep the artifact where the environment allows it; nothing without a key."""
    if key is None:
        return
    if config.cache_enabled():
        _remember(key, target, artifact)
    if (disk := disk_cache()) is not None:
        disk.put(key, encode(artifact))


def _remember(key: str, target: Target, artifact: Artifact) -> None:
    with target.lock:
        while len(target.memory) >= MEMORY_LIMIT:
            del target.memory[next(iter(target.memory))]
        target.memory[key] = artifact
