"""Conditions of which the guard of a store is made of: one of two left out, a site at a time.

Those of loads are not tried: a load that should not be gives what nobody stores, and most are inside of the array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oracles.site import Site, changed

_BOTH = re.compile(r"^(?P<indent>\s*)and\.pred\s+(?P<result>%\w+),\s*(?P<a>%\w+),\s*(?P<b>%\w+);")
_COMPARED = re.compile(
    r"^(?P<indent>\s*)setp\.(?P<compare>\w+)\.and\.(?P<type>\w+)\s+(?P<result>%\w+),\s*(?P<terms>[^;]*),\s*(?P<other>%\w+);"
)
_STORE = re.compile(r"^\s*@(?P<guard>%\w+)\s+st\.")


def conditions(ptx: str) -> Iterator[Site]:
    """Every site of kind `condition`, in order of lines."""
    lines = ptx.splitlines()
    guards = {match["guard"] for match in map(_STORE.match, lines) if match}
    for index, line in enumerate(lines):
        match = _BOTH.match(line) or _COMPARED.match(line)
        if match is None or match["result"] not in guards:
            continue
        uses = [other for other in lines if re.search(rf"{match['result']}\b", other) and other != line]
        if all(_STORE.match(use) for use in uses):
            yield from (changed(lines, index, "condition", after) for after in _halves(match))


def _halves(match: re.Match[str]) -> list[str]:
    moved = f"{match['indent']}mov.pred {match['result']}, "
    if match.re is _BOTH:
        return [f"{moved}{match['a']};", f"{moved}{match['b']};"]
    alone = f"{match['indent']}setp.{match['compare']}.{match['type']} {match['result']}, {match['terms']};"
    return [alone, f"{moved}{match['other']};"]
