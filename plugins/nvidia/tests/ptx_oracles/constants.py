"""Constants that a shared address or a shuffled lane is made of: swizzles, slots of rings, lane parts; each changed by one bit.

The instructions are found by walking back from the addresses over registers, so that arithmetic on global addresses is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oracles.site import Site, changed

_LINE = re.compile(r"^\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z][\w.:]*)\s+(?P<operands>[^;]*);")
_ROOT = re.compile(r"^(ld\.shared|st\.shared|ldmatrix|cp\.async\.c[ag])")
_REGISTER = re.compile(r"%(?:r|rd|p|rs)\d+")
_LITERAL = re.compile(r"(?<![\w%$.])\d+(?![\w.])")
_BASE = re.compile(r"\[\s*(%\w+)")
_BITS = ("xor", "and", "or", "not")
_SHIFTS = ("shl", "shr")
_SUMS = ("add", "sub", "mul", "mad", "setp", "selp", "mov", "min", "max")
_WORD = 32


def constants(ptx: str) -> Iterator[Site]:
    """Every site of kind `constant`, in order of lines."""
    lines = ptx.splitlines()
    for index in sorted(_sources(lines)):
        match = _LINE.match(lines[index])
        if match is None:
            continue
        start, text = match.start("operands"), match["operands"]
        for literal in _LITERAL.finditer(text):
            for value in _flips(match["opcode"].split(".")[0], int(literal[0])):
                after = text[: literal.start()] + str(value) + text[literal.end() :]
                yield changed(lines, index, "constant", lines[index][:start] + after + lines[index][match.end("operands") :])


def _sources(lines: list[str]) -> set[int]:
    """The lines whose results reach a shared address or the lane of a shuffle through integer instructions."""
    made: dict[str, list[int]] = {}
    wanted: list[str] = []
    for index, line in enumerate(lines):
        match = _LINE.match(line)
        if match is None:
            continue
        opcode, operands = match["opcode"], match["operands"]
        if _ROOT.match(opcode):
            wanted += _BASE.findall(operands)[:1]
        elif opcode.startswith("shfl.sync"):
            wanted += _REGISTER.findall(operands.split(",")[2])
        if opcode.split(".")[0] in (*_BITS, *_SHIFTS, *_SUMS) and (found := _REGISTER.findall(operands)):
            made.setdefault(found[0], []).append(index)
    return _walk_back(lines, made, wanted)


def _walk_back(lines: list[str], made: dict[str, list[int]], wanted: list[str]) -> set[int]:
    taken: set[int] = set()
    while wanted:
        for index in made.get(wanted.pop(), ()):
            if index not in taken:
                taken.add(index)
                wanted += _REGISTER.findall(lines[index])[1:]
    return taken


def _flips(opcode: str, value: int) -> list[int]:
    """Values that differ from this one in a bit that matters where it stands."""
    if opcode in _SHIFTS:
        return [v for v in (value ^ 1, value ^ 2) if v < _WORD]
    if opcode in _BITS:
        lowest, highest = value & -value, 1 << (value.bit_length() - 1) if value else 0
        return [value ^ bit for bit in sorted({lowest, highest, highest << 1} - {0}) if bit < 1 << (_WORD - 1)]
    if opcode in ("mov", "setp", "selp") or value == 0:
        return [value ^ 1]
    lowest = value & -value
    return [value ^ lowest, value ^ (lowest << 1)]
