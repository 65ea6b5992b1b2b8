"""Which target, executor, checks and budget a call uses: argument, then `tilefw.target(…)`, then the environment, then the default.

The environment is read at each use and never at import; what `target` and `set_target` say lives in a context variable,
so that threads and tasks do not disturb each other. What `in_every_thread` says holds where they have said nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilefw.api.checks import ALL_CHECKS, CHECKS, DEFAULT_CHECKS, PROGRAM_CHECKS
from tilefw.api.device import DEFAULT_BUDGET
from tilefw.api.errors import UsageError
from tilefw.runtime.names import suggest

DEFAULT_TARGET = "reference"
"""Where no plugin says another (`TILEFW_DEFAULT_TARGET` of its hook module)."""
DEFAULT_PLUGIN_SECONDS = 10.0
_TUNINGS = ("all", "first")  # of TILEFW_AUTOTUNE
DEFAULT_PRINT_BYTES = 1 << 20
EXECUTORS = ("sim", "hw", "auto")
DEFAULT_EXECUTOR = "default"  # nobody has said: the simulator of a target that has one, else its chip
NUMERICS = ("ieee", "hw")
_GROUPS = {"default": DEFAULT_CHECKS, "all": ALL_CHECKS, "program": PROGRAM_CHECKS, "none": frozenset[str]()}

Checks = str | Iterable[str] | None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user has said so far; None is "nothing said"."""

    target: str | None = None
    executor: str | None = None
    checks: frozenset[str] | None = None
    budget: int | None = None
    numerics: str | None = None
    seed: int | None = None
    stream: int | None = None
    named_checks: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings of one call, each decided. `named_checks` are those of `checks` that were said by their own names, and not as
    part of a group alone."""

    target: str
    executor: str
    checks: frozenset[str]
    budget: int
    numerics: str
    seed: int
    stream: int | None = None
    named_checks: frozenset[str] = frozenset()


_NOTHING_SAID = Settings()
_context: ContextVar[Settings | None] = ContextVar("tilefw_settings", default=None)


class _Process:
    """What holds in a thread in which nobody has said anything."""

    __slots__ = ("settings",)

    def __init__(self) -> None:
        self.settings = _NOTHING_SAID


_process = _Process()


def settings(
    target: str | None = None,
    executor: str | None = None,
    checks: Checks = None,
    budget: int | None = None,
    numerics: str | None = None,
    seed: int | None = None,
    stream: Any = None,
) -> Settings:
    """Settings from a user's words; raises UsageError for a word that does not exist or a number out of range."""
    words = None if checks is None else _words(checks)
    return Settings(
        target=None if target is None else _name(target),
        executor=None if executor is None else _one_of(executor, EXECUTORS, "executor"),
        checks=None if words is None else parse_checks(words),
        named_checks=None if words is None else frozenset(words) - frozenset(_GROUPS),
        budget=None if budget is None else positive(budget, "budget"),
        numerics=None if numerics is None else _one_of(numerics, NUMERICS, "numerics"),
        seed=None if seed is None else _seed(seed),
        stream=None if stream is None else _stream(stream),
    )


def resolve(said: Settings | None = None) -> Resolved:
    """Every setting of a call: `said`, the context, the environment, the defaults, in this order."""
    found = _resolved(os.environ.get("TILEFW_TARGET"), os.environ.get("TILEFW_EXECUTOR"), in_context(), said or _NOTHING_SAID)
    return found if found.target else replace(found, target=_unnamed_target(found.executor))


def _unnamed_target(executor: str) -> str:
    """The target where nobody names one: what an installed plugin is preferred for, else the reference. A plugin says so for its
    chip, which is no simulator."""
    if executor == "sim":
        return DEFAULT_TARGET
    from tilefw.runtime.plugins.entry_points import preferred_target

    return preferred_target(disabled_plugins()) or DEFAULT_TARGET


def in_context() -> Settings:
    """What `target` and `set_target` have said, for this thread or task, or else for all of them."""
    return _context.get() or _process.settings


