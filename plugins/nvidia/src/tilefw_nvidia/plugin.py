"""The hooks of the NVIDIA plugin: what there is, without doing any of it (a new page of `chips/` is a new answer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_nvidia.chips.targets import targets

    return targets()


@hookimpl
def tilefw_passes() -> Mapping[str, str]:
    return {"lane-to-ptx": "tilefw_nvidia.pipeline:LaneToPtx"}


@hookimpl
def tilefw_systems() -> str:
    return "tilefw_nvidia.systems"
