"""The hooks of the plugin: what there is, without doing any of it."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_tarn.target import TARGETS

    return TARGETS
