"""`tilefw run`: a library kernel compiled, executed and checked against the reference; a Python script; or a whole model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import InternalError, UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_execution, add_json, execution, parser, positive, refuse, whole
from tilefw.cli.devices import require_no_collective, run_on_devices
from tilefw.cli.models import add_model_options, run_model
from tilefw.cli.output import print_json, write_file
from tilefw.cli.tuned_launch import add_tuned, with_choice
from tilefw.graph.model_readers import is_model
from tilefw.runtime.compilation.kernel_source import is_bytecode, is_imported

if TYPE_CHECKING:
    from tilefw.api.artifact import Artifact
    from tilefw.api.remark import Remark
    from tilefw.kernels.verify import Verdict

EXTENSIONS = {"asm": "s", "tile": "mlir", "lane": "mlir", "machine": "mlir"}


def main(summary: str, argv: list[str]) -> int:
    parse = _parser(summary)
    own, dashes, rest = _split_arguments(argv)
    args = parse.parse_all(own)
    if is_imported(args.kernel) or _is_bytecode(args.kernel):
        raise UsageError(
            f"`run` has no arguments for the kernel of {args.kernel}", code="TFW0916",
            help=f"say them in a launch file: tilefw simulate {args.kernel} --target T --launch LAUNCH.yaml",
        )
    if is_model(args.kernel):
        _refuse_for_model(args, dashes)
        return run_model(args)
    for name in ("input", "out", "check", "sample", "profile", "timeline", "fuse", "size"):
        if getattr(args, name) not in (None, False, "", []) and (name, args.devices is None) != ("timeline", False):
            raise UsageError(f"--{name} goes with a model", code="TFW0917", help=f"tilefw run MODEL.onnx --{name} …")
    for name in ("time", "system"):
        if getattr(args, name) and args.devices is None:
            raise UsageError(f"--{name} goes with --devices", code="TFW0917", help=f"tilefw run all_reduce --devices 4 --{name} …")
    if args.devices is not None:
        if dashes:
            raise UsageError("arguments after `--` go to a Python script", code="TFW0917", help="a collective takes --param k=v")
        return run_on_devices(args)
    if args.kernel.endswith(".py") or os.path.isfile(args.kernel):
        return _script(args, rest)
    if args.triton or args.compiler:
        raise UsageError("--triton and --compiler go with a Python script", code="TFW0917", help="tilefw run --triton SCRIPT.py")
    if dashes:
        raise UsageError("arguments after `--` go to a Python script", code="TFW0917", help="a library kernel takes --param k=v")
    return _library(args)


def _refuse_for_model(args: argparse.Namespace, dashes: bool) -> None:
    names = ("param", "option", "save_temps", "triton", "compiler", "tuned")
    given = [name for name in names if getattr(args, name)]
    if given or dashes:
        raise UsageError(f"--{(given or [''])[0].replace('_', '-')} does not go with a model", code="TFW0917")


def _is_bytecode(path: str) -> bool:
    """Whether there is a file of bytecode at a path."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return is_bytecode(file.read(16))
    except OSError:
        return False


def _split_arguments(argv: list[str]) -> tuple[list[str], bool, list[str]]:
    """Our own arguments, whether there is a `--`, and what stands after it."""
    if "--" not in argv:
        return argv, False, []
    at = argv.index("--")
    return argv[:at], True, argv[at + 1 :]


