"""`tilefw simulate FILE --target T --launch LAUNCH.yaml`: machine code from anywhere on the target's simulator."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import CheckError, KernelError
from tilefw.cli.arguments import add_execution, add_json, execution, parser
from tilefw.cli.output import print_json, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilefw.runtime.launch import LaunchResult
    from tilefw.runtime.launchfile import LaunchFile
    from tilefw.runtime.module import Module

LAUNCH_HELP = """a launch file:
  kernel: matmul_kernel          # entry; optional when the file has one
  grid: [16, 1, 1]
  block: [128, 1, 1]             # optional when the file says so
  dynamic_shared: 49152          # optional
  args:                          # every parameter in order, hidden ones too
    - {in: a.npy}
    - {out: c, shape: [512, 512], dtype: float16, fill: nan}
    - {inout: d.npy, name: d}
    - {value: 512, dtype: i32}
    - {pointer: 0}
"""


def main(summary: str, argv: list[str]) -> int:
    parse = parser("simulate", summary, LAUNCH_HELP)
    parse.add_argument("file", help="machine code of the target, an artifact that tilefw saved, or other compilers' IR")
    parse.add_argument("--target", metavar="T", help="the simulator's target; an artifact of tilefw names it")
    parse.add_argument("--launch", metavar="FILE", required=True, help="the launch file")
    parse.add_argument("--out", metavar="OUT.npz", help="where the outputs go, by their names")
    add_execution(parse)
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.runtime import launchfile

    module = load(args.file, args.target)
    launch = launchfile.read(args.launch)
    kernel = module.only(launch.kernel)
    try:
        result = kernel.launch(
            launch.grid, launch.args, block=launch.block, dynamic_shared=launch.dynamic_shared, **execution(args)
        )
    except CheckError as error:
        _print_findings(error, args.json, module.target.name, kernel.entry.name)
        raise
    if args.out:
        write_file(args.out, _archive(launch.outputs))
    _print_result(result, launch, args.json)
    return 1 if result.diagnostics else 0  # a warning leaves the outputs, but it is a finding


def load(path: str, target: str | None) -> Module:
    """The machine code of a file; raises KernelError, which tells of a target that nobody named."""
    from tilefw.runtime import config, module

    try:
        return module.load(path, target)
    except KernelError as error:
        if target is None and error.help is None and error.place is not None:
            assumed = config.resolve(config.settings()).target
            error.help = f"it was read as code of '{assumed}'; --target names another chip"
        raise


def _archive(outputs: Mapping[str, Any]) -> bytes:
    import numpy as np

    data = io.BytesIO()
    np.savez(data, **dict(outputs))
    return data.getvalue()


def _print_findings(error: CheckError, as_json: bool, target: str, kernel: str) -> None:
    from tilefw.runtime.diagnostics import finding_to_json, render_findings

    if as_json:
        findings = [finding_to_json(f) for f in error.findings]
        print_json("simulate", {"verdict": "fail", "target": target, "kernel": kernel, "findings": findings})
    elif len(error.findings) > 1:
        print(render_findings(error.findings))


def _print_result(result: LaunchResult, launch: LaunchFile, as_json: bool) -> None:
    from tilefw.runtime.diagnostics import finding_to_json, utilisation_to_json

    if not as_json:
        print(result)
        for name, array in launch.outputs.items():
            print(f"  {name}: {array.dtype}{list(array.shape)}")
        return
    print_json("simulate", {
        "verdict": "fail" if result.diagnostics else "pass", "target": result.target,
        "kernel": result.kernel, "executor": result.executor, "grid": result.grid,
        "findings": [finding_to_json(f) for f in result.diagnostics],
        "counters": dict(result.counters), "utilisation": utilisation_to_json(result.utilisation), "seconds": dict(result.times),
        "outputs": {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in launch.outputs.items()},
    })
