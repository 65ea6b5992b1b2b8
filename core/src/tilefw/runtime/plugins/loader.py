"""The plugin registry: from a target's name to its backend, loading the one plugin that the name says.

This is the process's only lasting state: plugins that were loaded, their targets, and what hangs below a target
(backend, executors, artifacts in memory).
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilefw.api.backend import Backend
from tilefw.api.errors import PluginError, UsageError
from tilefw.api.target import TargetInfo
from tilefw.runtime import config
from tilefw.runtime.bug_guard import is_bug
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.entry_points import PluginCandidate, candidates
from tilefw.runtime.plugins.local_plugins import local_plugins
from tilefw.runtime.plugins.plugin import Plugin, load_plugin
from tilefw.runtime.plugins.probe import load_warily, probe_all

REFERENCE = TargetInfo(
    name="reference",
    vendor="tilefw",
    chip="reference",
    summary="the reference interpreter: tile IR in float64 with error bounds",
    backend="tilefw.tile.reference.backend:ReferenceBackend",
    provides=frozenset({"lower", "emit", "simulate"}),
    capabilities=frozenset({"*"}),
)


class Target:
    """A registered target: its facts, and its backend once it is used.

    `memory` keeps artifacts of this process by cache key, `executors` the devices by kind; both belong to the runtime.
    """

    def __init__(self, info: TargetInfo, plugin: Plugin | None) -> None:
        self.info = info
        self.plugin = plugin
        self.lock = threading.RLock()
        self.memory: dict[str, Any] = {}
        self.executors: dict[str, Any] = {}
        self._backend: Backend | None = None
        self._toolchain: tuple[tuple[str | None, ...], str] | None = None

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def backend(self) -> Backend:
        """The backend, imported and made on first use; raises PluginError when that fails."""
        with self.lock:
            if self._backend is None:
                self._backend = self._make_backend()
            return self._backend

    @property
    def facts(self) -> dict[str, object]:
        """What a reproducer tells of the target."""
        return {"target": self.name, "plugin": self.plugin.distribution if self.plugin else "core"}

    def toolchain_digest(self) -> str:
        """The backend's, asked once, and again when one of the variables has changed by which it finds its tools."""
        backend = self.backend
        environment = tuple(map(os.environ.get, backend.toolchain_variables))
        with self.lock:
            if self._toolchain is None or self._toolchain[0] != environment:
                self._toolchain = environment, backend.toolchain_digest()
            return self._toolchain[1]

    def _make_backend(self) -> Backend:
        module, _, attribute = self.info.backend.partition(":")
        try:
            backend = getattr(importlib.import_module(module), attribute)(self.info)
        except BaseException as error:
            if self.plugin is None or not is_bug(error):
                raise  # our own reference interpreter: a bug of ours, reported as such
            message = f"backend {self.info.backend} of target '{self.name}' does not load: {type(error).__name__}: {error}"
            raise PluginError(message, code="TFW0509", note=_brought_by(self.plugin), help=self.plugin.off_switch) from error
        if not isinstance(backend, Backend):
            message = f"backend {self.info.backend} of target '{self.name}' is not a tilefw.api.Backend"
            raise PluginError(message, code="TFW0509", note=_brought_by(self.plugin) if self.plugin else None)
        return backend


