"""Where and how launches with the same keywords run under the same settings: target, device, checks, options of the launch.

Deciding it takes longer than a launch may; so a kernel keeps the sites that it has had, each under all that decided it.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from tilefw.api.checks import PROGRAM_CHECKS
from tilefw.api.device import Device, LaunchOptions
from tilefw.language.dtypes import dtype
from tilefw.runtime import config
from tilefw.runtime.checks.launch_checks import made_by, observers
from tilefw.runtime.checks.program_checks import UNINITIALISED
from tilefw.runtime.compilation import options
from tilefw.runtime.executor import ForgettingDevice, executor_for
from tilefw.runtime.plugins.loader import Target, find_target

LIMIT = 64  # sites, and launches, that one kernel keeps; the oldest goes first
# What the environment says of where a launch runs and of the code that is made for it. (Plugins and tools are asked for anew.)
_VARIABLES = ("TILEFW_TARGET", "TILEFW_EXECUTOR", "TILEFW_VERIFY")
_CONSTANTS = frozenset((bool, int, float, str, bytes, type(None), dtype))


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """`checks` are those that the device makes, `of_program` those that whoever has the kernel's tile IR makes; `shaping` are the
    keywords that shape code, and `words` the same as part of a key, None where they cannot be one. `unwritten`: where nobody has
    tile IR, the device itself tells reads of what the host has not written."""

    target: Target
    resolved: config.Resolved
    device: Device
    checks: frozenset[str]
    of_program: frozenset[str]
    options: LaunchOptions
    shaping: Mapping[str, Any]
    words: tuple[Hashable, ...] | None
    unwritten: bool = False

    def stands(self) -> bool:
        """Whether the names still mean this target and this device, and it makes the same checks."""
        if find_target(self.resolved.target) is not self.target:
            return False
        device = executor_for(self.target, self.resolved.executor).device
        return device is self.device and self.checks == made_by(device, self.resolved.checks - self.of_program)


def site_of(keywords: Mapping[str, Any], kept: dict[Hashable, LaunchSite]) -> LaunchSite:
    """The site of a launch with these keywords, from `kept` where nothing has changed that decided it. Raises UsageError,
    PluginError, UnsupportedError."""
    words = words_of(keywords.items())
    key = None if words is None else (config.in_context(), *map(os.environ.get, _VARIABLES), *words)
    found = None if key is None else kept.get(key)
    if found is not None and found.stands():
        return found
    execution, shaping = options.split(keywords)
    resolved = config.resolve(config.settings(**execution))
    found = site(find_target(resolved.target), resolved, shaping)
    if key is not None:
        keep(kept, key, found)
    return found


def site(
    target: Target, resolved: config.Resolved, shaping: Mapping[str, Any] | None = None, *, program: bool = True,
    block: tuple[int, int, int] | None = None, dynamic_shared: int | None = None, timeline: bool = False,
) -> LaunchSite:
    """A site by what was decided. `program` says whether somebody has the kernel's tile IR, to make the checks of programs. Raises
    UsageError TFW0903 for a check that the device does not make."""
    device = executor_for(target, resolved.executor).device
    unwritten = not program and UNINITIALISED in resolved.checks and isinstance(device, ForgettingDevice)
    of_program = resolved.checks & (PROGRAM_CHECKS if program else {UNINITIALISED} if unwritten else frozenset[str]())
    checks = made_by(device, resolved.checks - of_program)
    launch_options = LaunchOptions(
        block=block, dynamic_shared=dynamic_shared, checks=checks, budget=resolved.budget,
        numerics=cast(Literal["ieee", "hw"], resolved.numerics), seed=resolved.seed, timeline=timeline,
        observers=observers(checks), stream=resolved.stream,
    )
    shaping = shaping or {}
    return LaunchSite(target, resolved, device, checks, of_program, launch_options, shaping, words_of(shaping.items()), unwritten)


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
        kept.pop(next(iter(kept)), None)
    kept[key] = value
