"""Hooks of the spatial plugin. It registers no target yet: the statically scheduled machine is still to be written."""

from collections.abc import Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    return ()
