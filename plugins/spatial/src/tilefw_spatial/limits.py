"""Limits of size that are the compiler's own, not the chip's memory, and the error for a launch beyond one."""

from __future__ import annotations

from tilefw.api import CapacityError, Place

MOST_STEPS = 50_000  # operations of one class of programs, loops unrolled
MOST_CLASSES = 512  # of programs of a grid with equal control flow
MOST_PROGRAMS = 1 << 22  # each number that the kernel derives from a program's id is an array of them
SOME_PROGRAMS = 1 << 18  # of a larger grid, the first ones: what they access fits no chip, or the grid is refused for its size

SMALLER = "launch on smaller arrays, or on parts of them"


def beyond(
    what: str, needed: int, available: int, unit: str, place: Place | None, help: str = SMALLER, exact: bool = True
) -> CapacityError:
    """The refusal of `needed` of something where the compiler takes `available`; not `exact`: nobody counted on."""
    count = f"{needed}" if exact else f"more than {available}"
    return CapacityError(
        f"{what}: {count} {unit}, of which the compiler takes {available}", "TFW0691", place,
        note="all programs of a launch are scheduled together", help=help,
        resource=unit, needed=needed, available=available, unit=unit,
    )
