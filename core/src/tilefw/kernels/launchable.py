"""A library kernel compiled and bound, ready to be launched for what it does rather than for its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tilefw.api.backend import CompileOptions
from tilefw.kernels.instance import instance
from tilefw.kernels.spec import KernelSpec, Parameters
from tilefw.runtime import config
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.arguments.binding import bind, block_of, grid_of
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.compilation import compiler, options
from tilefw.runtime.executor import executor_for
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.launchfile import LaunchFile
from tilefw.runtime.module import Module
from tilefw.runtime.plugins.loader import Target


def launchable(
    spec: KernelSpec, parameters: Parameters, target: Target, resolved: config.Resolved, keywords: Mapping[str, Any] | None = None,
    assemble: bool | None = None,
) -> Launchable:
    """The launch of `spec` with `parameters`; its arrays are filled by the seed. The code is assembled where the device wants
    that, unless `assemble` says. Raises what compiling and binding raise."""
    launch = spec.prepare(spec.resolve(parameters), np.random.default_rng(resolved.seed))
    made = instance(spec, launch)
    request = options.resolve(
        {**launch.keywords, **(keywords or {})}, target.info, facts=facts_of(target.info, made.values),
        launch=launch_of(target.info, made.values, launch.grid),
    )
    if assemble is None:
        assemble = executor_for(target, resolved.executor).device.assembled
    compiled = compiler.compile_source(made.source, target, request, assemble=assemble)
    entry = compiled.artifact.entry()
    return Launchable(spec.name, target, resolved, compiled, entry, launch.grid, bind(entry, list(made.passed.values())))


def launchable_file(module: Module, launch: LaunchFile, resolved: config.Resolved) -> Launchable:
    """The launch of machine code, whoever made it, as a launch file describes it. Raises LaunchError."""
    kernel = module.only(launch.kernel)
    entry, grid = kernel.entry, grid_of(launch.grid)
    args = bind(entry, launch.args)
    compiled = module.compiled(entry, args, grid)
    if compiled.artifact.resources.registers is None:
        compiled = replace(compiled, artifact=module.target.backend.assemble(compiled.artifact, CompileOptions()))
    return Launchable(
        entry.name, module.target, resolved, compiled, entry, grid, args, block_of(launch.block), launch.dynamic_shared
    )
