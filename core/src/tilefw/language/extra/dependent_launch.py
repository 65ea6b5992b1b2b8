"""Order between launches that a chip may overlap. Launches follow one another here, so both functions have nothing to do."""

from __future__ import annotations

from tilefw.language.markers import builtin


@builtin
def gdc_wait() -> None:
    """Wait until the launch before this one is complete, and its stores can be seen."""
    ...


@builtin
def gdc_launch_dependents() -> None:
    """Let the launch after this one begin."""
    ...
