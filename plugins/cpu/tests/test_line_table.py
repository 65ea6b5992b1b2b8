"""The line table of an object file says of each instruction which line it comes from, as another reader of DWARF does."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tilefw
import tilefw.language as tl
from tilefw_cpu.line_table import ObjectLines


@tilefw.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(n):
        total += tl.load(x + i * BLOCK + at)
    tl.store(out, tl.sum(total, axis=0))


def test_the_rows_are_those_that_objdump_reads(tmp_path: Path) -> None:
    tool = shutil.which("objdump") or shutil.which("llvm-objdump-22")
    artifact = tilefw.compile(sums, signature={"x": "*fp32", "out": "*fp32", "n": "i32"}, constexprs={"BLOCK": 64})
    assert artifact.binary is not None
    table = ObjectLines(artifact.binary)
    place = table.place(table.symbols["tilefw.sums"])
    assert place is not None and place.file == __file__
    if tool is None or "llvm" in tool:
        pytest.skip("binutils' objdump is not installed")
    (tmp_path / "code.o").write_bytes(artifact.binary)
    text = subprocess.run([tool, "--dwarf=decodedline", tmp_path / "code.o"], capture_output=True, text=True, check=True).stdout
    rows = [(int(line), int(at, 0)) for line, at in re.findall(r"^\S+ +(\d+) +(0x[0-9a-f]+|0)\b", text, re.M)]
    assert len(rows) > 5
    last = dict((at, line) for line, at in rows)
    for at, line in last.items():
        found = table.place(at)
        assert (0 if found is None else found.line) == line
