"""Which plugins there are, and for which interface version each was written, learned without running any of their code."""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from tilefw.api.version import ENTRY_POINT_GROUP
from tilefw.runtime.plugins.local_plugins import LocalPlugin, local_plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SOURCE_LIMIT = 4 << 20  # bytes of a hook module; a larger one is not a light module


@dataclass(frozen=True, slots=True)
class PluginCandidate:
    """One entry point of the group: the plugin's name, its hook module, the distribution that brings it.

    A local plugin has no entry point, and for its distribution the setting that named it. `shadowed_by` names the distribution
    whose plugin of the same name came first: local ones do, then the order of distribution names.
    """

    name: str
    module: str
    distribution: str
    version: str
    shadowed_by: str | None = None
    entry_point: EntryPoint | None = field(default=None, compare=False, repr=False)

    def load(self) -> Any:
        """Import the hook module; raises whatever that raises."""
        return import_module(self.module) if self.entry_point is None else self.entry_point.load()


class VersionNotStated(Exception):
    """The hook module cannot be found or read, or says no version as a literal."""


def candidates() -> tuple[PluginCandidate, ...]:
    """Every plugin, by name, shadowed ones last."""
    local = local_plugins()
    return _scan_distributions(tuple(sys.path), local)


@lru_cache(maxsize=4)
def _scan_distributions(path: tuple[str, ...], local: tuple[LocalPlugin, ...] = ()) -> tuple[PluginCandidate, ...]:
    from importlib.metadata import entry_points  # 25 ms, so only where a plugin is looked for

    found = [_candidate(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)]
    found += [PluginCandidate(plugin.name, plugin.module, plugin.named_by, "local") for plugin in local]
    # Of two with one name, tilefw-NAME keeps it: whoever claims it later, under whatever name, takes nothing away.
    found.sort(key=lambda c: (
        c.name, c.entry_point is not None, c.distribution.lower().replace("_", "-") != f"tilefw-{c.name}", c.distribution
    ))
    first: dict[str, PluginCandidate] = {}
    shadowed: list[PluginCandidate] = []
    for candidate in found:
        winner = first.setdefault(candidate.name, candidate)
        if winner is not candidate:
            shadowed.append(replace(candidate, shadowed_by=winner.distribution))
    return (*first.values(), *shadowed)


def _candidate(entry: EntryPoint) -> PluginCandidate:
    distribution, version = (entry.dist.name, entry.dist.version) if entry.dist is not None else ("unknown", "0")
    return PluginCandidate(entry.name, entry.value.partition(":")[0].strip(), distribution, version, None, entry)


def source_file(module: str) -> str:
    """The source file of a module, found without importing any of its packages; raises VersionNotStated."""
    locations: list[str] | None = None
    parts = module.split(".")
    for depth in range(len(parts)):
        try:
            spec = PathFinder.find_spec(".".join(parts[: depth + 1]), locations)
        except (ImportError, ValueError, AttributeError) as error:
            raise VersionNotStated(f"module {module} cannot be found: {error}") from None
        if spec is None:
            raise VersionNotStated(f"module {module} cannot be found")
        if depth == len(parts) - 1:
            if spec.origin is None or not spec.origin.endswith(".py"):
                raise VersionNotStated(f"module {module} has no Python source")
            return spec.origin
        locations = list(spec.submodule_search_locations or ())
    raise VersionNotStated("the entry point names no module")


def preferred_target(disabled: frozenset[str]) -> str | None:
    """The target of a launch that names none, where a plugin that is not disabled says one (`TILEFW_DEFAULT_TARGET`); of several
    that of the first by name."""
    return None if "*" in disabled else _preferred(candidates(), disabled)


@lru_cache(maxsize=8)
def _preferred(among: tuple[PluginCandidate, ...], disabled: frozenset[str]) -> str | None:
    for candidate in among:
        if candidate.shadowed_by is None and candidate.name not in disabled:
            name = _stated_target(candidate)
            if name is not None:
                return name
    return None


def _stated_target(candidate: PluginCandidate) -> str | None:
    """What it says as written in its hook module; a plugin speaks for its own targets alone."""
    try:
        _, found = _stated(candidate.module, "TILEFW_DEFAULT_TARGET")
        name = None if found is None else ast.literal_eval(found)
    except (VersionNotStated, ValueError):
        return None  # whoever asks for a target of this plugin hears what is wrong with it
    return name if isinstance(name, str) and name.startswith(f"{candidate.name}-") else None


def stated_version(module: str) -> tuple[int, int]:
    """`TILEFW_API` as written in the module's source; raises VersionNotStated."""
    path, value = _stated(module, "TILEFW_API")
    if value is None:
        raise VersionNotStated(f"{path} does not set `TILEFW_API = (major, minor)`")
    return _pair(value, path)


def _stated(module: str, name: str) -> tuple[str, ast.expr | None]:
    """The path of a module's source, and what it assigns to a name; raises VersionNotStated."""
    path = source_file(module)
    try:
        if os.path.getsize(path) > SOURCE_LIMIT:
            raise VersionNotStated(f"{path} is larger than {SOURCE_LIMIT >> 20} MiB: hooks belong in a light module")
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise VersionNotStated(f"{path} cannot be read as Python: {error}") from None
    return path, next((value for value in (_assigned(node, name) for node in tree.body) if value is not None), None)


def _assigned(node: ast.stmt, name: str) -> ast.expr | None:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return None
    return node.value if any(isinstance(t, ast.Name) and t.id == name for t in targets) else None


def _pair(value: ast.expr, path: str) -> tuple[int, int]:
    try:
        major, minor = ast.literal_eval(value)
    except (ValueError, TypeError):
        raise VersionNotStated(f"TILEFW_API in {path} is not a literal pair (major, minor)") from None
    if type(major) is not int or type(minor) is not int:
        raise VersionNotStated(f"TILEFW_API in {path} is not a pair of whole numbers")
    return major, minor
