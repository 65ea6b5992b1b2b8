"""The hooks of the AMD plugin: what there is, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_amd.chips.targets import targets

    return targets()


@hookimpl
def tilefw_passes() -> Mapping[str, str]:
    from tilefw_amd.chips import chips

    found: dict[str, str] = {}
    for name in chips():
        found |= {f"lane-to-{name}": f"tilefw_amd.pipeline:lane_to_{name}", f"{name}-code": f"tilefw_amd.pipeline:{name}_code"}
    return found


@hookimpl
def tilefw_systems() -> str:
    return "tilefw_amd.systems"
