"""A library kernel launched for its timeline alone: its result is not judged, so that large ones need no reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilefw.kernels.instance import instance
from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.runtime import config
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.arguments.binding import bind
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.compilation import compiler, options
from tilefw.runtime.executor import executor_for
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
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(resolved.seed))
    made = instance(spec, launch)
    request = options.resolve(
        {**launch.keywords, **(keywords or {})}, chosen.info, facts=facts_of(chosen.info, made.values),
        launch=launch_of(chosen.info, made.values, launch.grid),
    )
    assembled = executor_for(chosen, resolved.executor).device.assembled
    compiled = compiler.compile_source(made.source, chosen, request, assemble=assembled)
    entry = compiled.artifact.entry()
    args = bind(entry, list(made.passed.values()))
    return execute(chosen, resolved, compiled, entry, launch.grid, args, spec.name, timeline=True)
