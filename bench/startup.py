"""Start-up: `tilefw --help` and `import tilefw` over the bare interpreter."""

from __future__ import annotations

import subprocess
import sys

from measure import alternate, verdict

COMMANDS = {
    "bare": [sys.executable, "-c", "pass"],
    "help": [sys.executable, "-m", "tilefw", "--help"],
    "import": [sys.executable, "-c", "import tilefw"],
    "triton": [sys.executable, "-c", "import triton"],
}
GOALS = {"help": 100, "import": 30}  # ms over the bare interpreter


def measure(rounds: int = 15) -> str:
    sides = {name: (lambda command=command: _run(command)) for name, command in COMMANDS.items()}
    taken = alternate(sides, rounds)
    lines = [
        "## Start-up",
        "",
        f"Fresh processes, medians of {rounds} alternating rounds of processor time; the bare interpreter takes "
        f"{taken['bare'] * 1e3:.1f} ms.",
        "",
        "| | ms over bare Python | goal | |",
        "|---|---|---|---|",
    ]
    for name in ("help", "import", "triton"):
        over = (taken[name] - taken["bare"]) * 1e3
        goal = GOALS.get(name)
        label = {"help": "`tilefw --help`", "import": "`import tilefw`", "triton": "`import triton`, for comparison"}[name]
        lines.append(f"| {label} | {over:.1f} | {goal or ''} | {verdict(None if goal is None else over <= goal)} |")
    return "\n".join(lines)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