class Registry:
    """Plugins loaded so far, each in its own pluggy manager, and the targets that were asked for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._plugins: dict[PluginCandidate, Plugin] = {}
        self._targets: dict[str, Target] = {"reference": Target(REFERENCE, None)}
        # Each launch asks: by name, the plugins that were installed and those that were switched off, and what was found.
        self._found: dict[str, tuple[tuple[PluginCandidate, ...], frozenset[str], Target]] = {}

    def find(self, name: str) -> Target:
        """The target called `name`, by name or alias.

        Raises PluginError (exit 4) when the plugin that the name says is not usable, UsageError (exit 2) with the
        nearest name when no plugin has such a target.
        """
        with self._lock:
            if name == REFERENCE.name:
                return self._targets[name]
            installed, switched_off = candidates(), config.disabled_plugins()
            known = self._found.get(name)
            if known is not None and known[0] is installed and known[1] == switched_off:
                return known[2]
            found = self._find(name)
            self._found[name] = installed, switched_off, found
            return found

    def _find(self, name: str) -> Target:
        for candidate in _named_by(name):
            plugin = self._load(candidate)
            self._refuse(plugin, f"target '{name}' cannot be used")
            if (target := self._of_plugin(plugin, name)) is not None:
                return target
        return self._by_alias(name)

    def plugin(self, name: str) -> Plugin:
        """The installed plugin called `name`, loaded in this process; raises UsageError, or PluginError where it is not usable."""
        with self._lock:
            for candidate in candidates():
                if candidate.name == name and candidate.shadowed_by is None:
                    plugin = self._load(candidate)
                    self._refuse(plugin, f"plugin '{name}' cannot be used")
                    return plugin
        helped = suggest(name, (c.name for c in candidates()), what="plugins")
        raise UsageError(f"no plugin is called '{name}'", code="TFW0501", help=helped)

    def plugins(self) -> list[Plugin]:
        """Every installed plugin with its status, asked in child processes; with TILEFW_STRICT_PLUGINS, raises PluginError."""
        found = probe_all(candidates(), config.disabled_plugins())
        if config.strict_plugins():
            for plugin in found:
                if plugin.failed:
                    self._refuse(plugin, "every plugin must load (TILEFW_STRICT_PLUGINS)")
        return found

    def infos(self, plugins: Sequence[Plugin] | None = None) -> list[TargetInfo]:
        """Every target there is, `reference` first; of two with one name, that of the plugin with the longest name (see `find`)."""
        named = {REFERENCE.name: REFERENCE}
        for plugin in sorted(self.plugins() if plugins is None else plugins, key=lambda p: -len(p.name)):
            for info in plugin.targets:
                named.setdefault(info.name, info)
        return list(named.values())

    def observers(self) -> Iterator[Plugin]:
        """The loaded plugins that watch passes; local ones are loaded for it, as nobody names a target of theirs."""
        for local in local_plugins():
            self._load(next(c for c in candidates() if (c.name, c.module) == (local.name, local.module)))
        for plugin in list(self._plugins.values()):
            if plugin.manager is not None and {"tilefw_before_pass", "tilefw_after_pass"} & set(plugin.hooks):
                yield plugin

    def collect(self, hook: str) -> dict[str, Any]:
        """The mapping that `hook` gives, over all usable plugins; a plugin whose hook fails is left out.

        All are asked in child processes first: one that hangs or ends the process must not do so here.
        """
        merged: dict[str, Any] = {}
        usable = {plugin.name for plugin in self.plugins() if plugin.status == "ok" and hook in plugin.hooks}
        with self._lock:
            for candidate in candidates():
                if candidate.name not in usable:
                    continue
                plugin = self._load(candidate)
                if plugin.manager is None or hook not in plugin.hooks:
                    continue
                try:
                    for answer in getattr(plugin.manager.hook, hook)():
                        merged |= {key: value for key, value in dict(answer).items() if key not in merged}
                except BaseException as error:
                    if not is_bug(error):
                        raise
                    self._plugins[candidate] = _broken(plugin, f"{hook}: {type(error).__name__}: {error}")
        return merged

    def _load(self, candidate: PluginCandidate) -> Plugin:
        disabled = config.disabled_plugins()
        if candidate.name in disabled or "*" in disabled:
            return load_plugin(candidate, disabled)  # not kept: the switch is read at each use
        if candidate not in self._plugins:
            self._plugins[candidate] = load_warily(candidate, disabled)
        return self._plugins[candidate]

    def _of_plugin(self, plugin: Plugin, name: str) -> Target | None:
        for info in plugin.targets:
            if name == info.name or name in info.aliases:
                known = self._targets.get(info.name)
                if known is None or known.info != info:
                    known = self._targets[info.name] = Target(info, plugin)
                return known
        return None

    def _by_alias(self, name: str) -> Target:
        """An alias may be any word, so every plugin is asked, in child processes; then only the right one is loaded here."""
        found = self.plugins()
        for plugin in found:
            if any(name == info.name or name in info.aliases for info in plugin.targets):
                candidate = next(c for c in candidates() if c.name == plugin.name and c.shadowed_by is None)
                target = self._of_plugin(self._load(candidate), name)
                if target is not None:
                    return target
        known = [n for info in self.infos(found) for n in (info.name, *info.aliases)]
        unusable = [f"plugin '{p.name}' is {p.status}: {p.error}" for p in found if p.status != "ok"]
        helped = suggest(name, known, what="targets")
        raise UsageError(f"there is no target '{name}'", code="TFW0501", note="\n".join(unusable) or None, help=helped)

    def _refuse(self, plugin: Plugin, why: str) -> None:
        if plugin.status == "ok":
            return
        helped = "unset TILEFW_DISABLE_PLUGINS" if plugin.status == "disabled" else plugin.off_switch
        raise PluginError(
            f"{why}: plugin '{plugin.name}' is {plugin.status}: {plugin.error}",
            code=plugin.code or "TFW0503", note=_brought_by(plugin), help=helped,
        )


def _named_by(name: str) -> list[PluginCandidate]:
    """The plugins whose name and a hyphen begin the target's name, the longest first."""
    fitting = [c for c in candidates() if name.startswith(c.name + "-") and c.shadowed_by is None]
    return sorted(fitting, key=lambda c: -len(c.name))


def _broken(plugin: Plugin, error: str) -> Plugin:
    return replace(plugin, status="broken", error=error, code="TFW0503", manager=None)


def _brought_by(plugin: Plugin) -> str:
    return f"plugin '{plugin.name}' comes with {plugin.distribution} {plugin.version} (module {plugin.module})"


_registry = Registry()


def registry() -> Registry:
    """The process's one registry."""
    return _registry


def find_target(name: str) -> Target:
    """See `Registry.find`."""
    return _registry.find(name)
