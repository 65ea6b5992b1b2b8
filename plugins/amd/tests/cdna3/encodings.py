"""Words to decode, and LLVM's disassembly of them as a program is disassembled: one after another, with what follows."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tilefw_amd.chips import Chip
from tilefw_amd.isa.encoding.encode import encode
from tilefw_amd.isa.set import InstructionSet

from .llvm import llvm_mc
from .random_inst import random_inst

LITERAL = (0x12345678).to_bytes(4, "little")
_NOP = (0xBF800000).to_bytes(4, "little")
CRASHED = "LLVM crashed"
_SLOT = 24  # bytes: an instruction, its literal, and words that get LLVM back into step
_LINE = re.compile(r"\s+(?P<text>.*?)\s*// (?P<at>[0-9A-F]{12}): ")

needs_objdump = pytest.mark.skipif(
    llvm_mc() is None or shutil.which("llvm-objdump-22") is None,
    reason="no llvm-mc-22 and llvm-objdump-22 (apt-get install llvm-22)",
)


def flipped(isa: InstructionSet, seed: int, each: int) -> Iterator[bytes]:
    """Of every form, `each` random instructions, each with one bit of its words flipped, and a literal behind it in any case."""
    rng = random.Random(seed)
    for form in isa.forms:
        for _ in range(each):
            code = encode(random_inst(form, rng))[: form.size]
            word = int.from_bytes(code, "little") ^ 1 << rng.randrange(8 * form.size)
            yield word.to_bytes(form.size, "little") + LITERAL


def crashes_llvm(code: bytes) -> bool:
    """Whether LLVM 22 may crash at the code or at words within it, to which it goes on where it cannot read the first."""
    padded = code + 2 * _NOP
    return any(_crashes(int.from_bytes(padded[at : at + 8], "little")) for at in range(0, len(code), 4))


def _crashes(word: int) -> bool:
    """A literal as a buffer's offset, and parts of SDWA that have no meaning."""
    first = word & 0xFFFFFFFF
    if first >> 26 in (0b111000, 0b111010) and word >> 56 == 255:
        return True
    if first >> 31 or first & 511 != 249:
        return False
    compares = first >> 25 == 0b0111110
    return 7 in (word >> 48 & 7, word >> 56 & 7) or (not compares and (word >> 40 & 7 == 7 or word >> 43 & 3 == 3))


def dumped(chip: Chip, codes: Sequence[bytes], folder: Path) -> list[str | None]:
    """LLVM's text of each code's first instruction, None where it is none, CRASHED where LLVM does not live to say."""
    found = _dumped(chip, codes, folder)
    if found is not None:
        return found
    if len(codes) == 1:
        return [CRASHED]
    half = len(codes) // 2
    return [*dumped(chip, codes[:half], folder), *dumped(chip, codes[half:], folder)]


def _dumped(chip: Chip, codes: Sequence[bytes], folder: Path) -> list[str | None] | None:
    """As `dumped`; None where LLVM crashes somewhere in it."""
    blob = b"".join((code + 5 * _NOP)[:_SLOT] for code in codes)
    words = (f".long {int.from_bytes(blob[at : at + 4], 'little')}\n" for at in range(0, len(blob), 4))
    source, made = folder / "words.s", folder / "words.o"
    source.write_text("".join(words))
    program = llvm_mc()
    assert program is not None
    subprocess.run([program, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-filetype=obj", source, "-o", made], check=True)
    done = subprocess.run(["llvm-objdump-22", "-d", f"--mcpu={chip.name}", made], capture_output=True, text=True)
    if done.returncode < 0:
        return None
    done.check_returncode()
    found: list[str | None] = [None] * len(codes)
    for match in filter(None, map(_LINE.match, done.stdout.splitlines())):
        slot, within = divmod(int(match["at"], 16), _SLOT)
        if not within and not match["text"].startswith(".long"):
            found[slot] = match["text"]
    return found
