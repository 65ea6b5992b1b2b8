"""LLVM's test files of assembly and machine code, read as vectors: what is asked for which chip, and what FileCheck expects.

    v_nop                                        // RUN: llvm-mc -mcpu=gfx942 -show-encoding %s | FileCheck --check-prefix=GFX942 %s
    // GFX942: v_nop ; encoding: [0x00,0x00,0x00,0x7e]

is one vector of gfx942: the text `v_nop`, expected as `v_nop` with these four bytes. FileCheck itself matches the checks of a
prefix in order. Here checks belong to the instructions of their paragraph, in order, where there are as many of both; an error's
check says its line. A paragraph whose instructions and checks differ in number is counted, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = ("AMDGPU", "Disassembler/AMDGPU")
"""Below llvm/test/MC."""

_RUN = re.compile(r"^\W*RUN:\s*(?P<command>.*)")
_CHIP = re.compile(r"-mcpu=(?P<chip>[\w-]+)")
_PREFIXES = re.compile(r"-check-prefix(?:es)?[= ](?P<names>[\w,-]+)")
_CHECK = re.compile(r"^\s*(?://|#|;)\s*(?P<prefix>[A-Za-z][\w-]*?)(?:-(?P<kind>NEXT|SAME|NOT|DAG|LABEL|EMPTY))?:(?P<rest>.*)$")
_EXPECTED = re.compile(r"^(?P<text>.*?)(?:\s*(?:;|//)\s*encoding:\s*\[(?P<bytes>[^\]]*)\]?)?$")
_AT_LINE = re.compile(r"\[\[@?#?@?LINE\s*(?P<distance>[+-]\s*\d+)?\]\]:.*?(?:error|warning):\s*(?P<words>.*)")
_SYMBOL = re.compile(r"^\s*(?:\.set\s+(?P<set>\w+)|(?P<name>[A-Za-z_]\w*)\s*(?:=|:(?!:)))")
_COMMENT = re.compile(r"\s*(?://|;|#|/\*).*$")
_BYTE = re.compile(r"0x([0-9a-fA-F]{1,2})")
_INSTRUCTION = re.compile(r"^[A-Za-z]\w*(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Run:
    """A RUN line: llvm-mc for a chip, its output under prefixes of checks. `other`: it asks for features of other chips."""

    chip: str
    disassembles: bool
    prefixes: tuple[str, ...]
    other: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A line that llvm-mc is given: an instruction's text, or the bytes of a file for the disassembler."""

    line: int
    text: str
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Vector:
    """What is expected of a statement: its text and bytes as LLVM prints them (empty where the file does not say), or refusal."""

    statement: Statement
    text: str = ""
    data: bytes = b""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class VectorFile:
    name: str
    runs: tuple[Run, ...]
    statements: tuple[Statement, ...]
    checks: tuple[_Check, ...]
    symbols: frozenset[str]
    """Names that the file gives a value."""
    paragraphs: tuple[int, ...] = field(repr=False)
    """The paragraph of each line, from line 1 on at index 1."""

    @property
    def disassembles(self) -> bool:
        return any(run.disassembles for run in self.runs)

    def named(self, chip: str) -> bool:
        """Whether a RUN line runs the file for that very chip."""
        return any(run.chip == chip and not run.other for run in self.runs)

    def vectors(self, chip: str) -> tuple[list[Vector], int]:
        """What the file's RUN lines for a chip expect, and how many statements no check is known for."""
        by_line = {statement.line: statement for statement in self.statements}
        found: dict[int, Vector] = {}
        for run in self.runs:
            if run.chip == chip and not run.other:
                checks = [check for check in self.checks if check.prefix in run.prefixes]
                for vector in [*_refusals(by_line, checks), *self._paired(checks)]:
                    found[vector.statement.line] = vector
        return [found[line] for line in sorted(found)], len(by_line.keys() - found.keys())

    def _paired(self, checks: Sequence[_Check]) -> Iterator[Vector]:
        expected = [check for check in checks if check.kind in ("", "NEXT") and not check.is_message]
        if len(expected) == len(self.statements):
            yield from filter(None, map(_expected, self.statements, (check.rest for check in expected)))
            return
        for paragraph in dict.fromkeys(self.paragraphs[check.line] for check in expected):
            here = [check for check in expected if self.paragraphs[check.line] == paragraph]
            statements = [s for s in self.statements if self.paragraphs[s.line] == paragraph]
            if len(here) == len(statements):
                yield from filter(None, map(_expected, statements, (check.rest for check in here)))


