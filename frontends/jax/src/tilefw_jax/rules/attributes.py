"""Attributes of StableHLO's operators as Python's numbers."""

from __future__ import annotations

from typing import Any


def integers(op: Any, name: str, absent: int | None = None, count: int = 0) -> list[int]:
    """The integers of a dense attribute; `count` times `absent` where it is not there."""
    if name not in op.attributes:
        assert absent is not None, f"{op.name} has no {name}"
        return [absent] * count
    return [int(one) for one in op.attributes[name]]


def pairs(op: Any, name: str, count: int) -> list[tuple[int, int]]:
    """Pairs of integers, such as padding before and behind; pairs of zeros where the attribute is not there."""
    if name not in op.attributes:
        return [(0, 0)] * count
    import numpy as np

    return [(int(low), int(high)) for low, high in np.array(op.attributes[name]).reshape(count, 2)]


def integer(op: Any, name: str, absent: int | None = None) -> int:
    """One integer."""
    if name not in op.attributes:
        assert absent is not None, f"{op.name} has no {name}"
        return absent
    return int(op.attributes[name].value)


def texts(op: Any) -> dict[str, str]:
    """All attributes as MLIR writes them, but for large constants."""
    return {str(name): str(op.attributes[name]) for name in op.attributes if str(name) != "value"}
