"""Peak memory of whole commands, each in a fresh process: what a kernel's verification takes from start to end."""

from __future__ import annotations

import subprocess
import sys

from measure import verdict

GOAL = 500  # MB
CUBE = ("m=512", "n=512", "k=512", "block_m=128", "block_n=128")
COMMANDS = {
    "`tilefw run matmul` 512³, default checks": (),
    "`tilefw run matmul` 512³, all checks": ("--checks", "all"),
}
# The largest resident set of the command and of what it starts (ptxas), from a process that holds nothing itself: Linux counts
# the pages that a child shares with its parent before it becomes the command.
_WRAPPER = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); \
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


def measure() -> str:
    lines = ["## Peak memory", "", "The largest resident set of a fresh process, ptxas included.", ""]
    lines += ["| | MB | goal | |", "|---|---|---|---|"]
    for shown, options in COMMANDS.items():
        megabytes = _peak([sys.executable, "-m", "tilefw", "run", "matmul", "--target", "nvidia-sm80", *_parameters(), *options])
        lines.append(f"| {shown} | {megabytes:.0f} | {GOAL} | {verdict(megabytes <= GOAL)} |")
    return "\n".join(lines)


def _parameters() -> list[str]:
    return [word for given in CUBE for word in ("--param", given)]


def _peak(command: list[str]) -> float:
    ran = subprocess.run([sys.executable, "-c", _WRAPPER, *command], capture_output=True, text=True, check=True)
    return int(ran.stdout) * 1024 / 1e6