def _parser(summary: str) -> Parser:
    parse = parser("run", summary, "`tilefw run SCRIPT.py --target T -- args` runs a program with T as its default target.")
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), a Python file, or a model")
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_assignments(parse, "--option", "launch keywords that shape code, such as maxnreg=64, and the target's own")
    parse.add_argument("--devices", type=positive, metavar="N", help="run a collective of the library, or a model, on N devices")
    parse.add_argument("--time", action="store_true", help="tell the modelled time on the devices, and its parts")
    parse.add_argument(
        "--system", metavar="PLUGIN:NAME", help="what the devices are joined in (default: their chip's); tells the time, as --time",
    )
    add_tuned(parse)
    parse.add_argument("--save-temps", metavar="DIR", help="write every level, the machine code and the binary there")
    parse.add_argument("--triton", action="store_true", help="make `import triton` mean tilefw in the script")
    parse.add_argument(
        "--compiler", choices=("tilefw", "triton"), help="who compiles the kernels of a script for Triton; `tilefw` is --triton",
    )
    parse.add_argument("--input", metavar="X.npz", help="the inputs of a model by name (default: arrays from the seed)")
    parse.add_argument("--out", metavar="Y.npz", help="write the outputs of a model there, by name")
    parse.add_argument("--check", choices=("launches",), help="judge every launch of a model by the reference's bounds")
    parse.add_argument(
        "--sample", type=whole, metavar="N",
        help="judge large launches of a model by N of their programs on a simulator (default 64; 0: all programs)",
    )
    parse.add_argument("--profile", action="store_true", help="tell the time of a model by kernel and by node")
    parse.add_argument("--timeline", metavar="FILE.json", help="write when each launch of a model ran, or what ranks did")
    add_model_options(parse)
    add_execution(parse)
    add_json(parse)
    return parse


def _script(args: argparse.Namespace, rest: list[str]) -> int:
    refuse(args, ("param", "option", "save_temps", "json", "tuned"), "a script")
    from tilefw.cli.scripts import run_program
    from tilefw.runtime import config
    from tilefw.runtime.arguments.unwritten import in_place_of_numpys
    from tilefw.runtime.plugins.loader import find_target

    if args.target is not None:
        find_target(args.target)  # a name that does not exist is told before the script starts
    options = execution(args)
    asked = config.parse_checks(options.get("checks") or ())
    marked = in_place_of_numpys() if "uninitialised_host" in asked else nullcontext()
    with config.in_every_thread(config.settings(args.target, **options)), marked:
        _for_triton("tilefw" if args.triton else args.compiler)
        return run_program(args.kernel, rest)


def _for_triton(compiler: str | None) -> None:
    """What a script written for Triton needs: tilefw in Triton's place, or as Triton's device."""
    if compiler is not None:
        from tilefw import triton

        (triton.install if compiler == "tilefw" else triton.sanitize)()


def _library(args: argparse.Namespace) -> int:
    from tilefw.cli.arguments import keywords
    from tilefw.kernels.spec import load
    from tilefw.kernels.verify import verify

    keep_levels = args.save_temps is not None
    try:
        spec = load(args.kernel)
    except UsageError:
        require_no_collective(args.kernel)
        raise
    verdict = verify(
        spec, with_choice(spec, args, args.target), args.target, keep_levels=keep_levels, keywords=keywords(args), **execution(args)
    )
    if args.save_temps and verdict.artifact is not None:
        _save(args.save_temps, verdict.kernel, verdict.artifact)
    if args.json:
        print_json("run", to_json(verdict))
    else:
        print(render(verdict))
    error = None if verdict.failed is None else verdict.failed.error
    if isinstance(error, InternalError):
        raise error
    if error is not None:
        if not verdict.findings:  # those are in the report
            print(error, file=sys.stderr)
        return error.exit_code  # a plugin that does not load is not a fault of the kernel
    return 0 if verdict.ok else 1


def render(verdict: Verdict) -> str:
    """The verdict for people: what was run, each stage's outcome and time, results, resources, findings, remarks."""
    from tilefw.runtime.diagnostics import render_counters, render_utilisation

    given = ", ".join(f"{name}={value}" for name, value in verdict.parameters.items())
    headline = "pass" if verdict.ok else "FAIL"
    lines = [f"{headline}  {verdict.kernel} on {verdict.target} ({verdict.executor}): {given}"]
    for stage in verdict.stages:
        line = f"  {stage.name:<9} {stage.outcome:<13} {1000 * stage.seconds:9.1f} ms"
        lines.append(f"{line}  {stage.note}" if stage.note else line)
    if verdict.error_over_bound is not None:
        at = f" at {verdict.worst[0]}{list(verdict.worst[1])}" if verdict.worst else ""
        lines.append(f"  error over bound {verdict.error_over_bound:.3g}{at}")
    if verdict.artifact is not None:
        lines += ["  " + line for line in _resources(verdict.artifact)]
    if verdict.counters:
        lines.append("  " + render_counters(verdict.counters))
    if verdict.utilisation:
        lines.append("  " + render_utilisation(verdict.utilisation))
    return "\n".join(lines + _troubles(verdict))