@lru_cache(maxsize=64)
def _resolved(target: str | None, executor: str | None, context: Settings, said: Settings) -> Resolved:
    """Found once for each set of settings, since every launch asks. `target` and `executor` are the environment's words; where
    nobody names one, the result's target is ""."""
    chosen = Settings(target or None, _one_of(executor, EXECUTORS, "executor (from TILEFW_EXECUTOR)") if executor else None)
    for layer in (context, said):
        chosen = _over(chosen, layer)
    return Resolved(
        target=chosen.target or "",
        executor=chosen.executor or DEFAULT_EXECUTOR,
        checks=DEFAULT_CHECKS if chosen.checks is None else chosen.checks,
        budget=chosen.budget or DEFAULT_BUDGET,
        numerics=chosen.numerics or "ieee",
        seed=chosen.seed or 0,
        stream=chosen.stream,
        named_checks=chosen.named_checks or frozenset(),
    )


def checks_said() -> bool:
    """Whether someone has said which checks are to be made."""
    return in_context().checks is not None


@contextmanager
def target(
    name: str | None = None,
    executor: str | None = None,
    checks: Checks = None,
    budget: int | None = None,
    numerics: str | None = None,
    seed: int | None = None,
    stream: Any = None,
) -> Iterator[None]:
    """Use these settings for the launches and compilations inside the `with` block; inner blocks win over outer ones.

    `stream` is the card's stream that launches go to: one of PyTorch or CuPy, or a driver's handle. A simulator has none."""
    said = settings(name, executor, checks, budget, numerics, seed, stream)
    token = _context.set(_over(in_context(), said))
    try:
        yield
    finally:
        _context.reset(token)


@contextmanager
def in_every_thread(said: Settings) -> Iterator[None]:
    """Use these settings in the block, also in other threads: a program that is run as a whole may launch from threads of its own,
    and PyTorch computes the gradients of a card's tensors in threads of PyTorch's."""
    before = _process.settings
    _process.settings = _over(before, said)
    try:
        yield
    finally:
        _process.settings = before


def set_target(
    name: str | None,
    executor: str | None = None,
    checks: Checks = None,
    budget: int | None = None,
    numerics: str | None = None,
    seed: int | None = None,
) -> None:
    """Use these settings from here on in this thread or task; `set_target(None)` forgets the target that was set."""
    said = settings(name, executor, checks, budget, numerics, seed)
    now = in_context() if name is not None else replace(in_context(), target=None)
    _context.set(_over(now, said))


def parse_checks(checks: str | Iterable[str]) -> frozenset[str]:
    """Names of checks, `default`, `all`, `program` and `none` among them: what they name together.

    `checks` is a string with commas between the names, or an iterable of names, in which `-` means `_`. `all` is every check that
    the device makes, `program` every check of programs. `PLUGIN:NAME` is a check of a plugin, which is asked for it at the launch
    (launch_checks.py). Raises UsageError, which names the nearest check.
    """
    chosen: set[str] = set()
    for name in _words(checks):
        known = PROGRAM_CHECKS | frozenset((*CHECKS, *_GROUPS))
        if name not in known and not _of_plugin(name):
            raise UsageError(f"there is no check '{name}'", code="TFW0901", help=suggest(name, known, what="checks"))
        chosen |= _GROUPS.get(name, {name})
    return frozenset(chosen)


def _words(checks: str | Iterable[str]) -> tuple[str, ...]:
    if not isinstance(checks, str | Iterable):
        raise UsageError(f"checks are names, not {checks!r}", code="TFW0901", help="`all` names every check, `none` no check")
    words = checks.split(",") if isinstance(checks, str) else checks
    named = filter(None, (str(word).strip() for word in words))
    return tuple(word if ":" in word else word.replace("-", "_") for word in named)


def _of_plugin(word: str) -> bool:
    return all(word.partition(":"))


def cache_enabled() -> bool:
    """Whether compiled artifacts are kept at all, in memory or on disk; TILEFW_CACHE=0 compiles every time."""
    return os.environ.get("TILEFW_CACHE", "1").lower() not in ("0", "off", "no", "false")


