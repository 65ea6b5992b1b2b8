"""The main loop of a code object of AMD's, and the cycles that llvm-mca takes for it.

The main loop is the one without another inside that has the most matrix instructions, and of those the longest. llvm-mca knows the
units and latencies of LLVM's scheduling model and waits for counters; it knows no bank conflicts and guesses latencies of memory.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tilefw_amd import code_object
from tilefw_amd.chips import named
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text.printer import text
from tilefw_amd.simulate.kernel import Word, words

ITERATIONS = 100
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Loop:
    """`lines` are the instructions of one turn for `chip`, its branch last; `matrix` counts the matrix instructions among them."""

    chip: str
    lines: tuple[str, ...]
    matrix: int

    @functools.cached_property
    def cycles(self) -> float | None:
        """Of llvm-mca for one turn, in the long run; None where it is not installed."""
        return mca(self.chip, self.lines)


def main_loop(data: bytes, name: str, chip: str) -> Loop | None:
    """The main loop of the only kernel of a code object for a chip (`gfx942`); None when it has no loop."""
    isa = instruction_set(named(chip))
    found = code_object.read(data, name, isa.chip)
    code = words(isa, found, found.kernels[0])
    loops = [_loop(chip, code[first:last]) for first, last in _spans(code)]
    return max(loops, key=lambda loop: (loop.matrix, len(loop.lines)), default=None)


def _loop(chip: str, code: tuple[Word, ...]) -> Loop:
    found = [word.inst for word in code if word.inst]
    return Loop(chip, tuple(map(text, found)), sum(inst.form.row.passes > 0 for inst in found))


def _spans(code: tuple[Word, ...]) -> Iterator[tuple[int, int]]:
    """Ranges of instructions from the target of a branch backwards to that branch, without such a range inside."""
    at = {word.offset: index for index, word in enumerate(code)}
    found = [(at[word.target], i + 1) for i, word in enumerate(code) if word.target in at and at[word.target] <= i]
    for first, last in found:
        inside = [other for other in found if other != (first, last) and first <= other[0] and other[1] <= last]
        if not inside:
            yield first, last


@functools.cache
def llvm_mca() -> str | None:
    return os.environ.get("TILEFW_LLVM_MCA") or shutil.which("llvm-mca-22")


def mca(chip: str, lines: tuple[str, ...]) -> float | None:
    """Cycles a turn."""
    printed = report(chip, lines, "-all-views=false", "-summary-view")
    return None if printed is None else int(_CYCLES.search(printed)[1]) / ITERATIONS


def report(chip: str, lines: tuple[str, ...], *options: str) -> str | None:
    """What llvm-mca prints of ITERATIONS turns; None where it is not installed."""
    path = llvm_mca()
    if path is None:
        return None
    command = [path, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}", f"-iterations={ITERATIONS}", *options]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return done.stdout
