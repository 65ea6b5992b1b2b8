"""Files of models: which distribution reads files of which suffix, and a model from a path as a plan for a target.

A reader is an entry point of the group `tilefw.frontends`; the graph dialect's own text (`.graph`) is read without one. Its name is
the suffix without the dot, its value a function from a path to a `KernelGraph`. One that can leave nodes apart takes `fuse=False`
besides, one that lets a target decide what is fused `choice`, one of models that leave sizes open `sizes`, by their names, and
`shapes` of arrays for the inputs, which have such sizes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import CodeError, PluginError, UsageError

if TYPE_CHECKING:
    from tilefw.graph.fuse.choice import FusionChoice
    from tilefw.graph.kernel_graph import KernelGraph
    from tilefw.graph.plan import ModelPlan

GROUP = "tilefw.frontends"
PLAN_SUFFIX = ".tfm"  # of files that hold a plan
_TEXT = EntryPoint("graph", "tilefw.graph.text_reader:read", GROUP)  # which needs no other distribution
OWN = {".onnx": "tilefw-onnx", ".stablehlo": "tilefw-jax"}  # the distributions of this project, which may not be installed


@cache
def readers() -> Mapping[str, EntryPoint]:
    """The installed readers by the suffix of the files that they read."""
    return {f".{point.name}": point for point in (_TEXT, *entry_points(group=GROUP))}


def read_graph(
    path: str | os.PathLike[str], fuse: bool = True, choice: FusionChoice | None = None, sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> KernelGraph:
    """The model in a file; without `fuse` with a launch for each node, else `choice` is between ways to fuse, where the reader has
    any; `sizes` are those that the model leaves open, and arrays of `shapes`, by the inputs' names, have the rest of them. Raises
    PluginError TFW0993 where nothing reads such files, UsageError TFW0917 where their reader cannot leave nodes apart or takes no
    sizes, and what the reader raises."""
    suffix = os.path.splitext(path)[1]
    if suffix not in readers():
        known = ", ".join(sorted(readers())) or "none"
        raise PluginError(
            f"no installed distribution reads '{suffix}' files", code="TFW0993", note=f"suffixes that are read: {known}",
            help=f"pip install {OWN.get(suffix, 'tilefw-' + suffix.removeprefix('.'))}",
        )
    try:
        read = readers()[suffix].load()
    except (ImportError, AttributeError) as error:
        point = readers()[suffix]
        raise PluginError(f"the reader of '{suffix}' files, {point.value}, cannot be loaded: {error}", code="TFW0993") from error
    known, options = signature(read).parameters, dict[str, Any]()
    if not fuse and "fuse" not in known:
        raise UsageError(f"the reader of '{suffix}' files has no choice of what is fused", code="TFW0917", help="omit --fuse")
    if sizes and "sizes" not in known:
        raise UsageError(f"models in '{suffix}' files leave no sizes open", code="TFW0917", help="omit --size")
    if not fuse:
        options["fuse"] = False
    elif choice is not None and "choice" in known:
        options["choice"] = choice
    if shapes and "shapes" in known:
        options["shapes"] = shapes
    return read(path, **options, **({"sizes": sizes} if sizes else {}))


def read_plan(
    path: str | os.PathLike[str], target: str | None, executor: str | None = None, fuse: bool | None = None,
    sizes: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModelPlan:
    """The plan in a file, or that of the model in a file, for a target, with arrays of `shapes` for its inputs. Raises CodeError
    TFW0781 for a plan of another target, UsageError TFW0917 where `fuse` or `sizes` are said of a plan, which has its launches."""
    from tilefw.graph import plan_file
    from tilefw.graph.compile_graph import compile_graph
    from tilefw.graph.target_choice import TargetChoice

    if os.path.splitext(path)[1] != PLAN_SUFFIX:
        graph = read_graph(path, fuse is not False, TargetChoice(target, executor), sizes, shapes)
        return compile_graph(graph, target, executor)
    if fuse is not None or sizes:
        raise UsageError(
            f"--{'size' if sizes else 'fuse'} does not go with {os.fspath(path)}, which is compiled", code="TFW0917",
            help="say it to `tilefw compile MODEL`",
        )
    plan = plan_file.load(path)
    if target is not None and _name(target) != plan.target:
        raise CodeError(
            f"{os.fspath(path)} is a model compiled for {plan.target}, not for {target}", code="TFW0781",
            help=f"run it with --target {plan.target}, or compile the model again",
        )
    return plan


def is_model(path: str) -> bool:
    """Whether a word of a command line is the path of a model, by its suffix: a plan's, or one that a reader reads, or would
    read if it were installed."""
    suffix = os.path.splitext(path)[1]
    return suffix == PLAN_SUFFIX or suffix in OWN or (bool(suffix) and suffix in readers())


def _name(target: str) -> str:
    from tilefw.runtime.plugins.loader import find_target

    return find_target(target).name
