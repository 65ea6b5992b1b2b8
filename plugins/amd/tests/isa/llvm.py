"""LLVM's assembler and disassembler for gfx942, as an oracle: whole lists at once, each line with its answer.

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

_ARGUMENTS = ("-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942")
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


def assemble(lines: Sequence[str]) -> list[Answer]:
    """Each line assembled on its own; a line must be one instruction, without labels or directives."""
    marked = "".join(f"{_mark(i)}\n{line}\n" for i, line in enumerate(lines))
    done = _run(["-show-encoding"], marked)
    found = _by_mark(done.stdout, len(lines))
    for match in map(_ERROR.match, done.stderr.splitlines()):
        if match:
            found[int(match["line"]) // 2 - 1] = Answer(error=match["words"])
    return found


def disassemble(codes: Sequence[bytes]) -> list[Answer]:
    """The text of each instruction; an error where the bytes are none, or are several."""
    found = [Answer(error="invalid instruction encoding")] * len(codes)
    # Behind an invalid word LLVM goes on in the middle of the line: such lines are left out of the list that is read.
    bad = {int(m["line"]) - 1 for m in map(_WARNING.match, _listed(codes).stderr.splitlines()) if m}
    left = [(index, code) for index, code in enumerate(codes) if index not in bad]
    answers = iter([m for m in map(_ENCODING.match, _listed([code for _, code in left]).stdout.splitlines()) if m])
    for index, code in left:
        match = next(answers)
        data = _bytes(match["bytes"])[0]
        # A line may hold more bytes than its first instruction has.
        rest = len(code) - len(data)
        while rest > 0:
            extra = next(answers)
            rest -= len(_bytes(extra["bytes"])[0])
            match = None
        if match is not None:
            found[index] = Answer(match["text"].strip(), data)
    return found


def _listed(codes: Sequence[bytes]) -> subprocess.CompletedProcess[str]:
    """The disassembler's output for a list, an instruction a line."""
    return _run(["-disassemble", "-show-encoding"], "".join(" ".join(f"{b:#04x}" for b in code) + "\n" for code in codes))


_WARNING = re.compile(r"^<stdin>:(?P<line>\d+):(?P<column>\d+): (?:error|warning):")


def _run(arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    program = llvm_mc()
    assert program is not None, "ask llvm_mc first"
    return subprocess.run(
        [program, *_ARGUMENTS, *arguments], input=text, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
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
