"""How long each stage of a compilation or launch takes, added up by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Watched(dict[str, float]):
    """Times of stages, for somebody who wants to hear of each when it begins: `began` is called with its name."""

    def __init__(self, began: Callable[[str], None]) -> None:
        super().__init__()
        self.began = began


@contextmanager
def stage(name: str, times: dict[str, float]) -> Iterator[None]:
    """Add the seconds of the `with` block to `times[name]`, also when it raises."""
    if isinstance(times, Watched):
        times.began(name)
    start = time.perf_counter()
    try:
        yield
    finally:
        times[name] = times.get(name, 0.0) + time.perf_counter() - start
