"""Where and how launches with the same keywords run under the same settings: target, device, checks, options of the launch.

Deciding it takes longer than a launch may; so a kernel keeps the sites that it has had, each under all that decided it.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from tilefw.api.checks import PROGRAM_CHECKS
from tilefw.api.device import LaunchOptions
from tilefw.api.target import BOUND_FACTS
from tilefw.language.dtypes import dtype
from tilefw.runtime import config
from tilefw.runtime.arguments.arrays import HostArray
from tilefw.runtime.arguments.single_pass import Form
from tilefw.runtime.checks.launch_checks import made_by, observers, of_device
from tilefw.runtime.checks.program_checks import UNINITIALISED
from tilefw.runtime.compilation import options
from tilefw.runtime.device_abilities import ForgettingDevice
from tilefw.runtime.executor import Executor, executor_for
from tilefw.runtime.plugins.loader import Registry, Target, registry
from tilefw.runtime.process_state import ProcessState

LIMIT = 64  # sites, and launches, that one kernel keeps; the oldest goes first
DEBUG = "TRITON_DEBUG"
# What the environment says of where a launch runs and of the code that is made for it. (Plugins and tools are asked for anew.)
_VARIABLES = ("TILEFW_TARGET", "TILEFW_EXECUTOR", "TILEFW_DISABLE_PLUGINS", "TILEFW_VERIFY", DEBUG)
_CONSTANTS = frozenset((bool, int, float, str, bytes, type(None), dtype))


@dataclass(frozen=True, slots=True, eq=False)
class LaunchSite:
    """`checks` are those that the device makes of those that are asked for, `makes` all that it could; `of_program` are those that
    whoever has the kernel's tile IR makes. `shaping` are the keywords that shape code, and `constant` says that none of them can
    change. `unwritten`: where nobody has tile IR, the device itself tells reads of what the host has not written. `debug`: kernels
    run with their assertions. `form`: how arguments are read for direct launches (direct_launches.py); None: there are none."""

    registry: Registry
    target: Target
    resolved: config.Resolved
    executor: Executor
    makes: frozenset[str]
    checks: frozenset[str]
    of_program: frozenset[str]
    options: LaunchOptions
    shaping: Mapping[str, Any]
    constant: bool
    unwritten: bool = False
    debug: bool = False
    form: Form | None = None

    def holds(self) -> bool:
        """Whether the executor is still the target's, and its device makes the same checks: where nothing of the process has
        changed, all else holds."""
        kind = self.resolved.executor if self.resolved.executor in ("sim", "hw") else self.executor.device.executor
        if self.target.executors.get("hw" if kind == "hw" else "sim") is not self.executor or self.registry is not registry():
            return False
        makes = of_device(self.executor.device)
        return makes is self.makes or makes == self.makes

    def stands(self) -> bool:
        """Whether the names still mean this target and this device, and it makes the same checks."""
        if self.registry is not registry() or self.registry.find(self.resolved.target) is not self.target:
            return False
        executor = executor_for(self.target, self.resolved.executor)
        return executor is self.executor and of_device(executor.device) == self.makes


class LaunchSites:
    """The sites that the launches of one kernel have had. `process` is what the newest one was decided in."""

    def __init__(self) -> None:
        self.process = ProcessState()
        self._kept: dict[Hashable, LaunchSite] = {}
        # By the keywords alone, with the settings of the context: as long as nothing of the process changes.
        self._recent: dict[Hashable, tuple[config.Settings, LaunchSite]] = {}

    def find(self, keywords: Mapping[str, Any]) -> LaunchSite:
        """The site of a launch with these keywords, one of before where nothing has changed that decided it. Raises UsageError,
        PluginError, UnsupportedError."""
        if not self.process.unchanged():
            self.process, self._recent = ProcessState(), {}
        recent = self._recent  # another thread may begin a new one
        context = config.in_context()
        try:
            # With the types, by which equal constants differ; no number that is not whole is kept, nor an object that may change.
            known = recent.get((*keywords, *keywords.values(), *map(type, keywords.values())))
        except TypeError:  # an object without a hash
            return self._find_by_meaning(keywords)
        if known is not None and known[0] is context and known[1].holds():
            return known[1]
        words = words_of(keywords.items())
        if words is None:
            return self._find_by_meaning(keywords)
        found = self._standing(words, keywords)
        if float not in map(type, keywords.values()):
            keep(recent, (*keywords, *keywords.values(), *map(type, keywords.values())), (context, found))
        return found

    def _find_by_meaning(self, keywords: Mapping[str, Any]) -> LaunchSite:
        """The site of a launch some of whose keywords are objects, such as a stream: by what they mean, as far as those that shape
        code are constants."""
        execution, shaping = options.split(keywords)
        words = words_of(shaping.items())
        return _decided(keywords) if words is None else self._standing((config.settings(**execution), *words), keywords)

    def _standing(self, words: tuple[Hashable, ...], keywords: Mapping[str, Any]) -> LaunchSite:
        key = (config.in_context(), *map(os.environ.get, _VARIABLES), *words)
        found = self._kept.get(key)
        if found is None or not found.stands():
            found = _decided(keywords)
            keep(self._kept, key, found)
        return found


def _decided(keywords: Mapping[str, Any]) -> LaunchSite:
    execution, shaping = options.split(keywords)
    resolved = config.resolve(config.settings(**execution))
    debug = bool(keywords.get("debug")) or os.environ.get(DEBUG, "0") not in ("", "0")
    return site(registry().find(resolved.target), resolved, shaping, debug=debug)


def site(
    target: Target, resolved: config.Resolved, shaping: Mapping[str, Any] | None = None, *, program: bool = True,
    block: tuple[int, int, int] | None = None, dynamic_shared: int | None = None, timeline: bool = False, debug: bool = False,
) -> LaunchSite:
    """A site by what was decided. `program` says whether somebody has the kernel's tile IR, to make the checks of programs. Raises
    UsageError TFW0903 for a check that the device does not make."""
    executor = executor_for(target, resolved.executor)
    device = executor.device
    unwritten = not program and UNINITIALISED in resolved.checks and isinstance(device, ForgettingDevice)
    of_program = resolved.checks & (PROGRAM_CHECKS if program else {UNINITIALISED} if unwritten else frozenset[str]())
    checks = made_by(device, resolved.checks - of_program, resolved.named_checks - of_program)
    launch_options = LaunchOptions(
        block=block, dynamic_shared=dynamic_shared, checks=checks, budget=resolved.budget,
        numerics=cast(Literal["ieee", "hw"], resolved.numerics), seed=resolved.seed, timeline=timeline,
        observers=observers(checks), stream=resolved.stream,
    )
    shaping = shaping or {}
    constant = words_of(shaping.items()) is not None
    direct = constant and not (of_program or unwritten or timeline or target.info.wants & BOUND_FACTS)
    return LaunchSite(
        registry(), target, resolved, executor, of_device(device), checks, of_program, launch_options, shaping, constant,
        unwritten, debug, _form(executor.addressed(launch_options)) if direct else None,
    )


def _form(addressed: type | None) -> Form | None:
    return None if addressed is None else "host" if addressed is HostArray else "card"


def words_of(named: Iterable[tuple[str, Any]]) -> tuple[Hashable, ...] | None:
    """Constants by name as part of a key, so that equal ones of two types differ; None where one of them is an object that may
    change."""
    words: list[Hashable] = []
    for name, value in named:
        kind = type(value)
        if kind not in _CONSTANTS:
            return None
        words += (name, kind, repr(value) if kind is float else value)
    return tuple(words)


def keep(kept: dict[Hashable, Any], key: Hashable, value: object) -> None:
    """Keep a value as the newest of at most LIMIT."""
    kept.pop(key, None)
    while len(kept) >= LIMIT:
        kept.pop(next(iter(list(kept))), None)  # of a copy: another thread may add one
    kept[key] = value
