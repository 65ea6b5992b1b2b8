"""A program has one device here: asking for a second one is refused, never served by the first.

Of processes that are started together each has one, which it calls 0 or, as if it saw all of them, by its number on the machine.
"""

from __future__ import annotations

import os
from typing import Any

from tilefw.api.errors import LaunchError

LOCAL_RANK, LOCAL_WORLD_SIZE = "LOCAL_RANK", "LOCAL_WORLD_SIZE"  # as torchrun tells each process


def devices() -> int:
    """How many devices the machine seems to have: one for each process that was started together with this one."""
    processes = os.environ.get(LOCAL_WORLD_SIZE, "1")
    return int(processes) if processes.isdecimal() else 1


def require_first(device: Any) -> None:
    """Nothing for None, 0, the process's number, or what has such an index (a `torch.device`); raises LaunchError TFW0352 for any
    other device."""
    index = _index(device)
    if index not in (None, 0) and str(index) != os.environ.get(LOCAL_RANK):
        raise LaunchError(
            f"the program asks for device {index}, and there is one device, number 0", code="TFW0352",
            help="run the program for one device",
        )


def _index(device: Any) -> int | None:
    if isinstance(device, str):
        _, colon, number = device.partition(":")
        return int(number) if colon and number.isdecimal() else None
    return getattr(device, "index", None) if not isinstance(device, int) else device if device >= 0 else None
