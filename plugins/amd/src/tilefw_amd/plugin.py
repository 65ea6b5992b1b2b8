"""The hooks of the AMD plugin: what there is, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_amd.target import TARGETS

    return TARGETS


@hookimpl
def tilefw_passes() -> Mapping[str, str]:
    return {"lane-to-gfx942": "tilefw_amd.pipeline:LaneToGfx942", "gfx942-code": "tilefw_amd.pipeline:Gfx942Code"}
