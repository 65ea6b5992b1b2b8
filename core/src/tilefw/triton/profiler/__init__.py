"""`triton.profiler`: sessions and scopes are taken and nothing is recorded, since seconds of a simulator are not a chip's.

`start` says so, once a session; `viewer` has nothing to show. Functions in a scope run as they do without one.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from typing import Any

from tilefw.triton.profiler import viewer

__all__ = [
    "DEFAULT_PROFILE_NAME", "activate", "cpu_timed_scope", "deactivate", "enter_scope", "enter_state", "exit_scope", "exit_state",
    "finalize", "metadata_state", "profile", "scope", "start", "state", "viewer",
]

DEFAULT_PROFILE_NAME = "proton"
_sessions: Iterator[int] = itertools.count()
_scopes: Iterator[int] = itertools.count()


def start(
    name: str | None = None, *, context: str = "shadow", data: str = "tree", backend: str | None = None, mode: Any = None,
    hook: Any = None,
) -> int:
    """A session's number. The keywords are Triton's; none has an effect."""
    print(f"profile {name or DEFAULT_PROFILE_NAME}: nothing is recorded", file=sys.stderr)
    return next(_sessions)


def activate(session: int | None = None) -> None:
    """Nothing: no session records."""


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Nothing: no session records."""


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """Nothing, and no file: no session records."""


def profile(func: Callable[..., Any] | None = None, **keywords: Any) -> Any:
    """The function itself."""
    return func if func is not None else functools.partial(profile, **keywords)


class scope(ContextDecorator):  # noqa: N801  (Triton's spelling)
    """A named stretch of the program, as a context or a decorator."""

    def __init__(self, name: str, metrics: dict[str, Any] | None = None) -> None:
        self.name, self.metrics = name, metrics

    def __enter__(self) -> scope:
        return self

    def __exit__(self, *raised: object) -> None: ...


class cpu_timed_scope(scope):  # noqa: N801  (Triton's spelling)
    """A scope whose time is the host's."""


class state(scope):  # noqa: N801  (Triton's spelling)
    """A named state of the program."""

    def __init__(self, name: str) -> None:
        super().__init__(name)


class metadata_state(state):  # noqa: N801  (Triton's spelling)
    """The state in which a program makes its own metrics."""

    def __init__(self) -> None:
        super().__init__("metadata")


def enter_scope(name: str, *, metrics: dict[str, Any] | None = None) -> int:
    """A scope's number."""
    return next(_scopes)


def exit_scope(name: str | None = None, *, metrics: dict[str, Any] | None = None) -> None:
    """The end of a scope."""


def enter_state(name: str) -> None:
    """The beginning of a state."""


def exit_state() -> None:
    """The end of a state."""