def _troubles(verdict: Verdict) -> list[str]:
    from tilefw.runtime.diagnostics import render_findings, render_remarks

    lines = [render_findings(verdict.findings)] if verdict.findings else []
    if verdict.artifact is not None and verdict.artifact.remarks:
        lines.append(render_remarks(verdict.artifact.remarks))
    return lines


def _resources(artifact: Artifact) -> list[str]:
    used = artifact.resources
    registers = f"registers {_counts(used.registers)}" if used.registers else None
    facts = [registers] + [
        f"{what} {number}" for what, number in (
            ("spills", used.spills), ("shared bytes", used.shared_bytes), ("scratch bytes", used.scratch_bytes),
            ("occupancy", used.occupancy),
        ) if number is not None
    ]
    known = ", ".join(fact for fact in facts if fact)
    lines = [known] if known else [f"registers unknown: {used.unknown}"] if used.unknown else []
    return [*lines, f"instructions {_counts(used.instructions)}"] if used.instructions else lines


def _counts(named: Mapping[str, int]) -> str:
    return ", ".join(f"{count} ({what})" for what, count in named.items())


def to_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON values; a figure that is not known is null, with the reason in `resources.unknown`."""
    from tilefw.api.artifact import Resources
    from tilefw.runtime.diagnostics import finding_to_json, utilisation_to_json

    resources = None
    if verdict.artifact is not None:
        raw = {name: getattr(verdict.artifact.resources, name) for name in Resources.__dataclass_fields__}
        resources = {name: dict(value) if isinstance(value, Mapping) else value for name, value in raw.items()}
    return {
        "verdict": "pass" if verdict.ok else "fail",
        "kernel": verdict.kernel, "target": verdict.target, "executor": verdict.executor, "seed": verdict.seed,
        "parameters": dict(verdict.parameters),
        "stages": [
            {"name": s.name, "outcome": s.outcome, "seconds": s.seconds, "error": None if s.error is None else str(s.error)}
            for s in verdict.stages
        ],
        "error_over_bound": verdict.error_over_bound,
        "worst": None if verdict.worst is None else {"output": verdict.worst[0], "index": list(verdict.worst[1])},
        "resources": resources, "counters": dict(verdict.counters),
        "utilisation": utilisation_to_json(verdict.utilisation), "seconds": dict(verdict.times),
        "findings": [finding_to_json(f) for f in verdict.findings],
        "remarks": [] if verdict.artifact is None else [_remark_to_json(remark) for remark in verdict.artifact.remarks],
    }


def _remark_to_json(remark: Remark) -> dict[str, str | None]:
    """Its place is `file:line:column`, as those of findings are; None where it is about the kernel as a whole."""
    place = None if remark.place is None else str(remark.place)
    return {"code": remark.code, "message": remark.message, "place": place, "help": remark.help}


def _save(folder: str, kernel: str, artifact: Artifact) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}", code="TFW0913") from None
    for level, text in artifact.levels.items():
        write_file(os.path.join(folder, f"{kernel}.{level}.{EXTENSIONS.get(level, 'txt')}"), text.encode())
    write_file(os.path.join(folder, f"{kernel}.{artifact.format}"), artifact.text.encode())
    if artifact.binary is not None:
        write_file(os.path.join(folder, f"{kernel}.bin"), artifact.binary)
    print(f"levels and machine code are in {folder}", file=sys.stderr)
