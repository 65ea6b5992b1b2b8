"""A struct by value reaches the kernel as its bytes, whatever gives them; a number does not."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tilefw
from tilefw.api import LaunchError
from tilefw.cli.main import main

TARGET = "amd-cdna3"
# out[0], out[1] = s.first, s.third of struct {int first; double second; int third;}
TEXT = """
  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl kernel
  .p2align 8
  .type kernel,@function
kernel:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_load_dword s6, s[0:1], 0x8
  s_load_dword s7, s[0:1], 0x18
  v_mov_b32 v0, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s6
  v_mov_b32 v3, s7
  s_mov_b64 exec, 1
  global_store_dwordx2 v0, v[2:3], s[4:5]
  s_endpgm
.Lend:
  .size kernel, .Lend-kernel
  .rodata
  .p2align 6
  .amdhsa_kernel kernel
    .amdhsa_next_free_vgpr 8
    .amdhsa_next_free_sgpr 16
    .amdhsa_accum_offset 8
    .amdhsa_kernarg_size 32
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .end_amdhsa_kernel
  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 64
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: s, .offset: 8, .size: 24, .value_kind: by_value}
...
  .end_amdgpu_metadata
"""


class S(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int32), ("second", ctypes.c_double), ("third", ctypes.c_int32))


FIELDS = np.dtype([("first", "i4"), ("second", "f8"), ("third", "i4")], align=True)
VALUES = {"ctypes": S(5, 0.5, -7), "bytes": bytes(S(5, 0.5, -7)), "NumPy": np.array((5, 0.5, -7), FIELDS)[()]}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_struct_is_given_in_python(value: object) -> None:
    out = np.zeros(2, np.int32)
    kernel = tilefw.load(TEXT.encode(), TARGET)["kernel"]
    assert kernel.entry.parameters[1].kind == "struct"
    kernel.launch(1, [out, value], block=64, checks="all")
    assert out.tolist() == [5, -7]


@pytest.mark.parametrize("value", [5, 2.5, None, bytes(23), np.zeros(2)])
def test_what_is_no_struct_of_its_size_is_refused(value: object) -> None:
    with pytest.raises(LaunchError, match="24 bytes"):
        tilefw.load(TEXT.encode(), TARGET)["kernel"].launch(1, [np.zeros(2, np.int32), value], block=64)


@pytest.mark.parametrize("struct", [
    "struct: [{value: 5, dtype: i32}, {value: 0.5, dtype: fp64}, {value: -7, dtype: i32}]",
    f"bytes: {bytes(S(5, 0.5, -7)).hex(' ')}",
])
def test_a_struct_is_given_in_a_launch_file(struct: str, tmp_path, capsys) -> None:
    (tmp_path / "k.s").write_text(TEXT)
    (tmp_path / "k.yaml").write_text(f"grid: [1]\nblock: [64]\nargs:\n  - {{out: o, shape: [2], dtype: i32}}\n  - {{{struct}}}\n")
    words = ["simulate", tmp_path / "k.s", "--target", TARGET, "--launch", tmp_path / "k.yaml", "--out", tmp_path / "o.npz"]
    assert main([str(word) for word in words]) == 0
    assert np.load(tmp_path / "o.npz")["o"].tolist() == [5, -7]
    capsys.readouterr()
