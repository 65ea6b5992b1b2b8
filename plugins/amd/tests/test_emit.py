"""Machine functions with physical registers become text that LLVM assembles, and a code object that runs with its arguments."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from served import CHIPS, TARGETS

from cdna3.llvm import llvm_mc, needs_llvm
from tilefw.api import ALL_CHECKS, Artifact, BufferView, CompileOptions, LaunchOptions, Parameter, Place, Scalar
from tilefw.api.machine import Function, FunctionAttributes, Inst
from tilefw.api.simt import entry_of
from tilefw_amd import abi
from tilefw_amd.backend import AmdBackend
from tilefw_amd.emit import emit

BACKENDS = tuple(map(AmdBackend, TARGETS))
on_each_chip = pytest.mark.parametrize("backend", BACKENDS, ids=map(str, CHIPS))
PARAMETERS = (
    Parameter("x", "pointer", "fp32", offset=0, size=8, alignment=8, readonly=True),
    Parameter("out", "pointer", "fp32", offset=8, size=8, alignment=8, readonly=False),
    Parameter("by", "scalar", "fp32", offset=16, size=4, alignment=4, readonly=False),
)


def scaled(target: str) -> Function:
    """out[i] = by * x[i] + the number of workgroups, 64 elements a workgroup, in a loop of one turn."""
    function = Function("scaled", target, FunctionAttributes((64, 1, 1), PARAMETERS))
    v, s = function.file("v", 256), function.file("s", 128)
    counts = abi.workgroup_count_offset(PARAMETERS, 0)
    place = Place("/tmp/scaled.py", 7, 3)
    vgpr, sgpr = (lambda i, n=1: v.slice(i, n)), (lambda i, n=1: s.slice(i, n))
    function.block("entry").insts += [
        Inst("s_load_dwordx4", [sgpr(8, 4)], [sgpr(0, 2), 0], place=place),
        Inst("s_load_dword", [sgpr(12)], [sgpr(0, 2), 16], place=place),
        Inst("s_load_dword", [sgpr(13)], [sgpr(0, 2), counts], place=place),
        Inst("v_lshl_add_u32", [vgpr(0)], [sgpr(abi.WORKGROUP_IDS[0]), 6, vgpr(0)]),
        Inst("v_lshlrev_b32", [vgpr(1)], [2, vgpr(0)]),
        Inst("s_waitcnt", [], ["lgkmcnt(0)"]),
        Inst("s_mov_b32", [sgpr(14)], [1]),
        Inst("v_cvt_f32_u32", [vgpr(3)], [sgpr(13)]),
    ]
    function.block("loop").insts += [
        Inst("global_load_dword", [vgpr(2)], [vgpr(1), sgpr(8, 2)], place=Place("/tmp/scaled.py", 9, 5)),
        Inst("s_sub_u32", [sgpr(14)], [sgpr(14), 1]),
        Inst("s_cmp_lg_u32", [], [sgpr(14), 0]),
        Inst("s_cbranch_scc1", targets=("loop",)),
        Inst("s_waitcnt", [], ["vmcnt(0)"]),
        Inst("v_fma_f32", [vgpr(2)], [vgpr(2), sgpr(12), vgpr(3)], place=Place("/tmp/scaled.py", 10, 5)),
        Inst("global_store_dword", [], [vgpr(1), vgpr(2), sgpr(10, 2)]),
        Inst("s_endpgm"),
    ]
    return function


def artifact(backend: AmdBackend) -> Artifact:
    function = scaled(backend.target.name)
    text = emit([function], isa=backend.isa)
    made = Artifact(backend.target.name, "hsaco", text, (entry_of(function),), resources=backend.resources([function]))
    return backend.assemble(made, CompileOptions())


@on_each_chip
def test_the_code_object_runs_with_the_kernel_arguments(backend):
    made = artifact(backend)
    device = backend.simulator()
    x = np.arange(192, dtype=np.float32)
    buffers = [device.allocate(x.nbytes) for _ in range(2)]
    device.write(buffers[0], x)
    module = device.load(made)
    arguments = [*map(BufferView, buffers), Scalar(0.5, "fp32")]
    report = device.launch(module, "scaled", [3], arguments, LaunchOptions(checks=ALL_CHECKS))
    assert not report.findings
    assert np.array_equal(np.frombuffer(device.read(buffers[1], x.nbytes), np.float32), 0.5 * x + 3)


@on_each_chip
def test_findings_name_the_source_line(backend):
    device = backend.simulator()
    buffers = [device.allocate(256) for _ in range(2)]
    module = device.load(artifact(backend))
    arguments = [*map(BufferView, buffers), Scalar(0.5, "fp32")]
    report = device.launch(module, "scaled", [2], arguments, LaunchOptions(checks=ALL_CHECKS))
    out_of_bounds = next(f for f in report.findings if f.check == "bounds")
    assert out_of_bounds.source is not None
    assert (out_of_bounds.source.file, out_of_bounds.source.line) == ("/tmp/scaled.py", 9)


@on_each_chip
def test_resources_are_counted_from_the_code(backend):
    used = backend.resources([scaled(backend.target.name)])
    assert used.registers == {"vector": 4, "accumulation": 0, "scalar": 15}
    assert used.instructions == {
        "matrix": 0, "vector": 4, "scalar": 3, "scalar memory": 3, "memory": 2, "lds": 0, "control": 2, "barriers": 0, "waits": 2,
        "pauses": 0,
    }
    assert (used.spills, used.shared_bytes, used.scratch_bytes, used.occupancy) == (0, 0, 0, 1.0)


@needs_llvm
@on_each_chip
def test_llvm_takes_the_text(backend):
    made = artifact(backend)
    command = [llvm_mc(), "-triple=amdgcn-amd-amdhsa", f"-mcpu={backend.isa.chip.name}", "-filetype=obj", "-o", "/dev/null"]
    done = subprocess.run(command, input=made.text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
