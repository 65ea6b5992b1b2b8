"""`tilefw passes [--target T]`: every step of a compilation in order, from tile IR to bytes, with a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json
from tilefw.cli.table import print_table

if TYPE_CHECKING:
    from tilefw.passes.listing import PipelineStep


def main(summary: str, argv: list[str]) -> int:
    parse = parser("passes", summary, "`tilefw opt FILE --target T -p NAME` runs one of them on IR text of its level.")
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    add_json(parse)
    args = parse.parse_all(argv)

    name, steps = target_steps(args.target)
    if args.json:
        rows = [{"name": s.name, "level": s.level, "summary": s.summary, "opt": s.made is not None} for s in steps]
        print_json("passes", {"target": name, "passes": rows})
    else:
        print_table(("LEVEL", "NAME", "WHAT IT DOES"), [(s.level, s.name, s.summary) for s in steps])
    return 0


def target_steps(target: str | None) -> tuple[str, list[PipelineStep]]:
    """(The target's name, its steps under the default options). Raises UsageError for no such target."""
    from tilefw.passes.listing import steps
    from tilefw.runtime import config
    from tilefw.runtime.compilation import options
    from tilefw.runtime.plugins.loader import find_target

    found = find_target(config.resolve(config.settings(target)).target)
    return found.name, steps(found.backend, options.resolve({}, found.info))
