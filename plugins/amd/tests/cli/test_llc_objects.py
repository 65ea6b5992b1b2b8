"""Files of llc and ld.lld: several kernels, local functions, data sections; the chip and the version that they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from served import CHIP, CHIPS

from tilefw_amd.chips import Chip

LLC, LLD = shutil.which("llc-22"), shutil.which("ld.lld-22")
pytestmark = pytest.mark.skipif(LLC is None or LLD is None, reason="no llc-22 and ld.lld-22 (apt-get install llvm-22 lld-22)")

SOURCE = """
target triple = "amdgcn-amd-amdhsa"
@primes = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 5]
@scratch = internal addrspace(1) global [64 x i32] zeroinitializer
@first = internal addrspace(1) global [3 x i32] [i32 7, i32 8, i32 9]
@dynamic = external addrspace(3) global [0 x i32], align 4
define internal i32 @twice(i32 %x) noinline {
  %y = shl i32 %x, 1
  ret i32 %y
}
define amdgpu_kernel void @doubled(ptr addrspace(1) %p) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %t = call i32 @twice(i32 %i)
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
  store i32 %t, ptr addrspace(1) %q
  ret void
}
define amdgpu_kernel void @looked_up(ptr addrspace(1) %p, i32 %n) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %m = and i32 %i, 3
  %at = getelementptr [4 x i32], ptr addrspace(4) @primes, i32 0, i32 %m
  %v = load i32, ptr addrspace(4) %at
  %s = getelementptr [64 x i32], ptr addrspace(1) @scratch, i32 0, i32 %i
  store volatile i32 %v, ptr addrspace(1) %s
  %w = load volatile i32, ptr addrspace(1) %s
  %d = getelementptr [0 x i32], ptr addrspace(3) @dynamic, i32 0, i32 %i
  store volatile i32 %w, ptr addrspace(3) %d
  %x = load volatile i32, ptr addrspace(3) %d
  %f = getelementptr [3 x i32], ptr addrspace(1) @first, i32 0, i32 %n
  %u = load volatile i32, ptr addrspace(1) %f
  %z = add i32 %u, %x
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
  store i32 %z, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 VERSION}
"""
LAUNCHES = {
    "doubled": ("args: [{out: p, shape: [64], dtype: int32}]", 2 * np.arange(64)),
    "looked_up": (
        "dynamic_shared: 256\nargs: [{out: p, shape: [64], dtype: int32}, {value: 1, dtype: i32}]",
        8 + np.array([1, 2, 3, 5])[np.arange(64) % 4],
    ),
}


on_each_chip = pytest.mark.parametrize("chip", CHIPS, ids=str)


def made(chip: str = CHIP.name, version: int = 500) -> None:
    """`k.o` and `k.hsaco` in the current folder, launch files beside them."""
    assert LLC is not None and LLD is not None
    Path("k.ll").write_text(SOURCE.replace("VERSION", str(version)))
    subprocess.run([LLC, f"-mcpu={chip}", "-filetype=obj", "k.ll", "-o", "k.o"], check=True)
    subprocess.run([LLD, "-shared", "k.o", "-o", "k.hsaco"], check=True)
    for name, (rest, _) in LAUNCHES.items():
        Path(f"{name}.yaml").write_text(f"kernel: {name}\ngrid: [1]\nblock: [64]\n{rest}\n")


def ran(tilefw, file: str, chip: Chip = CHIP) -> None:
    for name, (_, expected) in LAUNCHES.items():
        launch = ("--launch", f"{name}.yaml", "--out", "out.npz", "--checks", "all")
        status, _, err = tilefw("simulate", file, "--target", chip.target, *launch)
        assert status == 0, err
        assert np.array_equal(np.load("out.npz")["p"], expected)


@on_each_chip
def test_it_runs_and_so_does_its_disassembly(tilefw, chip: Chip) -> None:
    made(chip.name)
    ran(tilefw, "k.hsaco", chip)
    assert tilefw("disasm", "k.hsaco", "--target", chip.target, "-o", "k.s")[0] == 0
    text = Path("k.s").read_text(encoding="utf-8")
    assert text.count(".amdhsa_kernel ") == 2 and '.section ".bss","aw",@nobits' in text and "twice:" in text
    assert tilefw("asm", "k.s", "--target", chip.target, "-o", "again.hsaco")[0] == 0
    ran(tilefw, "again.hsaco", chip)


@on_each_chip
def test_the_text_of_llc_runs(tilefw, chip: Chip) -> None:
    made(chip.name)
    assert LLC is not None
    subprocess.run([LLC, f"-mcpu={chip.name}", "k.ll", "-o", "k.s"], check=True)
    assert ".comm" in Path("k.s").read_text(encoding="utf-8")
    ran(tilefw, "k.s", chip)


@pytest.mark.parametrize("version", [400, 600])
def test_other_versions_of_code_objects_run(tilefw, version) -> None:
    made(version=version)
    ran(tilefw, "k.hsaco")


# How the plugin calls other chips.
CALLED = {"gfx90a": "gfx90a", "gfx1100": "machine 0x41", **{chip.name: chip.name for chip in CHIPS}}


@pytest.mark.parametrize("theirs", CALLED)
@on_each_chip
def test_code_of_another_chip_is_refused(tilefw, chip: Chip, theirs: str) -> None:
    made(theirs)
    for verb in (("disasm",), ("simulate", "--launch", "doubled.yaml")):
        status, _, err = tilefw(verb[0], "k.hsaco", "--target", chip.target, *verb[1:])
        if theirs == chip.name:
            assert status == 0, err
        else:
            assert status == 1 and "TFW0724" in err and f"is code for {CALLED[theirs]}, not for {chip.name}" in err, err


def test_what_is_not_linked_and_what_is_not_named(tilefw) -> None:
    made()
    status, _, err = tilefw("simulate", "k.o", "--target", "amd-cdna3", "--launch", "doubled.yaml")
    assert status == 1 and "is not linked" in err and "ld.lld -shared" in err
    status, _, err = tilefw("simulate", "k.hsaco", "--target", "amd-cdna3", "--launch", "scale.yaml")
    assert status == 1 and "TFW0327" in err and "entries: doubled, looked_up" in err
