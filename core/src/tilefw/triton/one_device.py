"""A program has one device here: asking for a second one is refused, never served by the first."""

from __future__ import annotations

from typing import Any

from tilefw.api.errors import LaunchError


def require_first(device: Any) -> None:
    """Nothing for None, 0, or what has the index None or 0 (a `torch.device`); raises LaunchError TFW0352 for any other device."""
    index = _index(device)
    if index not in (None, 0):
        raise LaunchError(
            f"the program asks for device {index}, and there is one device, number 0", code="TFW0352",
            help="run the program for one device",
        )


def _index(device: Any) -> int | None:
    if isinstance(device, str):
        _, colon, number = device.partition(":")
        return int(number) if colon and number.isdecimal() else None
    return getattr(device, "index", None) if not isinstance(device, int) else device if device >= 0 else None
