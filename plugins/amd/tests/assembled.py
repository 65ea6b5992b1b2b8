"""Kernels written in assembly text, assembled by the plugin and run on its simulator.

A kernel gets a buffer of 32-bit words as its first argument. `PROLOGUE` loads the buffer's address to s[40:41] from the kernel
arguments at s[0:1], and puts 4 * (x of the work-item) into v40; `store(register)` writes a register of each lane there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from served import TARGET

from tilefw.api import ALL_CHECKS, Artifact, BufferView, Finding, LaunchOptions, Scalar
from tilefw_amd.backend import AmdBackend

BACKEND = AmdBackend(TARGET)
PROLOGUE = """
  s_load_dwordx2 s[40:41], s[0:1], 0x0
  v_and_b32 v40, 0x3ff, v0
  v_lshlrev_b32 v40, 2, v40
  s_waitcnt lgkmcnt(0)
"""

_TEXT = """
  .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
  .text
  .globl kernel
  .p2align 8
  .type kernel,@function
kernel:
{body}
.Lend:
  .size kernel, .Lend-kernel
{functions}
  .rodata
  .p2align 6
  .amdhsa_kernel kernel
    .amdhsa_next_free_vgpr 64
    .amdhsa_next_free_sgpr 64
    .amdhsa_accum_offset 64
    .amdhsa_kernarg_size {kernarg_size}
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
{directives}
  .end_amdhsa_kernel
  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: {kernarg_size}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 1024
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 64
    .args:
{arguments}
...
  .end_amdgpu_metadata
"""


@dataclass
class Outcome:
    """The buffer afterwards, and what the checks found."""

    words: np.ndarray
    findings: tuple[Finding, ...]


def text(body: str, directives: str = "", functions: str = "", hidden: Sequence[tuple[str, int, int]] = (), values: int = 0) -> str:
    """The file of a kernel. `hidden` arguments are (kind, offset, size); `values` is how many 32-bit values follow the buffer."""
    arguments = [("global_buffer", 0, 8), *(("by_value", 8 + 4 * i, 4) for i in range(values)), *hidden]
    return _TEXT.format(
        body=body, functions=functions,
        directives="\n".join(f"    .amdhsa_{line.strip()}" for line in directives.split(";") if line.strip()),
        kernarg_size=max(offset + size for _, offset, size in arguments),
        arguments="\n".join(f"      - {{.offset: {at}, .size: {size}, .value_kind: {kind}}}" for kind, at, size in arguments),
    )


def artifact(body: str, **how: Any) -> Artifact:
    return BACKEND.parse(text(body, **how), "kernel.s")


def run(
    body: str, *, words: int = 64, grid: tuple[int, ...] = (1,), block: tuple[int, int, int] = (64, 1, 1),
    values: Sequence[int] = (), dynamic_shared: int = 0, **how: Any,
) -> Outcome:
    """Launch a kernel on a buffer of zeros, with every check."""
    found = artifact(body, values=len(values), **how)
    device = BACKEND.simulator()
    buffer = device.allocate(4 * words, label="buffer")
    device.write(buffer, bytes(4 * words))
    arguments = [BufferView(buffer), *(Scalar(value, "int32") for value in values)]
    options = LaunchOptions(block=block, dynamic_shared=dynamic_shared, checks=ALL_CHECKS)
    report = device.launch(device.load(found), "kernel", grid, arguments, options)
    return Outcome(np.frombuffer(device.read(buffer, 4 * words), np.uint32), report.findings)


def store(register: str) -> str:
    """Store a register of each lane at its place, then end."""
    move = f"  v_mov_b32 v41, {register}\n" if not register.startswith("v") or register.startswith("vcc") else ""
    value = "v41" if move else register
    return f"{move}  global_store_dword v40, {value}, s[40:41]\n  s_endpgm\n"


def clean(body: str, **how: Any) -> np.ndarray:
    """The buffer after a launch in which no check found anything."""
    outcome = run(body, **how)
    assert outcome.findings == ()
    return outcome.words