def cache_directory() -> Path | None:
    """Where the disk cache lives (TILEFW_CACHE_DIR, else the user's cache folder); None with TILEFW_CACHE=0 or without a home."""
    return state_directory() if cache_enabled() else None


def state_directory() -> Path | None:
    """The folder for what tilefw keeps between runs, whether the cache is on or off; None without a home."""
    if named := os.environ.get("TILEFW_CACHE_DIR"):
        return Path(named)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "tilefw"
    try:
        return Path.home() / ".cache" / "tilefw"
    except RuntimeError:
        return None


def disabled_plugins() -> frozenset[str]:
    """The plugins that TILEFW_DISABLE_PLUGINS names; `*` stands for all."""
    words = os.environ.get("TILEFW_DISABLE_PLUGINS")
    return frozenset(word.strip() for word in words.split(",") if word.strip()) if words else frozenset()


def strict_plugins() -> bool:
    """Whether a plugin that does not load is fatal (TILEFW_STRICT_PLUGINS=1, for CI)."""
    return _on("TILEFW_STRICT_PLUGINS")


def trace_plugins() -> bool:
    """Whether calls of hooks are told on stderr (TILEFW_TRACE_PLUGINS=1)."""
    return _on("TILEFW_TRACE_PLUGINS")


def plugin_seconds() -> float:
    """How long a plugin that is asked in a child process may take to answer (TILEFW_PLUGIN_SECONDS).

    Raises UsageError for anything but a positive number.
    """
    word = os.environ.get("TILEFW_PLUGIN_SECONDS", "").strip()
    if not word:
        return DEFAULT_PLUGIN_SECONDS
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"TILEFW_PLUGIN_SECONDS is a positive number of seconds, not {word!r}", code="TFW0902")
    return seconds


def print_bytes() -> int:
    """The room for what one launch prints, in bytes (TILEFW_PRINT_BYTES), a multiple of 16. Raises UsageError for anything but a
    whole number from 16 to 2^31."""
    word = os.environ.get("TILEFW_PRINT_BYTES", "").strip()
    if not word:
        return DEFAULT_PRINT_BYTES
    number = int(word) if word.isascii() and word.isdigit() else 0
    if not 16 <= number <= 2**31:
        raise UsageError(f"TILEFW_PRINT_BYTES is a number of bytes from 16 to {2**31}, not {word!r}", code="TFW0902")
    return number - number % 16


def tunes() -> bool:
    """Whether `autotune` runs its configurations; with TILEFW_AUTOTUNE=first it takes the first one that compiles.

    Raises UsageError for another word."""
    word = os.environ.get("TILEFW_AUTOTUNE", "").strip().lower() or _TUNINGS[0]
    return _one_of(word, _TUNINGS, "way to tune (from TILEFW_AUTOTUNE)") == _TUNINGS[0]


def verify_code() -> bool:
    """Whether machine passes check what they did (TILEFW_VERIFY=1, for tests): allocation, waits, wait states."""
    return _on("TILEFW_VERIFY")


def _on(name: str) -> bool:
    """Whether a switch of the environment is on; one that is not set is off."""
    return os.environ.get(name, "").lower() in ("1", "on", "yes", "true")


def _over(below: Settings, above: Settings) -> Settings:
    said = {f.name: value for f in fields(Settings) if (value := getattr(above, f.name)) is not None}
    return replace(below, **said)


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"a target is named by a string, not {value!r}", code="TFW0902")
    return value


def _one_of(value: object, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise UsageError(f"there is no {what} {value!r}", code="TFW0902", help=suggest(str(value), known, what=what))
    return str(value)


def positive(value: object, what: str) -> int:
    """The value of a setting of this name. Raises UsageError TFW0902 for anything but a positive whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{what} is a positive whole number, not {value!r}", code="TFW0902")
    return value


def _stream(value: object) -> int:
    from tilefw.runtime.arguments.device_arrays import stream_handle

    return stream_handle(value)


def _seed(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"seed is a whole number, 0 or more, not {value!r}", code="TFW0902")
    return value
