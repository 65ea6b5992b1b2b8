"""`tilefw compile` and `tilefw run` for amd-cdna3: every level, code objects by default, and what the kernel takes of the chip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TARGET = ("--target", "amd-cdna3")


@pytest.mark.parametrize(
    ("level", "holds"),
    [("tile", "tile.load"), ("lane", "lane.load"), ("machine", "add_f32 "), ("asm", ".amdhsa_kernel vector_add")],
)
def test_every_level_is_text(tilefw, level, holds) -> None:
    status, out, _ = tilefw("compile", "vector_add", *TARGET, "--emit", level)
    assert status == 0 and holds in out


def test_the_binary_is_a_code_object_that_disassembles_to_the_listing(tilefw) -> None:
    assert tilefw("compile", "vector_add", *TARGET, "--emit", "bin", "-o", "k.hsaco")[0] == 0
    assert tilefw("compile", "vector_add", *TARGET, "-o", "k.s")[0] == 0
    assert Path("k.hsaco").read_bytes().startswith(b"\x7fELF")
    read_back = tilefw("disasm", "k.hsaco", *TARGET)[1]
    assert _instructions(Path("k.s").read_text(encoding="utf-8")) == _instructions(read_back)


def _instructions(text: str) -> list[str]:
    """Instructions of a listing, of branches without the names of their labels."""
    code = [line.strip() for line in text.splitlines() if line.startswith("\t") and not line.strip().startswith(".")]
    code = [line for line in code if line[:2] in ("s_", "v_", "ds", "bu", "gl")]
    return [line.partition(" ")[0] if "branch" in line else line for line in code if line != "s_nop 0"]


def test_a_saved_artifact_loads_and_a_run_says_what_the_kernel_takes(tilefw) -> None:
    report = json.loads(tilefw("run", "vector_add", *TARGET, "--checks", "all", "--save-temps", "temps", "--json")[1])
    assert report["verdict"] == "pass" and not report["findings"]
    used = report["resources"]
    assert used["registers"].keys() == {"vector", "accumulation", "scalar"} and used["registers"]["accumulation"] == 0
    assert (used["spills"], used["scratch_bytes"], used["shared_bytes"], used["occupancy"]) == (0, 0, 0, 1.0)
    assert used["instructions"]["memory"] >= 3 and used["instructions"]["waits"] >= 1
    assert Path("temps/vector_add.bin").read_bytes().startswith(b"\x7fELF")
    assert {file.suffix for file in Path("temps").iterdir()} == {".mlir", ".hsaco", ".bin"}


def test_a_run_prints_them_for_people(tilefw) -> None:
    out = tilefw("run", "vector_add", *TARGET)[1]
    assert "(vector), 0 (accumulation)" in out and "occupancy 1.0" in out and "(scalar memory)" in out


def test_too_large_a_workgroup_says_how_much_and_what_to_change(tilefw) -> None:
    status, out, err = tilefw("run", "vector_add", *TARGET, "--param", "num_warps=32")
    assert status == 1 and "32 waves of 64 lanes are 2048 threads; a workgroup has at most 1024" in err
    assert "use num_warps=16 or less" in err and out.startswith("FAIL") and "error[" not in out


def test_targets_and_doctor_name_it(tilefw) -> None:
    (target,) = [t for t in json.loads(tilefw("targets", "--json")[1])["targets"] if t["name"] == "amd-cdna3"]
    assert sorted(target["provides"]) == ["assemble", "device", "emit", "lower", "simulate"]
    status, out, _ = tilefw("doctor")
    assert status == 0 and "amd-cdna3" in out
