"""LLVM IR compiled for gfx942 and run by the simulator: kernels of another compiler, made for one question each.

Names of the programs: TILEFW_LLC and TILEFW_LLD, else llc-22 and ld.lld-22 on PATH. Without them tests that ask are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from served import TARGET

from tilefw.api import Artifact, BufferView, Entry, LaunchOptions, Parameter
from tilefw.api.device import ALL_CHECKS
from tilefw_amd.simulate.device import Simulator

TIME_LIMIT = 120  # seconds
_HEADER = """target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
{declarations}
define amdgpu_kernel void @k({parameters}) #0 {{
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
{body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,256" "target-cpu"="gfx942" }}
"""


@cache
def tools() -> tuple[str | None, str | None]:
    return os.environ.get("TILEFW_LLC") or shutil.which("llc-22"), os.environ.get("TILEFW_LLD") or shutil.which("ld.lld-22")


needs_llc = pytest.mark.skipif(None in tools(), reason="no llc-22 and ld.lld-22 (apt-get install llvm-22 lld-22)")


def source(body: str, pointers: int, declarations: str = "") -> str:
    """A kernel k of `pointers` global pointers %p0, %p1, …, with its work-item's number in %tid."""
    parameters = ", ".join(f"ptr addrspace(1) %p{i}" for i in range(pointers))
    return _HEADER.format(declarations=declarations, parameters=parameters, body=body)


def compiled(text: str, folder: Any, optimisation: str = "2") -> bytes:
    """The code object that llc and ld.lld make of the IR."""
    llc, linker = tools()
    assert llc and linker, "ask tools first"
    (folder / "k.ll").write_text(text)
    command = [llc, "-mcpu=gfx942", f"-O{optimisation}", "-filetype=obj", "-o", "k.o", "k.ll"]
    for step in (command, [linker, "-shared", "-o", "k.hsaco", "k.o"]):
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        assert done.returncode == 0, done.stderr
    return (folder / "k.hsaco").read_bytes()


def listing(text: str, folder: Any, optimisation: str = "2") -> str:
    """The assembly of the IR."""
    llc, _ = tools()
    assert llc
    (folder / "k.ll").write_text(text)
    command = [llc, "-mcpu=gfx942", f"-O{optimisation}", "-o", "-", "k.ll"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT, check=True).stdout


def launch(
    binary: bytes, arrays: Sequence[np.ndarray], grid: int = 1, block: int = 64, checks: frozenset[str] = ALL_CHECKS, **options: Any
) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    """Run kernel k on copies of the arrays; gives them after it, and the findings."""
    parameters = tuple(Parameter(f"p{i}", "pointer", "uint8", 8 * i, 8, 8) for i in range(len(arrays)))
    device = Simulator(TARGET)
    handles = []
    for array in arrays:
        handles.append(device.allocate(array.nbytes))
        device.write(handles[-1], np.ascontiguousarray(array).view(np.uint8).data)
    artifact = Artifact("amd-cdna3", "hsaco", "", (Entry("k", parameters, (block, 1, 1)),), binary=binary)
    report = device.launch(
        device.load(artifact), "k", (grid, 1, 1), [BufferView(h) for h in handles],
        LaunchOptions(block=(block, 1, 1), checks=checks, **options),
    )
    after = [np.frombuffer(device.read(h, a.nbytes), a.dtype) for h, a in zip(handles, arrays, strict=True)]
    return after, report.findings
