"""gdb knows the lines of a kernel: it stops at one, and shows where it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import numpy as np, tilefw
import tilefw.language as tl

@tilefw.jit
def doubled(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(x + at, value * 2)  # here

x = np.ones(64, np.float32)
doubled[(1,)](x, BLOCK=64, target="cpu")
print("sum", x.sum())
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_stops_at_a_line_of_the_kernel(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SCRIPT)
    line = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if "# here" in text)
    commands = ["set breakpoint pending on", f"break program.py:{line}", "run", "bt 1", "delete", "continue"]
    told = subprocess.run(
        ["gdb", "-batch", "-nx", *(word for command in commands for word in ("-ex", command)), "--args", sys.executable, program],
        capture_output=True, text=True, timeout=120, check=False,
    ).stdout
    assert f"hit Breakpoint 1, doubled () at {program}:{line}" in told and f"#0  doubled () at {program}:{line}" in told
    assert "sum 128.0" in told
