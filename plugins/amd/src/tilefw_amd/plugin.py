"""Hooks of the AMD plugin. It registers no target yet: the CDNA3 machine and compiler are still to be written."""

from collections.abc import Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    return ()
