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


def between_ranks(text: str) -> Iterator[Site]:
    """What ranks say to each other: scopes made narrower, signals of another value, waits that wait for nothing, cache actions,
    barriers, and counts of waits for the memory that ranks share (lgkmcnt is of arguments and of LDS)."""
    lines = text.splitlines()
    labels = {line.removesuffix(":"): number for number, line in enumerate(lines) if line.endswith(":")}
    for number, line in enumerate(lines):
        code = line.split(";")[0].strip()
        for kind, after in (*_changes(code), *_narrowed(code), *_signals(code)):
            if kind != "nop" and not (kind == "weaken" and _counts(after, "vmcnt") == _counts(code, "vmcnt")):
                yield changed(lines, number, kind, after)
        begin = labels.get(code.partition(" ")[2], number) if code.startswith("s_cbranch_") else number
        turn = [inside.strip() for inside in lines[begin + 1 : number]]
        innermost = not any(inside.endswith(":") for inside in turn)
        if innermost and any(inside.startswith("global_atomic_") for inside in turn):
            yield changed(lines, number, "poll", "")


def _counts(wait: str, counter: str) -> list[str]:
    return [match["count"] for match in _COUNT.finditer(wait) if match["counter"] == counter]


def _narrowed(line: str) -> Iterator[tuple[str, str]]:
    """An access or a cache action of the system's scope for its device alone, and for its workgroup (LLVM's AMDGPUUsage, "Memory
    Model gfx942": sc1 and sc0 of cache actions are the scope's bits; of atomics sc1 alone is)."""
    if line.startswith(("buffer_wbl2", "buffer_inv")) and line.endswith("sc0 sc1"):
        yield "scope", line.replace("sc0 sc1", "sc1")
        yield "scope", line.replace("sc0 sc1", "sc0")
    elif line.startswith("global_atomic_") and line.endswith(" sc1"):
        yield "scope", line.removesuffix(" sc1")


def _signals(line: str) -> Iterator[tuple[str, str]]:
    """A signal that is not sent, and one of another value: what was 0 stays so, what is counted goes down."""
    for opcode, other in (("global_atomic_swap", "global_atomic_and"), ("global_atomic_add", "global_atomic_sub")):
        if line.startswith(opcode):
            yield "signal", ""
            yield "signal", line.replace(opcode, other, 1)


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
