"""A reduction in memory: what is done to each element of a destination in place of writing it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reduction:
    """What an engine does to its destination in place of writing it: an atomic operation on elements of so many bytes and, for
    floats, their format."""

    op: str
    bytes: int
    fmt: str = ""
