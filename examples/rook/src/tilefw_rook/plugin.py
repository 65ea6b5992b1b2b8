"""The hooks of the Rook plugin: plain data; classes load when they are first used."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_rook.target import R1

    return (R1,)
