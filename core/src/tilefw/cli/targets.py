"""`tilefw targets`: the registered targets and what each provides."""

from __future__ import annotations

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json
from tilefw.cli.plugins import warn_of
from tilefw.cli.table import print_table


def main(summary: str, argv: list[str]) -> int:
    parse = parser("targets", summary)
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.runtime.plugins.listings import plugins, targets
    from tilefw.runtime.plugins.plugin import target_to_json

    known = plugins()
    listed = targets(known)
    warn_of(known)
    if args.json:
        rows = [{**target_to_json(t.info), "provides": list(t.provides), "plugin": t.plugin, "status": t.status} for t in listed]
        print_json("targets", {"targets": rows})
    else:
        print_table(
            ("NAME", "VENDOR", "CHIP", "PROVIDES", "STATUS", "ALIASES"),
            [(t.info.name, t.info.vendor, t.info.chip, ",".join(t.provides), t.status, ",".join(t.info.aliases)) for t in listed],
        )
    return 0
