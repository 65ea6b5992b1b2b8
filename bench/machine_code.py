"""Assembling and disassembling gfx942 code: 10,000 instructions of Triton's kernels of the corpus, text to bytes and back."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import seconds, verdict

from oracles.chips import GFX942
from oracles.corpus import Corpus

if TYPE_CHECKING:
    from tilefw_amd.isa.set import InstructionSet

GOAL = 0.3  # seconds for each direction
COUNT = 10_000
LLVM_MC = next(filter(None, map(shutil.which, ("llvm-mc-22", "llvm-mc"))), None)
LLVM_OBJDUMP = next(filter(None, map(shutil.which, ("llvm-objdump-22", "llvm-objdump"))), None)
_MC_OPTIONS = ("-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj")


def measure(rounds: int = 5) -> str:
    text = "".join(f"\t{line}\n" for line in _instructions())
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder, "code.s"), Path(folder, "code.bin")
        source.write_text(text)
        code.write_bytes(_assemble(source))
        given = {"assembling": (_assemble, source), "disassembling": (_disassemble, code)}
        warm = {name: _median(rounds, step, path) for name, (step, path) in given.items()}
        cold = {name: statistics.median(_fresh(name, path) for _ in range(rounds)) for name, (_, path) in given.items()}
        llvm = _llvm(source, rounds)
    lines = [
        "## gfx942 machine code, text and bytes", "",
        f"{COUNT:,} instructions in the order of Triton's kernels of the corpus, processor time, medians of {rounds} rounds. "
        "Disassembling decodes and prints. First time: in a fresh process, the table of forms being made and its modules imported "
        "too. LLVM 22: `llvm-mc -filetype=obj` on the text, `llvm-objdump -d` on the bytes, whole processes.", "",
        "| | tilefw ms | goal | | first time ms | LLVM ms |", "|---|---|---|---|---|---|",
    ]
    for name, taken in warm.items():
        peer = f"{llvm[name] * 1e3:.0f}" if llvm else ""
        goal = f"{GOAL * 1e3:.0f} | {verdict(taken <= GOAL)}"
        lines.append(f"| {name} | {taken * 1e3:.0f} | {goal} | {cold[name] * 1e3:.0f} | {peer} |")
    return "\n".join(lines)


def _instructions() -> list[str]:
    """COUNT instructions as our disassembler prints them, kernel by kernel; branches by distance instead of labels."""
    from tilefw_amd import code_object
    from tilefw_amd.isa.text.printer import text
    from tilefw_amd.simulate.kernel import words

    isa = _instruction_set()
    found: list[str] = []
    for item in Corpus(GFX942).load():
        assert isinstance(item.code, bytes)
        read = code_object.read(item.code, item.name, isa.chip)
        found += [text(word.inst) for kernel in read.kernels for word in words(isa, read, kernel) if word.inst is not None]
        if len(found) >= COUNT:
            return found[:COUNT]
    raise SystemExit(f"the corpus has only {len(found)} instructions")


def _instruction_set() -> InstructionSet:
    from tilefw.runtime.plugins.loader import find_target
    from tilefw_amd.chips import chip_of
    from tilefw_amd.isa.set import instruction_set

    return instruction_set(chip_of(find_target(GFX942.target).info))


def _assemble(source: Path) -> bytes:
    from tilefw_amd.assembler.assemble import assemble_code

    return assemble_code(_instruction_set(), source.read_text())


def _disassemble(path: Path) -> None:
    from tilefw_amd.isa.encoding.decode import decode
    from tilefw_amd.isa.text.printer import text

    isa, code, at = _instruction_set(), path.read_bytes(), 0
    while at < len(code):
        inst = decode(isa, code, at)
        text(inst)
        at += inst.size


def _median(rounds: int, step: Callable[[Any], object], given: object) -> float:
    step(given)  # everything warm
    taken = []
    for _ in range(rounds):
        start = seconds()
        step(given)
        taken.append(seconds() - start)
    return statistics.median(taken)


def _fresh(name: str, path: Path) -> float:
    ran = subprocess.run([sys.executable, __file__, name, str(path)], capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1])


def _llvm(source: Path, rounds: int) -> dict[str, float]:
    """Seconds of LLVM's tools by what they do; nothing where they are not installed."""
    if LLVM_MC is None or LLVM_OBJDUMP is None:
        return {}
    made = source.with_suffix(".o")
    return {
        "assembling": _median(rounds, _run, [LLVM_MC, *_MC_OPTIONS, str(source), "-o", str(made)]),
        "disassembling": _median(rounds, _run, [LLVM_OBJDUMP, "-d", str(made)]),
    }


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _first_time(name: str, path: Path) -> None:
    start = seconds()
    _assemble(path) if name == "assembling" else _disassemble(path)
    print(seconds() - start)


if __name__ == "__main__":
    _first_time(sys.argv[1], Path(sys.argv[2]))
