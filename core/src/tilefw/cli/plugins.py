"""`tilefw plugins`: the installed plugins, each with its status and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json, warn
from tilefw.cli.table import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilefw.runtime.plugins.plugin import Plugin


def main(summary: str, argv: list[str]) -> int:
    parse = parser("plugins", summary)
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.runtime.plugins.listings import plugins
    from tilefw.runtime.plugins.plugin import to_json

    known = plugins()
    if args.json:
        print_json("plugins", {"plugins": [{**to_json(p), "targets": [t.name for t in p.targets]} for p in known]})
        return 0
    rows = []
    for p in known:
        api = ".".join(map(str, p.api)) if p.api else "?"
        rows.append((p.name, p.distribution, p.version, api, p.status, str(len(p.targets)), p.error or ""))
    print_table(("NAME", "DISTRIBUTION", "VERSION", "API", "STATUS", "TARGETS", "ERROR"), rows)
    warn_of(known)
    return 0


def warn_of(plugins: Sequence[Plugin]) -> None:
    """One line on stderr for each plugin that is not usable, with its off switch."""
    for plugin in plugins:
        if plugin.failed:
            who = f"plugin '{plugin.name}' ({plugin.distribution} {plugin.version})"
            warn(f"{who} is {plugin.status}: {plugin.error}; {plugin.off_switch}")
