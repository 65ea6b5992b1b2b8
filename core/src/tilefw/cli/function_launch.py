"""A function of a Python file made ready as the command line states its launch, or estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.api.backend import CompileOptions
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.cli.arguments import literal, told_to_the_user
from tilefw.cli.scripts import function
from tilefw.cli.stated_launch import FunctionLaunch
from tilefw.runtime.arguments.arrays import TypedArray
from tilefw.runtime.arguments.binding import bind, grid_of
from tilefw.runtime.arguments.bound_launch import stated_launch
from tilefw.runtime.compilation import compiler, kernel_source, options
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.names import suggest
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.runtime.tuned_choices import jit_function

if TYPE_CHECKING:
    from tilefw.runtime import config
    from tilefw.runtime.compilation.kernel_source import ModuleSource
    from tilefw.runtime.estimates import Estimates


def launch_of_function(stated: FunctionLaunch, resolved: config.Resolved) -> Launchable:
    """The launch on the settings' target, over arrays of zeros. Raises UsageError TFW0911 for what it lacks or has no use for, and
    what compiling and binding raise."""
    target = find_target(resolved.target)
    made = _prepared(stated, target)
    compiled = compiler.compile_source(made.source, target, made.request, assemble=True)
    entry = compiled.artifact.entry()
    with told_to_the_user():
        args = bind(entry, [made.values[parameter.name] for parameter in entry.parameters if parameter.hidden is None])
    return Launchable(stated.name, target, resolved, compiled, entry, made.grid, args)


def estimate_of_function(stated: FunctionLaunch, estimates: Estimates) -> float:
    """The estimated seconds of such a launch. Raises as `launch_of_function` does in front of lowering."""
    made = _prepared(stated, estimates.target)
    return estimates.of(made.source, made.request, made.values, made.grid).seconds


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is compiled of a stated launch, and what it is launched with."""

    source: ModuleSource
    request: CompileOptions
    grid: tuple[int, int, int]
    values: Mapping[str, Any]


def _prepared(stated: FunctionLaunch, target: Target) -> _Prepared:
    types = kernel_source.ahead_of_time(stated.signature)
    missing = _missing(stated)
    if missing:
        raise UsageError(
            f"how is {stated.name} launched? it lacks {', '.join(missing)}", code="TFW0911",
            help="--signature x_ptr=*fp32 n=i32 --constexpr BLOCK=1024 --grid 64 --scalar n=65536 --extent x_ptr=262144 (bytes)",
        )
    _refuse_unknown(stated)
    if "timeline" not in target.info.provides:  # whose simulator tells when what happens
        target.backend.timing()  # raises for a target without a model of time, before anything is compiled
    with told_to_the_user():
        grid = grid_of(tuple(literal(extent) for extent in str(stated.grid).split(",")))
        launch = stated_launch(target.info, stated.signature, grid, stated.scalars, stated.extents)
        request = options.resolve(dict(stated.keywords), target.info, launch=launch)
        values = {name: _value(stated, name, kind) for name, kind in stated.signature.items()}
    kernel = jit_function(function(stated.path, stated.name))
    source = kernel_source.from_jit(kernel, types, dict(stated.constexprs), warps=options.warps(request, target.info))
    return _Prepared(source, request, grid, values)


def _missing(stated: FunctionLaunch) -> list[str]:
    found = [f"--{what}" for what in ("signature", "grid") if not getattr(stated, what)]
    found += [f"--extent {name}" for name, kind in stated.signature.items() if kind.startswith("*") and name not in stated.extents]
    numbers = [name for name, kind in stated.signature.items() if not kind.startswith("*") and not kind.endswith(":1")]
    return found + [f"--scalar {name}" for name in numbers if name not in stated.scalars]


def _refuse_unknown(stated: FunctionLaunch) -> None:
    for option, given, pointers in (("scalar", stated.scalars, False), ("extent", stated.extents, True)):
        known = [name for name, kind in stated.signature.items() if kind.startswith("*") is pointers]
        for name in given.keys() - set(known):
            raise UsageError(
                f"--{option} {name}: the signature has no {'pointer' if pointers else 'scalar'} '{name}'", code="TFW0911",
                help=suggest(name, known, what="names"),
            )


def _value(stated: FunctionLaunch, name: str, kind: str) -> Any:
    if not kind.startswith("*"):
        return stated.scalars.get(name, 1)  # a type that ends in `:1` says the value itself
    element, nbytes = dtype(kind[1:].partition(":")[0]), stated.extents[name]
    if type(nbytes) is not int or nbytes < 0 or nbytes * 8 % element.storage_bits:
        raise UsageError(f"--extent {name} is a number of bytes of {element} elements, not {nbytes!r}", code="TFW0911")
    try:
        raw = np.zeros(nbytes * 8 // element.storage_bits, f"u{element.storage_bits // 8}")
    except (MemoryError, ValueError):  # the latter where the number of elements is none that an array can have
        raise UsageError(f"--extent {name}: this machine has no room for {nbytes:,} bytes", code="TFW0911") from None
    return TypedArray(raw, element)
