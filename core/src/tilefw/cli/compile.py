"""`tilefw compile`: a kernel down to one level, as text or bytes; or a whole model to a file of its plan."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import CompileError, UnsupportedError, UsageError
from tilefw.cli.arguments import add_assignments, literal, literals, parser, whole
from tilefw.cli.models import add_model_options, compile_model
from tilefw.cli.opt import print_after
from tilefw.cli.output import write_file, write_stdout
from tilefw.graph.model_readers import is_model

if TYPE_CHECKING:
    from tilefw.api.artifact import Artifact
    from tilefw.api.backend import Backend, CompileOptions
    from tilefw.api.launch import LaunchArguments
    from tilefw.api.target import TargetInfo
    from tilefw.runtime.compilation.kernel_source import ModuleSource

LEVELS = ("tile", "lane", "machine", "llvm", "asm", "bin")


def main(summary: str, argv: list[str]) -> int:
    parse = _parser(summary)
    args = parse.parse_all(argv)
    if is_model(args.kernel):
        _refuse_for_model(parse, args)
        return compile_model(args.kernel, args.target, args.output, args.fuse, args.size)
    for name in ("fuse", "size"):
        if getattr(args, name):
            raise UsageError(f"--{name} goes with a model", code="TFW0917", help=f"tilefw compile MODEL.onnx --{name} …")

    from tilefw.runtime import config
    from tilefw.runtime.compilation import compiler, pass_run
    from tilefw.runtime.diagnostics import render_remarks
    from tilefw.runtime.plugins.loader import find_target

    target = find_target(config.resolve(config.settings(args.target)).target)
    source, keywords, facts, launch = _source(args, target.info)
    keywords |= literals(args.option)
    request = _request(args, keywords, facts, launch, target.info)
    watch = pass_run.Watch(dump=print_after if args.print_between_passes else None)
    watched = args.print_between_passes or args.time_passes
    assemble = args.emit in ("asm", "bin")
    compiled = compiler.compile_source(source, target, request, assemble=assemble, watch=watch if watched else None)
    if args.time_passes:
        _print_times(watch.passes, compiled.times)
    if compiled.artifact.remarks:
        print(render_remarks(compiled.artifact.remarks), file=sys.stderr)
    data = _level(compiled.artifact, args.emit, target.backend)
    if args.output:
        write_file(args.output, data)
    else:
        write_stdout(data)
    return 0


def _refuse_for_model(parse: Any, args: argparse.Namespace) -> None:
    """Raise UsageError for an option that says how one kernel is compiled."""
    for name, value in vars(args).items():
        if name not in ("kernel", "target", "output", "fuse", "size") and value != parse.get_default(name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with a model", code="TFW0917")


def _request(
    args: argparse.Namespace, keywords: dict[str, Any], facts: frozenset[str], launch: LaunchArguments | None, info: TargetInfo
) -> CompileOptions:
    """The options of the compilation; an unknown or ill-valued --option is a mistake of the command line."""
    from tilefw.cli.arguments import told_to_the_user
    from tilefw.runtime.compilation import options

    with told_to_the_user():
        return options.resolve(keywords, info, facts=facts, launch=launch, keep_levels=args.emit in ("tile", "lane", "machine"))


def _parser(summary: str) -> Any:
    parse = parser("compile", summary)
    parse.add_argument("kernel", help="a library kernel's NAME, FILE.py:FUNCTION, FILE.mlir, FILE.ttir, bytecode, or a model")
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    parse.add_argument("--emit", choices=LEVELS, default="asm", help="the level to stop at (default: asm)")
    parse.add_argument("-o", "--output", metavar="FILE", help="write there instead of to stdout")
    add_assignments(parse, "--param", "parameters of a library kernel")
    add_assignments(parse, "--signature", "types of run-time parameters, such as x_ptr=*fp32 or n=i32:16")
    add_assignments(parse, "--constexpr", "values of compile-time parameters")
    parse.add_argument("--grid", metavar="X[,Y[,Z]]", help="the grid, for a target that compiles for one launch")
    add_assignments(parse, "--scalar", "scalar arguments, for such a target")
    add_assignments(parse, "--extent", "bytes behind each pointer, for such a target")
    add_assignments(parse, "--option", "launch keywords that shape code, such as num_warps=8")
    parse.add_argument("--seed", type=whole, default=0, metavar="N", help="the inputs of a library kernel's launch")
    add_model_options(parse)
    parse.add_argument("--print-between-passes", action="store_true", help="the module after every pass, on stderr")
    parse.add_argument("--time-passes", action="store_true", help="milliseconds of every pass, on stderr")
    return parse


def _source(
    args: argparse.Namespace, info: TargetInfo
) -> tuple[ModuleSource, dict[str, Any], frozenset[str], LaunchArguments | None]:
    from tilefw.cli import sources
    from tilefw.runtime.compilation import kernel_source

    path, colon, function = args.kernel.rpartition(":")
    if colon and path.endswith(".py"):
        _refuse(args, "--param")
        launch = _stated_launch(args, info)
        return sources.from_file(path, function, dict(args.signature), dict(args.constexpr)), {}, frozenset(), launch
    _refuse(args, "--signature", "--constexpr", "--grid", "--scalar", "--extent")
    if args.kernel.endswith(".py"):
        raise UsageError(f"which function of {args.kernel}?", code="TFW0916", help=f"write {args.kernel}:FUNCTION")
    if os.path.splitext(args.kernel)[1] or os.sep in args.kernel:
        _refuse(args, "--param")
        return kernel_source.from_file(args.kernel), {}, frozenset(), None
    return sources.from_library(args.kernel, dict(args.param), args.seed, info)


def _stated_launch(args: argparse.Namespace, info: TargetInfo) -> LaunchArguments | None:
    from tilefw.runtime.arguments.bound_launch import stated_launch

    grid = None if args.grid is None else tuple(literal(extent) for extent in args.grid.split(","))
    return stated_launch(info, dict(args.signature), grid, literals(args.scalar), literals(args.extent))


def _refuse(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(args, name.removeprefix("--")):
            raise UsageError(f"{name} does not go with '{args.kernel}'", code="TFW0917")


def _level(artifact: Artifact, level: str, backend: Backend) -> bytes:
    """The bytes of one level of an artifact; raises CompileError where the target has no such level."""
    if level == "bin":
        if artifact.binary is None:
            reason = artifact.resources.unknown or "its assembler is not installed"
            message = f"there is no binary for {artifact.target}"
            raise UnsupportedError(message, code="TFW0917", note=reason, help="see `tilefw doctor`")
        return artifact.binary
    if level == "asm":
        return _line(backend.assembly(artifact))
    if level in artifact.levels:
        return _line(artifact.levels[level])
    if level == artifact.format:
        return _line(artifact.text)
    own = [artifact.format] if artifact.format in LEVELS else []
    found = ", ".join(dict.fromkeys((*artifact.levels, *own, "asm")))
    raise CompileError(f"{artifact.target} has no level '{level}'", code="TFW0917", note=f"its levels are {found}")


def _line(text: str) -> bytes:
    return (text if text.endswith("\n") else text + "\n").encode()


def _print_times(passes: list[tuple[str, float]], times: Any) -> None:
    for name, seconds in [*passes, *times.items()]:
        print(f"{1000 * seconds:9.2f} ms  {name}", file=sys.stderr)
