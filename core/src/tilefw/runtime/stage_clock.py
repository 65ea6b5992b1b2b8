"""How long each stage of a compilation or a launch takes, and which one began last."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager


class StageClock:
    """Seconds by stage, added up. After an error, `last` is the stage that failed; `began` is called with the name of each."""

    __slots__ = ("began", "last", "seconds")

    def __init__(self, seconds: Mapping[str, float] | None = None, began: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = dict(seconds or {})
        self.last = ""
        self.began = began

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Add the seconds of the `with` block to those of `name`, also when it raises."""
        self.last = name
        if self.began is not None:
            self.began(name)
        return _Stage(self.seconds, name)


class _Stage:
    """One stretch of a stage. A launch has several, and a generator would take as long as what it measures."""

    __slots__ = ("_name", "_seconds", "_start")

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds, self._name = seconds, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *raised: object) -> None:
        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + time.perf_counter() - self._start
