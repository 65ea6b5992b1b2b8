"""Machine code with lanes that part: kernels by hand, for tile code has no branches of lanes. See bench/planted_causes.py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tilefw.cli.simulate import load
from tilefw.kernels.launchable import launchable_file
from tilefw.runtime import config, launchfile
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.recording import profile_of, record

if TYPE_CHECKING:
    from tilefw.timing.launch_profile import LaunchProfile

EACH = 4
"""Workgroups for each processor."""
WAYS = {"two ways": 64, "more instructions": 128, "many instructions": 256}
"""By name: multiplications of each of two ways."""


def profiled_code(name: str, target: str, apart: int) -> LaunchProfile:
    """Lanes go by the bit of their number that is worth `apart`: neighbours part where it is 1, waves where it is 64."""
    count = WAYS[name]
    groups = EACH * find_target(target).backend.timing().processors
    with tempfile.TemporaryDirectory() as folder:
        nvidia = target.startswith("nvidia")
        path, launch = Path(folder) / ("part.ptx" if nvidia else "part.s"), Path(folder) / "launch.yaml"
        path.write_text(ptx(count, apart) if nvidia else gfx942(count, apart))
        array = f"{{out: y, shape: [{groups * 256}], dtype: float32, fill: 2}}"
        launch.write_text(f"grid: [{groups}]\nblock: [256]\nargs:\n  - {array}\n")
        module = load(str(path), target)
        made = launchable_file(module, launchfile.read(str(launch)), config.resolve(config.settings(target)))
        return profile_of(record(made, 64))


def ptx(count: int, apart: int) -> str:
    first, second = ("\n".join(f"  {op}.rn.f32 %f1, %f1, {value}{third};" for _ in range(count)) for op, value, third in (
        ("fma", "0f3F800001", ", %f1"), ("mul", "0f3F800003", "")))
    return f""".version 7.0
.target sm_80
.address_size 64
.visible .entry part(.param .u64 y)
.reqntid 256, 1, 1
{{
  .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .f32 %f<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.s32 %r3, %r2, 256, %r1;
  mul.wide.s32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  and.b32 %r4, %r1, {apart};
  setp.ne.s32 %p1, %r4, 0;
  @%p1 bra OTHER;
{first}
  bra JOIN;
OTHER:
{second}
JOIN:
  st.global.f32 [%rd3], %f1;
  ret;
}}
"""


def gfx942(count: int, apart: int) -> str:
    first, second = ("\n".join([f"  v_{op}_f32_e32 v2, v2, v2"] * count) for op in ("add", "mul"))
    return f"""
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.globl part
	.p2align 8
	.type part,@function
part:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshl_add_u32 v1, s2, 8, v0
	v_lshlrev_b32_e32 v1, 2, v1
	v_and_b32_e32 v3, {apart}, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	v_cmp_eq_u32_e32 vcc, 0, v3
	s_waitcnt vmcnt(0)
	s_mov_b64 s[10:11], exec
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz .Lother
{first}
.Lother:
	s_andn2_b64 exec, s[10:11], vcc
	s_cbranch_execz .Ljoin
{second}
.Ljoin:
	s_mov_b64 exec, s[10:11]
	global_store_dword v1, v2, s[4:5]
	s_endpgm
.Lpart_end:
	.size part, .Lpart_end-part

	.rodata
	.p2align 6
	.amdhsa_kernel part
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 12
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel

	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: part
    .symbol: part.kd
    .args:
      - {{.name: y, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .max_flat_workgroup_size: 256
    .sgpr_count: 18
    .vgpr_count: 4
    .agpr_count: 0
...
	.end_amdgpu_metadata
"""
