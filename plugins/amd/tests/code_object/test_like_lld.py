"""A code object of ours is laid out as ld.lld lays out the same sections and symbols: same image, same headers, same symbols."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from served import CHIPS

from tilefw_amd import code_object
from tilefw_amd.chips import Chip
from tilefw_amd.code_object import elf
from tilefw_amd.code_object.writer import CodeObjectWriter, OutputSection, OutputSymbol

_KERNEL = """
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
s_endpgm
.L{name}_end:
.size {name}, .L{name}_end-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
.end_amdhsa_kernel
"""
_TARGET = '.amdgcn_target "{triple}"\n.amdhsa_code_object_version 5\n'


def _metadata(names: list[str]) -> str:
    entries = "".join(
        f"  - .name: {n}\n    .symbol: {n}.kd\n    .kernarg_segment_size: 8\n    .kernarg_segment_align: 8\n"
        f"    .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 64\n"
        f"    .sgpr_count: 16\n    .vgpr_count: 8\n    .max_flat_workgroup_size: 256\n"
        for n in names
    )
    return f".amdgpu_metadata\n---\namdhsa.version:\n  - 1\n  - 2\namdhsa.kernels:\n{entries}...\n.end_amdgpu_metadata\n"


def _source(names: list[str], extra: str = "") -> str:
    parts = [_KERNEL.format(name=n, vgprs=8 * (i + 1), body="s_nop 0\n" * (10 * i)) for i, n in enumerate(names)]
    return _TARGET + "".join(parts) + extra + _metadata(names)


CASES = {
    "one kernel": _source(["add"]),
    "many kernels": _source([f"kernel_{i}" for i in range(11)]),
    "constants": _source(["add"], '.section .rodata.table,"a"\n.p2align 4\n.quad 1,2,3\n'),
    "variables": _source(["add"], ".data\n.p2align 4\n.globl count\n.type count,@object\ncount:\n.quad 7\n.size count, 8\n"),
    "local symbols": _source(["add"], ".text\n.type inner,@function\ninner:\ns_endpgm\n.Lend:\n.size inner, .Lend-inner\n"),
}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory):
    """(object file, shared object) of a source, by LLVM."""
    mc, lld = shutil.which("llvm-mc-22"), shutil.which("ld.lld-22")
    if mc is None or lld is None:
        pytest.skip("LLVM 22 (llvm-mc-22, ld.lld-22) is not installed")
    folder = tmp_path_factory.mktemp("lld")

    def make(chip: Chip, text: str) -> tuple[elf.Elf, elf.Elf]:
        (folder / "a.s").write_text(text.replace("{triple}", chip.triple))
        assemble = [mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-filetype=obj", "-o", "a.o", "a.s"]
        subprocess.run(assemble, cwd=folder, check=True)
        subprocess.run([lld, "-shared", "-o", "a.hsaco", "a.o"], cwd=folder, check=True)
        return elf.Elf((folder / "a.o").read_bytes(), "a.o"), elf.Elf((folder / "a.hsaco").read_bytes(), "a.hsaco")

    return make


def _writer(chip: Chip, theirs: elf.Elf) -> CodeObjectWriter:
    kept = [s for s in theirs.sections if s.name in (".rodata", ".text", ".data", ".bss")]
    places = {s.name: s for s in kept}
    sections = [OutputSection(s.name, s.type, s.flags, s.alignment, bytearray(s.data), s.size, s.entry_size) for s in kept]
    symbols = [
        OutputSymbol(s.name, theirs.sections[s.section].name, s.value - places[theirs.sections[s.section].name].address, s.size,
                     s.type, s.binding, s.visibility)
        for s in theirs.symbols if 0 < s.section < len(theirs.sections) and theirs.sections[s.section].name in places
    ]
    object_ = code_object.read(theirs.data, theirs.name, chip=chip)
    return CodeObjectWriter(sections, symbols, object_.document, chip.elf_flags)


# How a file is laid out is one writer's for all chips: a second chip tries the case with most sections.
PAIRS = [(CHIPS[0], case) for case in CASES] + [(chip, "variables") for chip in CHIPS[1:]]
on_each_chip = pytest.mark.parametrize(("chip", "case"), PAIRS, ids=str)


@on_each_chip
def test_layout_is_that_of_lld(chip: Chip, case: str, linked) -> None:
    _, theirs = linked(chip, CASES[case])
    ours = elf.Elf(_writer(chip, theirs).write(), "ours")
    assert ours.header == theirs.header
    assert [(s.type, s.flags, s.address, s.memory_size, s.alignment) for s in ours.segments] == [
        (s.type, s.flags, s.address, s.memory_size, s.alignment) for s in theirs.segments
    ]
    loaded = [s for s in theirs.sections if s.flags & elf.SHF_ALLOC]
    assert [s for s in ours.sections if s.flags & elf.SHF_ALLOC] == loaded
    assert {(s.name, s.value, s.size, s.type, s.binding, s.visibility) for s in ours.symbols if s.name} == {
        (s.name, s.value, s.size, s.type, s.binding, s.visibility)
        for s in theirs.symbols if s.name not in ("", "_DYNAMIC") and not s.name.startswith("amdgpu.")
    }


@on_each_chip
def test_what_is_read_back_is_what_lld_says(chip: Chip, case: str, linked) -> None:
    _, theirs = linked(chip, CASES[case])
    ours = code_object.read(_writer(chip, theirs).write(), "ours", chip=chip)
    original = code_object.read(theirs.data, "theirs", chip=chip)
    assert ours.kernels == original.kernels and ours.functions == original.functions
    assert ours.image[64:].strip(b"\0") and len(ours.image) == len(original.image)
