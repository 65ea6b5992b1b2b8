"""What `NAME` and `FILE.py:FUNCTION` on a command line mean to the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilefw.cli.arguments import literal
from tilefw.cli.scripts import function
from tilefw.runtime.compilation import kernel_source
from tilefw.runtime.tuned_choices import jit_function

if TYPE_CHECKING:
    from tilefw.api.launch import LaunchArguments
    from tilefw.api.target import TargetInfo


def from_library(
    name: str, given: Mapping[str, str], seed: int, info: TargetInfo
) -> tuple[kernel_source.ModuleSource, dict[str, Any], frozenset[str], LaunchArguments | None]:
    """A library kernel as its own launch would compile it, that launch's keywords, and its facts that the target wants."""
    import numpy as np

    from tilefw.kernels.instance import instance
    from tilefw.kernels.spec import load
    from tilefw.runtime.arguments.array_facts import facts_of
    from tilefw.runtime.arguments.bound_launch import launch_of

    spec = load(name)
    launch = spec.prepare(spec.resolve(given), np.random.default_rng(seed))
    made = instance(spec, launch)
    return made.source, dict(launch.keywords), facts_of(info, made.values), launch_of(info, made.values, launch.grid)


def from_file(path: str, name: str, signature: Mapping[str, str], constexprs: Mapping[str, str]) -> kernel_source.ModuleSource:
    """A function of a Python file, with the types and compile-time values that the command line states."""
    stated = kernel_source.ahead_of_time(signature)
    return kernel_source.from_jit(jit_function(function(path, name)), stated, {n: literal(v) for n, v in constexprs.items()})
