"""What of this installation can change an artifact: our own code, a plugin's files and what it depends on, xDSL, Python.

A file is told by its name, size and time of change, so that an edit in a checkout and a rebuilt wheel of the same version both make
a new fingerprint. Everything is read once a process: code that has been imported does not change any more.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tilefw.runtime.compilation.cache import digest
from tilefw.runtime.plugins.entry_points import VersionNotStated, source_file
from tilefw.runtime.plugins.plugin import Plugin

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_OURS = (".py", ".yaml")
# Beside a plugin that is one module lies whatever its user keeps there: of that, what may be code or its tables.
_CODE = (*_OURS, ".yml", ".toml", ".json", ".h", ".c", ".cc", ".cpp", ".s", ".so", ".pyd", ".bc", ".ll")
_CORE = "tilefw-core"


def fingerprint(plugin: Plugin | None) -> str:
    """One word for core, the plugin's distribution, package and dependencies, xDSL's version and Python's."""
    facts: list[object] = [_core(), sys.version_info[:3], sys.implementation.name]
    if plugin is not None:
        facts += [plugin.distribution, plugin.version, plugin.api, _package(plugin.module), _dependencies(plugin.distribution)]
    return digest(*facts)


@lru_cache(maxsize=1)
def _core() -> str:
    from importlib.metadata import version

    return digest(version("xdsl"), _tree(Path(__file__).parents[2], lambda name: name.endswith(_OURS)))


@lru_cache(maxsize=16)
def _package(module: str) -> str:
    """Every file of the package that the hook module belongs to: tables, headers and libraries are code too."""
    top = PathFinder.find_spec(module.partition(".")[0])
    if top is not None and top.submodule_search_locations:
        return digest([_tree(Path(folder)) for folder in top.submodule_search_locations])
    try:
        return digest(_tree(Path(source_file(module)).parent, lambda name: name.endswith(_CODE)))
    except (VersionNotStated, OSError):
        return "unknown"


@lru_cache(maxsize=16)
def _dependencies(distribution: str) -> str:
    """The distributions that a plugin's one requires, directly or not, other than core: version and files of each."""
    known: dict[str, object] = {}
    waiting = [distribution]
    while waiting:
        name = _normal(waiting.pop())
        if name not in known and name != _CORE:
            found = _installed(name)
            known[name] = None if found is None else (found.version, _contents(found))
            waiting += [] if found is None else _required(found)
    return digest(sorted(known.items(), key=lambda item: item[0]))


def _installed(name: str) -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(name)
    except (PackageNotFoundError, ValueError):
        return None


def _required(found: Distribution) -> Iterator[str]:
    """The names that it requires, those of extras left out."""
    for line in found.requires or ():
        name = re.match(r"[\w.-]+", line)
        if name is not None and not re.search(r";.*\bextra\b", line):
            yield name[0]


def _contents(found: Distribution) -> object:
    """The list of its files with their hashes as it was installed; of one that is installed from a folder, the folder's files."""
    origin = found.read_text("direct_url.json") or ""
    if '"editable": true' in origin or '"editable":true' in origin:
        import json

        folder = unquote(urlsplit(json.loads(origin)["url"]).path)
        return _tree(Path(folder), lambda name: name.endswith(_CODE))
    return found.read_text("RECORD")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _tree(folder: Path, counts: Callable[[str], bool] = lambda _: True) -> list[tuple[str, int, int]]:
    return sorted(_files(str(folder), len(str(folder)), counts))


def _files(folder: str, root: int, counts: Callable[[str], bool]) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__" and not entry.name.startswith("."):
                    yield from _files(entry.path, root, counts)
            elif counts(entry.name):
                facts = entry.stat(follow_symlinks=False)
                yield entry.path[root:], facts.st_size, facts.st_mtime_ns
