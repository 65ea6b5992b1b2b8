"""LLVM's assembler and disassembler for a chip, as an oracle: whole lists at once, each line with its answer.

Names of the programs: TILEFW_LLVM_MC, else llvm-mc-22 on PATH. Without it tests that ask are skipped, and say so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from served import CHIP

from tilefw_amd.chips import Chip

_ENCODING = re.compile(r"^\t(?P<text>.*?)\s*; encoding: \[(?P<bytes>[^\]]*)\]")
_ERROR = re.compile(r"^<stdin>:(?P<line>\d+):(?P<column>\d+): error: (?P<words>.*)")
TIME_LIMIT = 300  # seconds


@cache
def llvm_mc() -> str | None:
    """The path of llvm-mc, or None."""
    return os.environ.get("TILEFW_LLVM_MC") or shutil.which("llvm-mc-22")


needs_llvm = pytest.mark.skipif(llvm_mc() is None, reason="no llvm-mc-22 (apt-get install llvm-22, or set TILEFW_LLVM_MC)")


@dataclass(frozen=True, slots=True)
class Answer:
    """What llvm-mc makes of one line: its text and bytes, or why not. `symbolic`: bytes that a relocation would fill."""

    text: str = ""
    data: bytes = b""
    error: str = ""
    symbolic: bool = False


def assemble(lines: Sequence[str], chip: Chip = CHIP) -> list[Answer]:
    """Each line assembled on its own; a line must be one instruction, without labels or directives."""
    marked = "".join(f"{_mark(i)}\n{line}\n" for i, line in enumerate(lines))
    done = _run(chip, ["-show-encoding"], marked)
    found = _by_mark(done.stdout, len(lines))
    for match in map(_ERROR.match, done.stderr.splitlines()):
        if match:
            found[int(match["line"]) // 2 - 1] = Answer(error=match["words"])
    return found


def disassemble(codes: Sequence[bytes], chip: Chip = CHIP) -> list[Answer]:
    """The text of each instruction; an error where the bytes are none or several, or (with the text) where LLVM has doubts."""
    found: list[Answer] = []
    size = len(codes)
    while len(found) < len(codes):
        some, crashed = _disassembled(chip, codes[len(found) : len(found) + size])
        found += some
        # LLVM 22 crashes on some words, and what it printed before that is lost in part: narrow down to the one.
        if crashed and size == 1:
            found.append(Answer(error="llvm-mc crashes"))
        size = max(1, size // 8) if crashed and not some and size > 1 else len(codes)
    return found


def _disassembled(chip: Chip, codes: Sequence[bytes]) -> tuple[list[Answer], bool]:
    """The answers for the first of `codes`, and whether LLVM crashed behind them."""
    # Brackets keep LLVM from going on behind an invalid word; a mark behind each line tells what belongs to it.
    text = "".join(f"[{_hex(code)}]\n[{_hex(_MARK)}]\n" for code in codes)
    done = _run(chip, ["-disassemble", "-show-encoding"], text)
    doubtful = {int(m["line"]) // 2 for m in map(_WARNING.match, done.stderr.splitlines()) if m}
    found: list[Answer] = []
    group: list[Answer] = []
    for match in filter(None, map(_ENCODING.match, done.stdout.splitlines())):
        data = _bytes(match["bytes"])[0]
        if data != _MARK:
            group.append(Answer(match["text"].strip(), data))
            continue
        found.append(_one(group, len(found) in doubtful))
        group = []
    return found, done.returncode < 0


_MARK = bytes.fromhex("bc7a80bf")  # s_nop 0x7abc, which no test asks for
_WARNING = re.compile(r"^<stdin>:(?P<line>\d+):(?P<column>\d+): (?:error|warning):")


def _hex(code: bytes) -> str:
    return " ".join(f"{b:#04x}" for b in code)


def _one(group: Sequence[Answer], doubtful: bool) -> Answer:
    """The bytes of the answer are what LLVM would encode, not always what it read."""
    if len(group) != 1:
        return Answer(error="invalid instruction encoding")
    doubts = "potentially undefined instruction encoding" if doubtful or "/*" in group[0].text else ""
    return Answer(group[0].text, group[0].data, doubts)


def _run(chip: Chip, arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    program = llvm_mc()
    assert program is not None, "ask llvm_mc first"
    return subprocess.run(
        [program, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", *arguments], input=text, capture_output=True, text=True,
        timeout=TIME_LIMIT, check=False,
        env={**os.environ, "LLVM_DISABLE_SYMBOLIZATION": "1", "LLVM_DISABLE_CRASH_REPORT": "1"},
    )


def _mark(index: int) -> str:
    return f".Lmark_{index}:"


def _bytes(text: str) -> tuple[bytes, bool]:
    """The bytes of an encoding comment; those that a fixup will fill ("A", "A,A") are zero."""
    parts = text.split(",")
    symbolic = [p for p in parts if not p.startswith("0x") or "'" in p]
    return bytes(int(p, 16) if p not in symbolic else 0 for p in parts), bool(symbolic)


def _by_mark(output: str, count: int) -> list[Answer]:
    found = [Answer(error="nothing was assembled")] * count
    index = -1
    for line in output.splitlines():
        if line.startswith(".Lmark_"):
            index = int(line[7 : line.index(":")])
            continue
        match = _ENCODING.match(line)
        if match and index >= 0:
            data, symbolic = _bytes(match["bytes"])
            found[index] = Answer(match["text"].strip(), data, "", symbolic)
    return found
