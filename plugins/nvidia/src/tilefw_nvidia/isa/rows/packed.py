"""Packed halves: a meaning for one element made into one for two (PTX ISA, "Packed Data Types")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def elementwise(meaning: Callable[..., Any], packed: bool) -> Callable[..., Any]:
    """`meaning` itself, or, when packed, `meaning` on the low and on the high 16 bits."""
    if not packed:
        return meaning

    def both(lanes: Any, *sources: Any) -> Any:
        halves = [lanes.split(source, 16) for source in sources]
        return lanes.join([meaning(lanes, *low_or_high) for low_or_high in zip(*halves, strict=True)])

    return both
