"""The line table of a code object is what llvm-dwarfdump reads in it, in every version; damage never breaks the reading."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import CHIP, CHIPS

from tilefw_amd.code_object import elf, line_program, line_table
from tilefw_amd.code_object.writer import CodeObjectWriter, OutputSection

TOOLS = [shutil.which(name) for name in ("llvm-mc-22", "ld.lld-22", "llvm-dwarfdump-22")]
_SOURCE = """
.text
.file 1 "/kernels" "first.py"
.file 2 "/kernels/inner" "second.py"
k:
.loc 1 7 0 prologue_end
s_nop 0
.loc 1 8 31
v_mov_b32 v0, 0x12345678
.loc 2 400 3
s_nop 1
.loc 1 0 0
s_nop 2
.loc 1 2 60000
.fill 400, 4, 0xbf800000
.loc 1 9 1
s_endpgm
"""
_LINE = re.compile(r"^0x(\w{16}) +(\d+) +(\d+) +\d+ +\d+ +\d+ +\d+ *(.*)$", re.MULTILINE)


# Told by names: two runs, and two workers of one, print a chip's sets in two orders.
LINKED = [
    pytest.param((chip, version), id=f"{chip.name}-version{version}")
    for chip in CHIPS for version in "345" if chip is CHIP or version == "5"
]


@pytest.fixture(params=LINKED)
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if None in TOOLS:
        pytest.skip("LLVM 22 (llvm-mc-22, ld.lld-22, llvm-dwarfdump-22) is not installed")
    chip, version = request.param
    unit = '.file 0 "/kernels" "unit.py"\n' if version == "5" else ""  # version 5 alone has a file 0
    (tmp_path / "a.s").write_text(unit + _SOURCE)
    flags = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-filetype=obj", f"-dwarf-version={version}"]
    subprocess.run([TOOLS[0], *flags, "-o", "a.o", "a.s"], cwd=tmp_path, check=True)
    subprocess.run([TOOLS[1], "-shared", "-o", "a.hsaco", "a.o"], cwd=tmp_path, check=True)
    return tmp_path / "a.hsaco"


def test_rows_are_those_of_llvm(linked: Path) -> None:
    dump = subprocess.run([TOOLS[2], "--debug-line", str(linked)], capture_output=True, text=True, check=True).stdout
    theirs = [(int(a, 16), 0 if "end_sequence" in flags else int(line)) for a, line, _, flags in _LINE.findall(dump)]
    table = line_table.read(elf.Elf(linked.read_bytes(), "a"))
    assert [(row.address, row.line) for row in table.rows] == sorted(theirs, key=lambda row: row[0])
    places = [table.place(address) for address, line in theirs if line]
    assert {place.file for place in places if place} == {"/kernels/first.py", "/kernels/inner/second.py"}
    assert {(p.line, p.column) for p in places if p} == {(7, 0), (8, 31), (400, 3), (2, 60000), (9, 1)}


def test_damage_never_breaks_the_reading(linked: Path) -> None:
    data = linked.read_bytes()
    section = elf.Elf(data, "a").section(".debug_line")
    assert section is not None
    start, draw = data.index(section.data), random.Random(1)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 6)):
            changed[start + draw.randrange(len(section.data))] = draw.randrange(256)
        line_table.read(elf.Elf(bytes(changed), "a"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.builds(
    line_table.LineRow, st.integers(0, 1 << 20).map(lambda n: 4 * n), st.sampled_from(["a.py", "/k/b.py"]), st.integers(1, 1 << 30),
    st.integers(0, 500),
), unique_by=lambda row: row.address), max_size=3))
def test_lines_that_are_written_are_read(sequences: list[list[line_table.LineRow]]) -> None:
    placed = [
        [replace(row, address=row.address + (n << 32)) for row in sorted(rows, key=lambda row: row.address)]
        for n, rows in enumerate(sequences)
    ]
    program = line_program.encode((n + 1 << 32, rows) for n, rows in enumerate(placed))
    section = OutputSection(".debug_line", data=bytearray(program))
    written = CodeObjectWriter([section], [], {"amdhsa.version": [1, 2], "amdhsa.kernels": []}, CHIP.elf_flags).write()
    table = line_table.read(elf.Elf(written, "a"))
    assert [row for row in table.rows if row.line] == [row for rows in placed for row in rows]
