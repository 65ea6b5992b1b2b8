"""Who watches a modelled processor at work: told of each instruction of a wave, and when a resource is taken."""

from __future__ import annotations

from typing import Protocol

Wait = tuple[float, str]
"""The cycle in which a wait ends, and what it was for."""


class ProcessorObserver(Protocol):
    """Cycles count from the processor's first."""

    def issued(self, wave: int, number: int, ready: Wait, issue: Wait, slots: float) -> None:
        """A wave, by its place among all, issues the instruction of a number for `slots` cycles. Until `ready` it waited for
        results or other waves, from there to `issue` for its turn or its pipe."""

    def taken(self, resource: str, scheduler: int, begin: float, cycles: float) -> None:
        """A pipe (of a scheduler; 0 where all have one), or the way to a level of memory, is taken. Of one resource these come in
        order and do not overlap."""
