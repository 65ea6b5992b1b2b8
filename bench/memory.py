"""Peak memory of whole commands, each in a fresh process: what a kernel's verification takes from start to end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import workloads
from measure import verdict

from oracles import launch_file
from oracles.chips import GFX942
from oracles.corpus import Corpus

GOAL = 500  # MB
FOREIGN = "matmul_512_128"
CUBE = ("m=512", "n=512", "k=512", "block_m=128", "block_n=128")
CHECKS = {"default checks": (), "all checks": ("--checks", "all")}
# The largest resident set of the command and of what it starts (ptxas), from a process that holds nothing itself: Linux counts
# the pages that a child shares with its parent before it becomes the command.
_WRAPPER = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); \
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def measure() -> str:
    lines = ["## Peak memory", "", "The largest resident set of a fresh process, ptxas included.", ""]
    lines += ["| | MB | goal | |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            **{
                f"`tilefw run matmul` 512³, {target}": ["run", "matmul", "--target", target, *_parameters()]
                for target in ("nvidia-sm80", GFX942.target)
            },
            "`tilefw simulate` of Triton's gfx942 matmul 512³, 128x128x32": _simulate(Path(folder)),
        }
        for shown, command in commands.items():
            for checks, options in CHECKS.items():
                megabytes = _peak([sys.executable, "-m", "tilefw", *command, *options])
                lines.append(f"| {shown}, {checks} | {megabytes:.0f} | {GOAL} | {verdict(megabytes <= GOAL)} |")
    return "\n".join(lines)


def _simulate(folder: Path) -> list[str]:
    item = Corpus(GFX942).item(workloads.case(FOREIGN))
    assert isinstance(item.code, bytes)
    code = folder / "matmul.hsaco"
    code.write_bytes(item.code)
    launch = launch_file.write(item, folder)
    return ["simulate", str(code), "--target", GFX942.target, "--launch", str(launch), "--out", str(folder / "out.npz")]


def _parameters() -> list[str]:
    return [word for given in CUBE for word in ("--param", given)]


def _peak(command: list[str]) -> float:
    ran = subprocess.run([sys.executable, "-c", _WRAPPER, *command], capture_output=True, text=True, check=True)
    return int(ran.stdout) * 1024 / 1e6
