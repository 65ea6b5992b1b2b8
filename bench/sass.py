"""What ptxas made of PTX: instructions of the whole kernel, and of its main loop, read from a cubin by NVIDIA's `nvdisasm`.

Triton's wheel brings `nvdisasm`. The main loop is the innermost loop with the most matrix instructions; of several, the shortest
(attention's loop over keys that need no mask).
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z][A-Z0-9_.]*)(.*?);")
_LABEL = re.compile(r"^(\.L_x?_?\w+):")
_BRANCH_TARGET = re.compile(r"`\((\.L\w+)\)")
_MATRIX = ("HMMA", "IMMA", "DMMA", "BMMA", "HGMMA", "IGMMA", "QGMMA")


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions from a loop's first to the branch back, and how many of them multiply matrices."""

    instructions: int
    matrix: int

    @property
    def per_matrix(self) -> float:
        """Instructions for each matrix instruction: comparable where ptxas unrolled one side and not the other."""
        return self.instructions / self.matrix


@dataclass(frozen=True, slots=True)
class Sass:
    """A kernel in the chip's own instructions; `loop` is None where no loop multiplies matrices."""

    instructions: int
    loop: Loop | None


@cache
def disassembler() -> str | None:
    """The path of Triton's nvdisasm, or None without it."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    return str(path) if os.access(path, os.X_OK) else None


def read(cubin: bytes) -> Sass | None:
    """What is in a cubin of one kernel; None where there is no disassembler."""
    tool = disassembler()
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout
    return parse(text)


def parse(text: str) -> Sass:
    """Padding (NOP) and the branch to itself that ends every kernel are not counted."""
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    endless = 0
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(opcodes)
        elif (found := _INSTRUCTION.match(line)) and found[1] != "NOP":
            target = _BRANCH_TARGET.search(found[2])
            start = labels.get(target[1]) if target else None  # a label not seen yet lies ahead
            if start == len(opcodes):
                endless += 1
            elif start is not None:
                spans.append((start, len(opcodes)))
            opcodes.append(found[1])
    return Sass(len(opcodes) - endless, _main_loop(opcodes, spans))


def _main_loop(opcodes: Sequence[str], spans: Sequence[tuple[int, int]]) -> Loop | None:
    innermost = [(s, e) for s, e in spans if not any((s, e) != (a, b) and s <= a and b <= e for a, b in spans)]
    loops = [Loop(e - s + 1, sum(op.startswith(_MATRIX) for op in opcodes[s : e + 1])) for s, e in innermost]
    multiplying = [loop for loop in loops if loop.matrix]
    return min(multiplying, key=lambda loop: (-loop.matrix, loop.instructions), default=None)
