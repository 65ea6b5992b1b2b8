"""The active checks of a launch: their classes by name, the events that they observe, and what they follow along paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

from tilefw.api.checks import BUILTIN_CHECKS
from tilefw.api.device import LaunchOptions
from tilefw.api.errors import PluginError
from tilefw.sim.checks.bounds import Bounds
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.observers import Observer, Observers
from tilefw.sim.program import Program
from tilefw.sim.tracking.history import FollowedBlock, History
from tilefw.sim.tracking.recorder import TraceRecorder

EVENTS = tuple(f.name for f in fields(Observers) if hasattr(Check, f.name) and callable(getattr(Check, f.name)))
"""The events of a launch: methods of `Check`."""


def active_checks(options: LaunchOptions) -> tuple[type[Check], ...]:
    """The classes that a launch asks for: core's by the names of checks, and those that plugins have registered. Bounds is always
    among them: an access without memory behind it cannot be executed. Raises PluginError."""
    return (*_classes(options.checks, options.observers), *((TraceRecorder,) if options.trace else ()))


@cache
def _classes(checks: frozenset[str], others: tuple[str, ...]) -> tuple[type[Check], ...]:
    named = [o for check in BUILTIN_CHECKS if check.name in checks for o in check.observers]
    return Bounds, *map(_class, (*named, *others))


def _class(name: str) -> type[Check]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PluginError(f"the check {name} does not load: {error}", code="TFW0514") from error
    if not (isinstance(found, type) and issubclass(found, Check)):
        raise PluginError(f"the check {name} is not a tilefw.api.sim.Check", code="TFW0514")
    return found


def observers_of(checks: Sequence[Check]) -> Observers:
    """By event, the methods of the checks that override it."""
    called: dict[str, tuple[Observer, ...]] = {}
    for check in checks:
        for event in _observed(type(check)):
            called[event] = (*called.get(event, ()), getattr(check, event))
    return Observers(
        **called, follows_undefined=any(c.follows_undefined for c in checks),
        follows_offsets=any(c.follows_offsets for c in checks),
        orders_accesses=any(c.orders_accesses for c in checks), bytes_per_byte=sum(c.bytes_per_byte for c in checks),
    )


@cache
def _observed(check: type[Check]) -> tuple[str, ...]:
    """The events that a class overrides."""
    return tuple(event for event in EVENTS if getattr(check, event) is not getattr(Check, event))


def history_of(
    checks: Iterable[Check], program: Program, blocks: Sequence[FollowedBlock], known: dict[tuple[str, ...], History | None]
) -> History | None:
    """What the trackers of these checks find along the program's paths; None where no check follows any. `known` keeps it with the
    program."""
    following = [c for c in map(type, checks) if c.tracker.__func__ is not Check.tracker.__func__]
    key = tuple(f"{c.__module__}:{c.__qualname__}" for c in following)
    if key not in known:
        trackers = [made for made in (c.tracker(program) for c in following) if made is not None]
        known[key] = History(trackers, blocks) if trackers else None
    return known[key]
