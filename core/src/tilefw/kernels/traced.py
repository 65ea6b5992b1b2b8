"""A library kernel launched for its timeline alone: its result is not judged, so that large ones need no reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilefw.kernels.launchable import launchable
from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.runtime import config
from tilefw.runtime.launch import LaunchResult, execute, require_timeline
from tilefw.runtime.plugins.loader import find_target


def traced(
    spec: KernelSpec, parameters: Parameters, target: str | None = None, *, keywords: Mapping[str, Any] | None = None,
    **execution: Any,
) -> LaunchResult:
    """The result, with a timeline, of `spec` with `parameters` on `target`.

    Raises UnsupportedError TFW0645, before anything is compiled, for a target that makes no timelines; and what a launch raises."""
    resolved = config.resolve(config.settings(target, **execution))
    chosen = find_target(resolved.target)
    require_timeline(chosen.info)
    made = launchable(spec, parameters, chosen, resolved, keywords)
    return execute(chosen, resolved, made.compiled, made.entry, made.grid, made.args, made.name, timeline=True)
