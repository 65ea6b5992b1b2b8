"""What `tilefw tune` tunes: a library kernel, or a function of a file, with the configurations that there are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import literal, literals
from tilefw.cli.grid_expression import grid_text

if TYPE_CHECKING:
    from tilefw.kernels.tuning import Configuration
    from tilefw.runtime.config import Resolved
    from tilefw.runtime.launchable import Launchable


@dataclass(frozen=True, slots=True)
class TunedTask:
    """What is tuned: its name, the key that its choice is kept under, values to search over, the start, the launch of one, its
    estimated seconds where the chip has estimates, and perhaps the only configurations that there are."""

    name: str
    key: str
    over: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any]
    launch: Callable[[Configuration], Launchable]
    estimate: Callable[[Configuration], float] | None
    only: Sequence[Configuration] = ()


def task_of(args: argparse.Namespace, resolved: Resolved) -> TunedTask:
    path, colon, function = args.kernel.rpartition(":")
    return _of_function(args, path, function, resolved) if colon and path.endswith(".py") else _of_library(args, resolved)


def _of_library(args: argparse.Namespace, resolved: Resolved) -> TunedTask:
    from tilefw.kernels.estimated import KernelEstimates
    from tilefw.kernels.launchable import launchable
    from tilefw.kernels.spec import load
    from tilefw.kernels.tuned import choice_key
    from tilefw.kernels.tuning import space
    from tilefw.runtime.plugins.loader import find_target

    spec, given = load(args.kernel), dict(args.param)
    parameters = spec.resolve(given)
    # What is given of that is the only value: the choice is made for it, and says so.
    over = {name: (parameters[name],) if name in given else values for name, values in space(spec.info).items()} | _over(args)
    if not over.keys() - given.keys():
        raise UsageError(f"{spec.name} has no parameter to choose", code="TFW0911", help="name them: --over block=256,512")
    for name in over:
        spec.resolve({name: str(over[name][0])})  # says which names there are
    target = find_target(resolved.target)

    def launch(configuration: Configuration) -> Launchable:
        chosen = {**given, **{name: str(value) for name, value in configuration.items()}}
        return launchable(spec, chosen, target, resolved, assemble=True)

    start = {name: parameters[name] if parameters[name] in values else values[0] for name, values in over.items()}
    estimates = KernelEstimates(spec, given, target)
    estimate = (lambda configuration: estimates(configuration).seconds) if estimates.there else None
    return TunedTask(spec.name, choice_key(spec, parameters, resolved.target), over, start, launch, estimate)


def _of_function(args: argparse.Namespace, path: str, name: str, resolved: Resolved) -> TunedTask:
    from tilefw.cli.function_launch import estimate_of_function, launch_of_function
    from tilefw.cli.scripts import function
    from tilefw.cli.stated_launch import FunctionLaunch
    from tilefw.runtime.autotune import Autotuner
    from tilefw.runtime.estimates import Estimates
    from tilefw.runtime.plugins.loader import find_target
    from tilefw.runtime.tuned_choices import jit_function, key_of_problem

    kernel, over = function(path, name), _over(args)
    tuner = kernel if isinstance(kernel, Autotuner) else None
    only = [config.all_kwargs() for config in tuner.configs] if tuner is not None and not over else []
    if not over and not only:
        raise UsageError(f"what of {name} is to be chosen?", code="TFW0911", help="--over BLOCK=256,512,1024 num_warps=2,4,8")
    scalars, constants = literals(args.scalar), literals(args.constexpr)
    stated = FunctionLaunch(
        path, name, dict(args.signature), constants, args.grid, scalars, literals(args.extent), literals(args.option)
    )

    def with_values(configuration: Configuration) -> FunctionLaunch:
        varied = replace(stated, constexprs={**constants, **{n: v for n, v in configuration.items() if n in names_of}})
        keywords = {**stated.keywords, **{n: v for n, v in configuration.items() if n not in names_of}}
        grid = grid_text(args.grid, {**scalars, **varied.constexprs, **configuration})
        return replace(varied, keywords=keywords, grid=grid)

    estimates = Estimates(find_target(resolved.target))
    estimate = (lambda configuration: estimate_of_function(with_values(configuration), estimates)) if estimates.there else None

    base = jit_function(kernel)
    names_of = set(base.arg_names)
    types = {n: kind[1:].partition(":")[0] for n, kind in dict(args.signature).items() if kind.startswith("*")}
    values = {**constants, **scalars}
    keys = {n: values[n] for n in (tuner.keys if tuner is not None else scalars) if n in values}
    start = {n: choices[0] for n, choices in over.items()}
    return TunedTask(
        name, key_of_problem(base, resolved.target, keys, types), over, start,
        lambda configuration: launch_of_function(with_values(configuration), resolved), estimate, only,
    )


def _over(args: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(literal(word) for word in text.split(",")) for name, text in args.over}
