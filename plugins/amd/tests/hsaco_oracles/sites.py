"""Where AMD's code can be broken on purpose: one count of a wait made weaker; one barrier, s_nop, cache action removed at a time.

Pauses that nothing asks for are not sites: `pauses` says which. Works on text alone, so that a mutant is exactly what a buggy
compiler would have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hsaco_oracles import pauses
from oracles.site import Site, changed

# The largest count of each counter, which waits for nothing (CDNA3 ISA, "S_WAITCNT").
_LARGEST = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}
_COUNT = re.compile(r"\b(?P<counter>vmcnt|expcnt|lgkmcnt)\((?P<count>\d+)\)")


def sites(text: str) -> Iterator[Site]:
    """Every site of the file, in order of lines."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for kind, after in _changes(line.split(";")[0].strip()):
            if kind != "nop" or pauses.needed(lines, number):
                yield changed(lines, number, kind, after)


def shorter(text: str) -> Iterator[Site]:
    """Every pause of more than one state made one state shorter: for code that pauses no longer than it must."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        opcode, _, count = line.split(";")[0].strip().partition(" ")
        if opcode == "s_nop" and int(count, 0):
            yield changed(lines, number, "shorter", f"s_nop {int(count, 0) - 1}")


def _changes(line: str) -> Iterator[tuple[str, str]]:
    if line == "s_barrier":
        yield "barrier", ""
    elif line.startswith("s_nop "):
        yield "nop", ""
    elif line.startswith(("buffer_wbl2", "buffer_inv")):
        yield "cache", ""
    elif line.startswith("s_waitcnt "):
        for match in _COUNT.finditer(line):
            weaker = int(match["count"]) + 1
            if weaker <= _LARGEST[match["counter"]]:
                yield "weaken", f"{line[: match.start('count')]}{weaker}{line[match.end('count') :]}"
