"""Kernel descriptors: directives make the 64 bytes that llvm-mc makes of them, and come back as they were."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import CHIPS

from tilefw_amd.chips import Chip
from tilefw_amd.code_object import descriptor, directives, elf
from tilefw_amd.code_object.descriptor import FIELD
from tilefw_amd.code_object.directives import DirectiveError

MC = shutil.which("llvm-mc-22")
REQUIRED = {"next_free_vgpr": 32, "next_free_sgpr": 20, "accum_offset": 16}
CASES = [
    {}, {"next_free_vgpr": 512, "next_free_sgpr": 102, "accum_offset": 256},
    {"next_free_vgpr": 0, "next_free_sgpr": 0, "accum_offset": 4},
    {"user_sgpr_dispatch_ptr": 1, "user_sgpr_queue_ptr": 1, "user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_dispatch_id": 1},
    {"user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_kernarg_preload_length": 12, "user_sgpr_kernarg_preload_offset": 2},
    {"user_sgpr_count": 14, "user_sgpr_kernarg_segment_ptr": 1}, {"system_sgpr_workgroup_id_x": 0, "system_sgpr_workgroup_id_y": 1},
    {"system_vgpr_workitem_id": 2, "system_sgpr_workgroup_id_z": 1, "system_sgpr_workgroup_info": 1},
    {"enable_private_segment": 1, "private_segment_fixed_size": 144, "uses_dynamic_stack": 1},
    {"group_segment_fixed_size": 65536, "kernarg_size": 48, "tg_split": 1},
    {"float_round_mode_32": 3, "float_round_mode_16_64": 1, "float_denorm_mode_32": 3, "float_denorm_mode_16_64": 0},
    {"dx10_clamp": 0, "ieee_mode": 0, "fp16_overflow": 1},
    dict.fromkeys((name for name in directives.NAMES if name.startswith("exception_")), 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: ", ".join(case) or "defaults")
@pytest.mark.parametrize("chip", CHIPS, ids=str)
def test_directives_make_what_llvm_makes_of_them(chip: Chip, case: dict[str, int], tmp_path: Path) -> None:
    if MC is None:
        pytest.skip("LLVM 22 (llvm-mc-22) is not installed")
    said = {**REQUIRED, **case}
    block = "".join(f".amdhsa_{name} {value}\n" for name, value in said.items())
    code = ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\ns_endpgm\n.rodata\n.p2align 6\n"
    (tmp_path / "k.s").write_text(f"{code}.amdhsa_kernel k\n{block}.end_amdhsa_kernel\n")
    command = [MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip.name}", "-filetype=obj", "-o", "k.o", "k.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    section = elf.Elf((tmp_path / "k.o").read_bytes(), "k.o").section(".rodata")
    assert section is not None
    assert descriptor.encode(directives.fields(said)) == section.data


@pytest.mark.parametrize(("case", "named"), [
    ({"next_free_vgpr": 513}, "next_free_vgpr"), ({"accum_offset": 6}, "accum_offset"), ({"dx10_clamp": 2}, "dx10_clamp"),
    ({"user_sgpr_count": 1, "user_sgpr_kernarg_segment_ptr": 1}, "user_sgpr_count"),
    ({"user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_kernarg_preload_length": 15}, "user_sgpr_count"),
    ({"wavefront_size32": 1}, "wavefront_size32"), ({"shared_vgpr_count": 1}, "shared_vgpr_count"),
])
def test_what_does_not_fit_is_refused_by_name(case: dict[str, int], named: str) -> None:
    with pytest.raises(DirectiveError) as caught:
        directives.fields({**REQUIRED, **case})
    assert caught.value.name == named


def test_a_missing_count_is_refused() -> None:
    with pytest.raises(DirectiveError, match="accum_offset is missing"):
        directives.fields({"next_free_vgpr": 1, "next_free_sgpr": 1})


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({}, optional={
    name: st.integers(0, (1 << FIELD[name].width) - 1) for name in directives.NAMES if name in FIELD and "user_sgpr" not in name
}), st.integers(1, 512), st.integers(0, 102), st.integers(1, 64))
def test_a_descriptor_survives_its_directives(said: dict[str, int], vgprs: int, sgprs: int, accum: int) -> None:
    counts = {"next_free_vgpr": vgprs, "next_free_sgpr": sgprs, "accum_offset": 4 * accum}
    made = descriptor.decode(descriptor.encode(directives.fields({**said, **counts})), "k")
    body = [line.split() for line in directives.lines("k", made)][1:-1]
    assert directives.fields({name.removeprefix(".amdhsa_"): int(value) for name, value in body}) == made
