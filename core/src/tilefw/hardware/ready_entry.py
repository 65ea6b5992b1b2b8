"""What is left to say of a launch when its entry and its options are known."""

from __future__ import annotations

from collections.abc import Callable

from tilefw.api.device import LaunchReport

ReadyEntry = Callable[[tuple[int, int, int], bytes, int], LaunchReport]
"""A launch of an entry whose options are known: of the grid, the block of arguments, and the handle of the stream that it goes to,
on a device that has streams."""