@dataclass(frozen=True, slots=True)
class _Check:
    line: int
    prefix: str
    kind: str
    rest: str

    @property
    def is_message(self) -> bool:
        return "error:" in self.rest or "warning:" in self.rest


def read(text: str, name: str) -> VectorFile:
    """One file."""
    lines = text.splitlines()
    runs = tuple(filter(None, map(_run, _commands(lines))))
    prefixes = {prefix for run in runs for prefix in run.prefixes}
    statements, checks, paragraphs = list[Statement](), list[_Check](), [0]
    of_bytes = any(run.disassembles for run in runs)
    for number, line in enumerate(lines, 1):
        paragraphs.append(paragraphs[-1] + (not line.strip()))
        check = _CHECK.match(line)
        if check and check["prefix"] in prefixes:
            checks.append(_Check(number, check["prefix"], check["kind"] or "", check["rest"].strip()))
        elif statement := _statement(number, line, of_bytes):
            statements.append(statement)
    symbols = frozenset(match["set"] or match["name"] for match in map(_SYMBOL.match, lines) if match)
    return VectorFile(name, runs, tuple(statements), tuple(checks), symbols, tuple(paragraphs))


def files(tests: Path, chips: re.Pattern[str]) -> Iterator[VectorFile]:
    """The files below llvm/test/MC with a RUN line for a chip of that name."""
    for folder in FOLDERS:
        for path in sorted((tests / folder).iterdir()):
            if path.suffix in (".s", ".txt"):
                found = read(path.read_text("utf-8", errors="replace"), f"{folder}/{path.name}")
                if found.statements and any(chips.fullmatch(run.chip) for run in found.runs):
                    yield found


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """The commands of RUN lines; one that ends in a backslash goes on in the next."""
    so_far = ""
    for match in filter(None, map(_RUN.match, lines)):
        so_far += match["command"]
        if so_far.endswith("\\"):
            so_far = so_far[:-1]
            continue
        yield so_far
        so_far = ""


def _run(command: str) -> Run | None:
    """None where the command is not llvm-mc for a chip, with its text checked."""
    first, _, rest = command.partition("|")
    chip = _CHIP.search(first)
    if chip is None or "llvm-mc" not in first or "FileCheck" not in rest or "-filetype=obj" in first:
        return None
    prefixes = tuple(name for match in _PREFIXES.finditer(rest) for name in match["names"].split(","))
    return Run(chip["chip"], "-disassemble" in first, prefixes or ("CHECK",), "-mattr=" in first)


def _statement(number: int, line: str, of_bytes: bool) -> Statement | None:
    code = _COMMENT.sub("", line).strip()
    if of_bytes:
        data = bytes(int(byte, 16) for byte in _BYTE.findall(code))
        return Statement(number, code, data) if data else None
    return Statement(number, code) if _INSTRUCTION.match(code) else None


def _refusals(by_line: dict[int, Statement], checks: Sequence[_Check]) -> Iterator[Vector]:
    for check in checks:
        at = _AT_LINE.search(check.rest)
        if at:
            line = check.line + int((at["distance"] or "0").replace(" ", ""))
            if line in by_line:
                yield Vector(by_line[line], refused=at["words"])


def _expected(statement: Statement, rest: str) -> Vector | None:
    """None where the check is a pattern, or says but a part."""
    found = _EXPECTED.match(rest)
    if found is None or "{{" in rest or "[[" in rest:
        return None
    named = found["bytes"]
    if named is not None and not all(_BYTE.fullmatch(byte.strip()) for byte in named.split(",")):
        return None  # a fixup's letters
    data = bytes(int(byte, 16) for byte in named.split(",")) if named else b""
    return Vector(statement, " ".join(found["text"].split()), data)
