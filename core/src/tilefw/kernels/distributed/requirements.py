"""What collectives ask of their arguments, before anything runs: a form that there is, shapes that go together, room for counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tilefw.api.errors import LaunchError, UsageError

SUMMED = ("float32", "float16", "bfloat16")
"""The types whose sums in fp32 are what they should be."""


def require_form(name: str, form: Any, forms: Collection[str], **counts: Any) -> None:
    """Raises UsageError TFW0902 for a form that a collective does not have, and for a count that is no whole number from 1."""
    if form not in forms:
        raise UsageError(f"{name} has no form {form!r}", code="TFW0902", help=f"its forms: {', '.join(forms)}")
    for what, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UsageError(f"{what} is a whole number from 1, not {count!r}", code="TFW0902")


def require_summed(name: str, *dtypes: Any) -> None:
    """Raises LaunchError TFW0872 for types of terms or sums that fp32 does not hold: their bits would be lost without a word."""
    for dtype in dtypes:
        if dtype.name not in SUMMED:
            raise LaunchError(f"{name} adds up in fp32, not in {dtype}", code="TFW0872", help=f"it takes {', '.join(SUMMED)}")


def require_shape(name: str, array: Any, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The array's shape, if it has these extents; None is any. Raises LaunchError TFW0872."""
    found = tuple(array[0].shape)
    if len(found) != len(shape) or any(asked not in (None, extent) for asked, extent in zip(shape, found, strict=True)):
        wanted = ", ".join("any" if asked is None else str(asked) for asked in shape)
        raise LaunchError(
            f"{name} has the shape {found}, which does not go with the other arrays", code="TFW0872",
            help=f"its extents are to be ({wanted})",
        )
    return found


def require_counts(name: str, counts: Any, most: int) -> None:
    """Raises LaunchError TFW0872 where a rank's counts are beyond what there is room for."""
    for rank, held in enumerate(counts):
        if held.size and not 0 <= held.min() <= held.max() <= most:
            raise LaunchError(
                f"{name} of rank {rank} are from {held.min()} to {held.max()}, and there is room for {most}", code="TFW0872",
                help="make the buffers larger, or the counts smaller",
            )
