"""`tilefw profile NAME --target T [--target U] [--against K=V …]`: how long a launch takes on a chip, and what limits it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_json, is_file, literals, parser, positive, whole
from tilefw.cli.output import print_json

if TYPE_CHECKING:
    from tilefw.timing.profile import LaunchProfile, StalledCode

SHOWN = 8


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    found = _of_file(args) if args.launch or is_file(args.kernel) else _of_library(args)
    if args.json:
        print_json("profile", {"profiles": [_to_json(profile) for profile in found]})
        return 0
    print("\n\n".join(_rendered(profile) for profile in found))
    if len(found) > 1:
        print("\n" + _compared(found))
    return 0


def _of_library(args: argparse.Namespace) -> list[LaunchProfile]:
    from tilefw.kernels.profiled import profiled
    from tilefw.kernels.spec import load

    spec = load(args.kernel)
    variants = [dict(args.param)] + ([{**dict(args.param), **dict(args.against)}] if args.against else [])
    how = {"keywords": literals(args.option), "workgroups": args.workgroups, "warm": args.warm, "seed": args.seed}
    return [profiled(spec, parameters, target, **how) for target in args.target or [None] for parameters in variants]


def _of_file(args: argparse.Namespace) -> list[LaunchProfile]:
    """Machine code is of one target, and has no parameters of a library kernel."""
    for name in ("param", "against", "option"):
        if getattr(args, name):
            raise UsageError(f"--{name} does not go with a file of machine code", code="TFW0917")
    if not args.launch:
        raise UsageError(
            f"how is {args.kernel} launched?", code="TFW0911", help="give --launch FILE; `tilefw simulate --help` shows such a file"
        )
    if len(args.target or []) > 1:
        raise UsageError("a file of machine code is profiled on one target", code="TFW0911")
    from tilefw.cli.simulate import load
    from tilefw.kernels.launchable import launchable_file
    from tilefw.kernels.profiled import profile_of, record
    from tilefw.runtime import config, launchfile

    module = load(args.kernel, args.target[0] if args.target else None)
    resolved = config.resolve(config.settings(module.target.name, seed=args.seed))
    made = launchable_file(module, launchfile.read(args.launch), resolved)
    return [profile_of(record(made, args.workgroups), args.warm)]


def _parser(summary: str) -> Parser:
    from tilefw.kernels.profiled import BESIDE

    parse = parser("profile", summary)
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), or a file of machine code with --launch")
    parse.add_argument("--target", action="append", metavar="T", help="the chip; several are shown side by side")
    parse.add_argument("--launch", metavar="FILE", help="the launch file of machine code, as `tilefw simulate` takes it")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_assignments(parse, "--against", "parameters of a variant to compare with")
    add_assignments(parse, "--option", "launch keywords that shape code, and the target's own")
    parse.add_argument(
        "--workgroups", type=positive, default=BESIDE, metavar="N", help=f"record how at most N workgroups begin ({BESIDE})"
    )
    parse.add_argument("--warm", action="store_true", help="an earlier launch has left the arrays in the caches that hold them")
    parse.add_argument("--seed", type=whole, default=0, metavar="N", help="of the inputs")
    add_json(parse)
    return parse


def _rendered(profile: LaunchProfile) -> str:
    """One profile for people: time, limits, memory, the lines where waves wait."""
    spread = profile.residency
    head = (
        f"{profile.kernel} on {profile.target}: {profile.cycles:,.0f} cycles, {_time(profile.seconds)} "
        f"({_time(profile.low)} to {_time(profile.high)}) at {profile.clock_hz / 1e6:,.0f} MHz"
    )
    lines = [head, f"  {spread.workgroups} workgroups, {spread.resident} at once on each of {spread.active} processors"]
    if profile.peak:
        share = profile.operations / profile.peak
        rates = f"{profile.operations / 1e12:,.2f} of {profile.peak / 1e12:,.0f} T operations/s"
        lines.append(f"  {rates} ({share:.0%} of the matrix units)")
    lines.append("  cycles go to " + ", ".join(f"{limit.cause} {limit.share:.0%}" for limit in profile.limits[:5]))
    lines.append("  busy: " + ", ".join(f"{pipe} {share:.0%}" for pipe, share in _ranked(profile.busy)[:5]))
    lines += [
        f"  {roof.level:<5} {_bytes(roof.nbytes):>9}, {roof.achieved / 1e9:>8,.0f} of {roof.attainable / 1e9:,.0f} GB/s"
        for roof in profile.roofline
    ]
    lines += _table("waits by source line", profile.lines)
    lines += [f"  note: {note}" for note in profile.notes]
    return "\n".join(lines)


def _table(title: str, rows: tuple[StalledCode, ...]) -> list[str]:
    total = sum(row.stalled for row in rows) or 1.0
    lines = [f"  {title}"]
    for row in rows[:SHOWN]:
        cause = max(row.causes.items(), key=lambda item: item[1], default=("", 0.0))[0]
        lines.append(f"    {row.stalled / total:>5.0%}  {row.where.rpartition('/')[2]:<24} {row.text[:70]:<70} {cause}")
    return lines


def _compared(found: list[LaunchProfile]) -> str:
    first = found[0]
    lines = ["side by side"]
    for profile in found:
        top = ", ".join(f"{limit.cause} {limit.share:.0%}" for limit in profile.limits[:3])
        lines.append(f"  {profile.target:<16} {_time(profile.seconds):>10} {profile.seconds / first.seconds:>6.2f}x  {top}")
    return "\n".join(lines)


def _ranked(shares: Any) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.2f} us"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"


def _to_json(profile: LaunchProfile) -> dict[str, Any]:
    spread = profile.residency
    return {
        "kernel": profile.kernel, "target": profile.target, "chip": profile.product, "grid": list(profile.grid),
        "cycles": profile.cycles, "seconds": profile.seconds, "range": [profile.low, profile.high], "clock_hz": profile.clock_hz,
        "residency": {"workgroups": spread.workgroups, "resident": spread.resident, "processors": spread.active},
        "occupancy": profile.occupancy,
        "limits": [{"cause": limit.cause, "cycles": limit.cycles, "share": limit.share} for limit in profile.limits],
        "busy": dict(profile.busy),
        "roofline": {
            "operations_per_second": profile.operations, "peak": profile.peak,
            "levels": [
                {"level": roof.level, "bytes": roof.nbytes, "achieved": roof.achieved, "attainable": roof.attainable}
                for roof in profile.roofline
            ],
        },
        "stalls": [_code(row) for row in profile.stalls], "lines": [_code(row) for row in profile.lines],
        "notes": list(profile.notes),
    }


def _code(row: StalledCode) -> dict[str, Any]:
    return {"where": row.where, "text": row.text, "executed": row.executed, "cycles": row.stalled, "causes": dict(row.causes)}
