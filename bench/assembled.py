"""Whether NVIDIA's assemblers take our PTX: every listing of the kernel library and random programs; writes `assembled.md`.

    python bench/assembled.py --assembler PTXAS --assembler NEWER_PTXAS [--target nvidia-sm90a] [--programs 300] [--seed 1]

Without `--assembler`: those of the wheels nvidia-cuda-nvcc-cu12 and nvidia-cuda-nvcc, where installed. The listings are those of
plugins/nvidia/tests/test_ptxas_accepts.py. Exit code 1 where a kernel is refused or warned of, or a listing spills: random programs
may have more values alive than there are registers.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from tilefw.api import UnsupportedError
from tilefw.testing import programs
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips import named as chip_named

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "plugins" / "nvidia" / "tests")]

from test_ptxas_accepts import COMBINATIONS, compiled  # noqa: E402

_WHEELS = ("cuda_nvcc/bin/ptxas", "cu13/bin/ptxas")  # below the package `nvidia`: of CUDA 12, and of 13
_SPILL = re.compile(r"(\d+) bytes spill (?:stores|loads)")
_WARNING = re.compile(r"(?:warning|info)\s*:?\s*(?:\((C\d+)\))?\s*(.*(?:[Pp]otential|serializ|ignored|[Ww]arning).*)")
_RELEASE = re.compile(r"release ([\d.]+), V([\d.]+)")
LIBRARY, RANDOM = "listings of the library", "random programs"


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one kernel by one assembler: what is wrong with it ("" for nothing)."""

    kind: str
    name: str
    assembler: str
    wrong: str

    @property
    def fault(self) -> bool:
        return bool(self.wrong) and (self.kind == LIBRARY or not self.wrong.startswith("spills"))


def assemblers() -> list[str]:
    found = find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found else []
    return [str(path) for place in _WHEELS for folder in folders if (path := Path(folder) / place).exists()]


def release(assembler: str) -> str:
    """Its version as it says it."""
    said = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=True).stdout
    match = _RELEASE.search(said)
    return match[2] if match else said.strip()


def texts(chip: Chip, count: int, seed: int, refused: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """(kind, name, PTX); what the target does not serve is counted."""
    for name, parameters in COMBINATIONS:
        label = " ".join([name, *(f"{k}={v}" for k, v in parameters.items())])
        try:
            yield LIBRARY, label, compiled(name, parameters, chip).text
        except UnsupportedError:
            refused[LIBRARY] += 1
    for index in range(count):
        try:
            yield RANDOM, f"program {index} of seed {seed}", programs.compiled(programs.numbered(seed, index), chip.target).text
        except UnsupportedError:
            refused[RANDOM] += 1


def wrong(assembler: str, text: str, chip: Chip, folder: Path) -> str:
    """The first thing that the assembler has against a kernel."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [assembler, "-v", f"-arch={chip.name}", "-o", str(folder / "kernel.cubin"), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    said = ran.stdout + ran.stderr
    if ran.returncode:
        return "refused: " + next((line for line in said.splitlines() if "error" in line), said[:200])
    if any(int(number) for number in _SPILL.findall(said)):
        return "spills: " + next(line.strip() for line in said.splitlines() if "spill" in line)
    warned = _WARNING.search(said)
    return f"warned: {warned[0].strip()}" if warned else ""


def judged(chip: Chip, tools: Sequence[str], count: int, seed: int, refused: Counter[str]) -> Iterator[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, text in texts(chip, count, seed, refused):
            for tool in tools:
                yield Answer(kind, name, tool, wrong(tool, text, chip, Path(folder)))


def rows(chip: Chip, answers: Sequence[Answer], tools: Sequence[str], refused: Counter[str]) -> Iterator[str]:
    """Of one target, a row of the page for each kind of kernels and assembler."""
    for kind in (LIBRARY, RANDOM):
        for tool in tools:
            those = [one.wrong for one in answers if (one.kind, one.assembler) == (kind, tool)]
            ended = Counter(what.partition(":")[0] for what in those)
            numbers = (len(those), refused[kind], len(those) - ended["refused"], ended["spills"], ended["warned"])
            yield f"| {chip.target} | {kind} | {release(tool)} | " + " | ".join(map(str, numbers)) + " |"


def page(table: Sequence[str], faults: Sequence[str], seed: int) -> str:
    head = (
        "# NVIDIA's assemblers and our PTX\n\n"
        f"Made by `bench/assembled.py` on {date.today()}. Every listing of the kernel library that\n"
        f"plugins/nvidia/tests/test_ptxas_accepts.py names, and random programs of seed {seed}, each given to `ptxas -v`.\n"
        "*Unserved*: what the target refuses to compile.\n\n"
        "| target | what | ptxas | kernels | unserved | accepted | with spills | with warnings |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(table) + "\n\n" + ("\n".join(["## Faults", "", *faults]) if faults else "No faults.") + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assembler", action="append", metavar="PTXAS")
    parser.add_argument("--target", action="append", metavar="T", help="default: nvidia-sm90a")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args(arguments)
    tools = said.assembler or assemblers()
    if not tools:
        parser.error("no assembler: pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-nvcc, or name one with --assembler")
    table: list[str] = []
    faults: list[str] = []
    for target in said.target or ["nvidia-sm90a"]:
        chip, refused = chip_named(target.removeprefix("nvidia-").replace("sm", "sm_")), Counter[str]()
        answers = list(judged(chip, tools, said.programs, said.seed, refused))
        table += rows(chip, answers, tools, refused)
        faults += [f"- {target}, ptxas {release(one.assembler)}, {one.name}: {one.wrong}" for one in answers if one.fault]
    (HERE / "assembled.md").write_text(page(table, faults, said.seed), "utf-8")
    print("\n".join([*table, *faults]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
