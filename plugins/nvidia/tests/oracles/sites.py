"""Where PTX can be broken on purpose: one wait, barrier or predicate deleted, or one address shifted, a site at a time.

Works on text alone, so that a mutant is exactly what a buggy compiler would have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("wait", "weaken", "barrier", "predicate", "address")

_INSTRUCTION = re.compile(r"^\s*(?:@(?P<guard>!?%\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);\s*$")
_ADDRESS = re.compile(r"\[\s*(?P<base>[%\w$]+)\s*(?:\+\s*(?P<offset>-?\d+))?\s*\]")
_MEMORY = re.compile(r"^(ld|st|atom|red|ldmatrix|cp\.async)\b(?!\.param)")
_ELEMENT = re.compile(r"\.[bsuf](8|16|32|64)$")
_COPY_BYTES = 16  # shift of an address of cp.async and ldmatrix, whose unit is a row of 16 bytes


@dataclass(frozen=True)
class Site:
    """One mutant: what was done to which line (from 1), and the changed text of the whole file."""

    kind: str
    line: int
    before: str
    after: str
    ptx: str

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line}: `{self.before}` -> `{self.after or 'deleted'}`"


def sites(ptx: str) -> Iterator[Site]:
    """Every site of the file, in order of lines."""
    lines = ptx.splitlines()
    for number, line in enumerate(lines):
        for kind, after in _changes(line.split("//")[0]):
            changed = "\n".join([*lines[:number], after, *lines[number + 1 :]]) + "\n"
            yield Site(kind, number + 1, " ".join(line.split()), " ".join(after.split()), changed)


def _changes(line: str) -> Iterator[tuple[str, str]]:
    match = _INSTRUCTION.match(line)
    if match is None:
        return
    opcode = match["opcode"]
    if opcode.startswith("cp.async.wait_group"):
        yield "wait", ""
        count = int(match["operands"])
        yield "weaken", line.replace(match["operands"], str(count + 1))
    if opcode.startswith(("bar.sync", "barrier.sync")):
        yield "barrier", ""
    if match["guard"] is not None:
        yield "predicate", line.replace("@" + match["guard"], "", 1)
    if _MEMORY.match(opcode):
        yield from (("address", changed) for changed in _shifted(line, opcode))


def _shifted(line: str, opcode: str) -> Iterator[str]:
    """The line with one of its addresses moved up by an element, and by 16 bytes."""
    for address in _ADDRESS.finditer(line):
        for step in sorted({_element_bytes(opcode), _COPY_BYTES}):
            moved = f"[{address['base']}+{int(address['offset'] or 0) + step}]"
            yield line[: address.start()] + moved + line[address.end() :]


def _element_bytes(opcode: str) -> int:
    if opcode.startswith(("cp.async", "ldmatrix")):
        return _COPY_BYTES
    found = _ELEMENT.search(opcode)
    if found is None:
        raise ValueError(f"no element type at the end of {opcode}")
    return int(found[1]) // 8
