"""How long each stage of a compilation or launch takes, added up by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stage(name: str, times: dict[str, float]) -> Iterator[None]:
    """Add the seconds of the `with` block to `times[name]`, also when it raises."""
    start = time.perf_counter()
    try:
        yield
    finally:
        times[name] = times.get(name, 0.0) + time.perf_counter() - start
