"""LLVM's own test vectors for gfx9 and later chips, from a folder of a checkout: TILEFW_LLVM_TESTS, e.g. llvm/test/MC/AMDGPU.

Each line that is an instruction is asked of llvm-mc for a chip: what it accepts we assemble to the same bytes, and read back as
the same text; what it refuses we refuse. Lines of other chips are thereby refusals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cdna3 import llvm
from tilefw.api import CodeError
from tilefw_amd.isa.encoding.decode import decode
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.isa.text.parser import parse
from tilefw_amd.isa.text.printer import text
from tilefw_amd.isa.text.restrictions import RANGES

VARIABLE = "TILEFW_LLVM_TESTS"
FILES = ("gfx9*.s", "gfx90a*.s", "gfx940*.s", "gfx942*.s", "gfx950*.s", "mai-*.s", "flat-scratch-*.s", "ds*.s", "vop*.s", "sop*.s",
         "smem*.s", "mubuf*.s")
_LINE = re.compile(r"\s*(?P<text>[a-z]\w*(?:\s[^;/]*)?)\s*(?:$|//|;)")


def folder() -> Path | None:
    """The folder that the variable names, or None."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def lines(source: Path) -> Iterator[str]:
    """The instructions of the files, each text once."""
    seen: set[str] = set()
    for pattern in FILES:
        for path in sorted(source.glob(pattern)):
            for line in path.read_text(errors="replace").splitlines():
                match = _LINE.match(line)
                if match and match["text"].strip() not in seen:
                    seen.add(match["text"].strip())
                    yield match["text"].strip()


def differences(isa: InstructionSet, instructions: list[str]) -> tuple[list[str], set[str]]:
    """What differs from llvm-mc, in words, and the mnemonics that it knows and we do not."""
    found: list[str] = []
    missing: set[str] = set()
    codes: list[bytes] = []
    for line, theirs in zip(instructions, llvm.assemble(instructions, isa.chip), strict=True):
        mnemonic = line.split()[0].lower()
        if theirs.symbolic:
            continue
        if mnemonic not in isa.forms_by_mnemonic:
            if theirs.data:
                missing.add(mnemonic)
            continue
        code, difference = _one(isa, line, mnemonic, theirs)
        codes += [code] if code else []
        found += [difference] if difference else []
    for code, theirs in zip(codes, llvm.disassemble(codes, isa.chip), strict=True):
        ours = text(decode(isa, code))
        if ours != theirs.text:
            found.append(f"{code.hex()}: {ours}, llvm-mc {theirs.text or theirs.error}")
    return found, missing


def _one(isa: InstructionSet, line: str, mnemonic: str, theirs: llvm.Answer) -> tuple[bytes, str]:
    """The bytes on which both agree, and the difference."""
    try:
        code = encode(parse(isa, line))
    except CodeError as error:
        # Immediates of which the hardware reads a part are ours alone to refuse.
        agreed = not theirs.data or mnemonic in RANGES
        return b"", "" if agreed else f"{line}: refused ({error.message}), llvm-mc {theirs.data.hex()}"
    if code != theirs.data:
        return b"", f"{line}: {code.hex()}, llvm-mc {theirs.data.hex() or theirs.error}"
    return code, ""
