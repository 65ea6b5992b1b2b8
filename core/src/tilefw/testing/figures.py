"""Which figures of a chip file change nothing: a number that no launch's time depends on is dead, or its source is not used."""

from __future__ import annotations

from collections.abc import Iterable

from tilefw.api.backend import Backend
from tilefw.runtime.recording import Recording
from tilefw.timing.launch_time import launch_time

FACTORS = (1.7, 0.5, 1e-3)
"""What figures are changed by: as rates and latencies differ between chips, and to next to nothing, as of a cache."""


def dead_figures(backend: Backend, recordings: Iterable[Recording]) -> set[str]:
    """The figures of the backend's chip file that no recorded launch notices when they change by one of FACTORS."""
    figures = backend.timing().figures
    left = set(figures)
    for recording in recordings:
        for warm in (False, True):
            plain = launch_time(backend.timing(), recording.launch, warm, tells=False).seconds
            for name in sorted(left):
                factors = FACTORS[:2] if figures.figure(name).unit == "count" else FACTORS
                chips = (backend.timing(figures.scaled(name, factor)) for factor in factors)
                if any(launch_time(chip, recording.launch, warm, tells=False).seconds != plain for chip in chips):
                    left.discard(name)
    return left
