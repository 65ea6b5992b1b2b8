"""The hooks of the cpu plugin: what there is, without doing any of it."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api import TargetInfo, hookimpl

TILEFW_API = (0, 1)
TILEFW_DEFAULT_TARGET = "cpu-native"  # of launches that name none


@hookimpl
def tilefw_targets() -> Sequence[TargetInfo]:
    from tilefw_cpu.target import TARGETS

    return TARGETS
