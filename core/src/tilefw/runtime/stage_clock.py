"""How long each stage of a compilation or a launch takes, and which one began last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


class StageClock:
    """Seconds by stage, added up. After an error, `last` is the stage that failed; `began` is called with the name of each."""

    __slots__ = ("began", "last", "seconds")

    def __init__(self, seconds: Mapping[str, float] | None = None, began: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = dict(seconds or {})
        self.last = ""
        self.began = began

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds of the `with` block to those of `name`, also when it raises."""
        self.last = name
        if self.began is not None:
            self.began(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
