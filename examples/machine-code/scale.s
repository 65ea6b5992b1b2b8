; y[i] = a * y[i] + i for i < n, one lane an element: a whole gfx942 kernel by hand.
; s[0:1] is the address of the arguments (y, n, a), s2 the workgroup's number, v0 the lane's number in it.

	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.amdhsa_code_object_version 5
	.text
	.globl scale
	.p2align 8
	.type scale,@function
scale:
	s_load_dwordx4 s[4:7], s[0:1], 0x0       ; y in s[4:5], n in s6, a in s7
	v_lshl_add_u32 v0, s2, 6, v0             ; i: workgroups of 64 lanes
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc, s6, v0
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz .Lend
	v_lshlrev_b32_e32 v1, 2, v0
	global_load_dword v2, v1, s[4:5]
	v_cvt_f32_u32_e32 v3, v0
	s_waitcnt vmcnt(0)                       ; without it the next instruction reads v2 too early, and the simulator says so
	v_fmac_f32_e32 v3, s7, v2
	global_store_dword v1, v3, s[4:5]
.Lend:
	s_endpgm
.Lscale_end:
	.size scale, .Lscale_end-scale

	.rodata
	.p2align 6
	.amdhsa_kernel scale
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 16
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 10
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel

	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: scale
    .symbol: scale.kd
    .args:
      - {.name: y, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n, .offset: 8, .size: 4, .value_kind: by_value}
      - {.name: a, .offset: 12, .size: 4, .value_kind: by_value}
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .max_flat_workgroup_size: 64
    .sgpr_count: 16
    .vgpr_count: 4
    .agpr_count: 0
...
	.end_amdgpu_metadata
