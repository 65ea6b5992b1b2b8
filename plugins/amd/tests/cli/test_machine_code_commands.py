"""`tilefw asm`, `disasm` and `simulate` for amd-cdna3: files as they should be, and everything that may be wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from served import CHIP, CHIPS

TARGET = ("--target", "amd-cdna3")
LAUNCH = (*TARGET, "--launch", "scale.yaml")
on_each_chip = pytest.mark.parametrize("chip", CHIPS, ids=str)
EXPECTED = (0.5 * 2 + np.arange(150)).astype(np.float32)


def edited(old: str, new: str, name: str = "scale.s") -> None:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path(name).write_text(text.replace(old, new, 1), encoding="utf-8")


def written_for(chip) -> None:
    """`scale.s` as it is for the chip."""
    text = Path("scale.s").read_text(encoding="utf-8")
    Path("scale.s").write_text(text.replace(CHIP.name, chip.name), encoding="utf-8")


@pytest.mark.parametrize(("chip", "alias"), [(chip, name) for chip in CHIPS for name in (chip.target, *chip.aliases)], ids=str)
def test_text_and_what_it_makes_give_the_same(tilefw, chip, alias) -> None:
    written_for(chip)
    assert tilefw("asm", "scale.s", "--target", alias)[0] == 0
    assert tilefw("disasm", "scale.hsaco", "--target", alias, "-o", "again.s")[0] == 0
    for file in ("scale.s", "scale.hsaco", "again.s"):
        assert tilefw("simulate", file, "--target", alias, "--launch", "scale.yaml", "--out", "out.npz", "--checks", "all")[0] == 0
        assert np.array_equal(np.load("out.npz")["y"], EXPECTED)


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip is not CHIP], ids=str)
def test_text_for_another_chip_is_refused_with_both_names(tilefw, chip) -> None:
    status, _, err = tilefw("asm", "scale.s", "--target", chip.target)
    assert status == 1 and "TFW0726" in err and f"the file is for {CHIP.name}, this assembler for {chip.name}" in err


def test_json_of_each(tilefw) -> None:
    made = json.loads(tilefw("asm", "scale.s", *TARGET, "--json", "-o", "k.hsaco")[1])
    assert made["target"] == "amd-cdna3" and made["file"] == "k.hsaco" and made["bytes"] == Path("k.hsaco").stat().st_size
    assert ".amdhsa_kernel scale" in json.loads(tilefw("disasm", "k.hsaco", *TARGET, "--json")[1])["text"]
    ran = json.loads(tilefw("simulate", "k.hsaco", *LAUNCH, "--json")[1])
    assert ran["verdict"] == "pass" and ran["outputs"] == {"y": {"dtype": "float32", "shape": [150]}}


def test_a_missing_wait_is_a_finding_at_the_line(tilefw) -> None:
    edited("s_waitcnt vmcnt(0)", ";")
    code, out, err = tilefw("simulate", "scale.s", *LAUNCH, "--json")
    (finding,) = json.loads(out)["findings"]
    assert code == 1 and finding["code"] == "TFW0820" and finding["source"] == "scale.s:21" and "vmcnt" in finding["note"]
    assert "global_load_dword v2" in finding["other"] and "scale.s:21" in err


MISTAKES = {
    "v_cvt_f32_u32_e32 v3, v0": ("v_cvt_f32_u23 v3, v0", "TFW0720", "did you mean v_cvt_f32_u32?"),
    "s[4:7], s[0:1], 0x0": ("s[5:8], s[0:1], 0x0", "TFW0721", "scale.s:11"),
    "lgkmcnt(0)": ("lgkmcnt(16)", "TFW0722", "lgkmcnt counts from 0 to 15"),
    "s_cbranch_execz .Lend": ("s_cbranch_execz .Lfin", "TFW0726", ".Lfin is not defined"),
    ".amdhsa_next_free_vgpr 4": (".amdhsa_next_free_vgpr 4000", "TFW0726", "from 0 to 512"),
    "gfx942\"": ("gfx90a\"", "TFW0726", "gfx90a"),
    ".kernarg_segment_size: 16": (".kernarg_segment_size: 16\n    .x: &a [*a]", "TFW0724", "aliases"),
    ".vgpr_count: 4": (".vgpr_count: 2020-01-01", "TFW0724", ".vgpr_count"),
    ".agpr_count: 0": (".agpr_count: 0\n    .y: !!set {a}", "TFW0724", "the value"),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_a_mistake_in_the_text_is_told_at_its_place(tilefw, right) -> None:
    wrong, code, words = MISTAKES[right]
    edited(right, wrong)
    for verb in (("asm", "scale.s", *TARGET), ("simulate", "scale.s", *LAUNCH)):
        status, out, err = tilefw(*verb)
        assert status == 1 and not out and f"error[{code}]" in err and words in err
    assert not Path("scale.hsaco").exists()


def test_nested_metadata_ends(tilefw) -> None:
    edited(".agpr_count: 0", ".agpr_count: 0\n    .deep: " + "[" * 40 + "]" * 40)
    assert "more than 32 deep" in tilefw("asm", "scale.s", *TARGET)[2]


def test_text_that_wants_gigabytes_is_refused(tilefw) -> None:
    many = "".join(f".section .data.{i}\n.zero 1 << 27\n" for i in range(100))
    Path("scale.s").write_text(many)
    status, _, err = tilefw("asm", "scale.s", *TARGET)
    assert status == 1 and "TFW0722" in err and "bytes together" in err


LAUNCHES = {
    "grid: [3]": ("grid: [3]\nkernel: skale", "TFW0327", "scale"),
    "block: [64]": ("block: [65]", "TFW0342", "at most 64 threads"),
    "block: [64]\n": ("", "TFW0342", "block"),
    "  - {value: 0.5, dtype: fp32}": ("", "TFW03", "3"),
    "shape: [150]": ("shape: [149]", "TFW0801", "out of bounds"),
}


@pytest.mark.parametrize("right", LAUNCHES)
def test_a_launch_that_does_not_fit_is_told(tilefw, right) -> None:
    wrong, code, words = LAUNCHES[right]
    edited(right, wrong, "scale.yaml")
    status, _, err = tilefw("simulate", "scale.s", *LAUNCH, "--out", "out.npz")
    assert status == 1 and f"error[{code}" in err and words in err
    assert not Path("out.npz").exists()


@on_each_chip
def test_too_much_memory_of_the_kernel_itself_is_told(tilefw, chip) -> None:
    most = chip.limits["shared_bytes"]
    written_for(chip)
    edited(".amdhsa_kernarg_size 16", f".amdhsa_kernarg_size 16\n.amdhsa_group_segment_fixed_size {most + 1}")
    status, _, err = tilefw("simulate", "scale.s", "--target", chip.target, "--launch", "scale.yaml")
    assert status == 1 and "TFW0344" in err and str(most) in err


@on_each_chip
def test_more_dynamic_memory_than_the_chip_has_is_told(tilefw, chip) -> None:
    most = chip.limits["shared_bytes"]
    written_for(chip)
    edited("grid: [3]\n", f"grid: [3]\ndynamic_shared: {most + 1}\n", "scale.yaml")
    status, _, err = tilefw("simulate", "scale.s", "--target", chip.target, "--launch", "scale.yaml")
    assert status == 1 and "TFW0344" in err and str(most + 1) in err


@pytest.mark.parametrize("verb", ["asm", "disasm", "simulate"])
def test_files_that_are_none_are_told(tilefw, verb) -> None:
    Path("zeros").write_bytes(bytes(100))
    Path("kernel.ptx").write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    more = LAUNCH if verb == "simulate" else TARGET
    for file, codes in {
        "missing": ["TFW0930"], ".": ["TFW0930"], "zeros": ["TFW0617", "TFW0724"], "kernel.ptx": ["TFW0726", "TFW0724"],
    }.items():
        status, out, err = tilefw(verb, file, *more)
        assert status == 1 and not out and any(f"error[{code}]" in err for code in codes), err


def test_the_other_direction_is_named(tilefw) -> None:
    assert tilefw("asm", "scale.s", *TARGET)[0] == 0
    assert "`tilefw disasm` reads binaries" in tilefw("asm", "scale.hsaco", *TARGET)[2]
    assert "TFW0724" in tilefw("disasm", "scale.s", *TARGET)[2]
    assert "--target names another chip" in tilefw("simulate", "scale.hsaco", "--launch", "scale.yaml")[2]
    assert "TFW0913" in tilefw("asm", "scale.s", *TARGET, "-o", "no/such/folder.hsaco")[2]
