"""What of this installation can change an artifact: our own code, a plugin's code, xDSL, Python.

Files are told by name, size and time of change, so that an edit in a checkout and a rebuilt wheel of the same version
both make a new fingerprint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tilefw.runtime.cache import digest
from tilefw.runtime.entry_points import VersionNotStated, source_file
from tilefw.runtime.plugin import Plugin


def fingerprint(plugin: Plugin | None) -> str:
    """One word for core, the plugin's distribution and package, xDSL's version and Python's."""
    facts: list[object] = [_core(), sys.version_info[:3], sys.implementation.name]
    if plugin is not None:
        facts += [plugin.distribution, plugin.version, plugin.api, _package(plugin.module)]
    return digest(*facts)


@lru_cache(maxsize=1)
def _core() -> str:
    from importlib.metadata import version

    return digest(version("xdsl"), _tree(Path(__file__).parents[1]))


@lru_cache(maxsize=16)
def _package(module: str) -> str:
    try:
        return digest(_tree(Path(source_file(module)).parent))
    except (VersionNotStated, OSError):
        return "unknown"


def _tree(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(_files(str(folder), len(str(folder))))


def _files(folder: str, root: int) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path, root)
            elif entry.name.endswith((".py", ".yaml")):
                facts = entry.stat()
                yield entry.path[root:], facts.st_size, facts.st_mtime_ns
