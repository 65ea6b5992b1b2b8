"""Whole kernels of Triton's on tinygrad's emulator and on our simulator: an independent judge of what the bytes do.

tinygrad (https://github.com/tinygrad/tinygrad) takes each instruction's meaning from the pseudocode of AMD's manuals and compiles
it for the CPU. It is not here by itself; with a checkout and clang, by whatever name,

    TILEFW_TINYGRAD=/path/to/tinygrad CC=clang python -m pytest plugins/amd/tests/hsaco_oracles/test_tinygrad.py

Figures of a run stand in bench/tinygrad.md. The kernels are such that the emulator of the checkout a9069c17 (22 August 2026) runs
as the manual says. It does not with `row_bcast` (it takes the first lane of a lane's own row, where the manual of CDNA3, "DPP",
says the last of the row before), which Triton's reductions use, nor with results of 32x32 matrix instructions (it gives
each half of a wave 16 consecutive rows; the manual, "Matrix Arithmetic Instructions", four in turn).
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from served import read

from hsaco_oracles.test_triton_hsaco import TRITON, item_of
from oracles import execute
from oracles.case import Number, Output
from oracles.chips import GFX942
from oracles.corpus import Item
from tilefw.api.integers import ceil_div
from tilefw_amd.code_object import ObjectKernel
from tilefw_amd.code_object.descriptor import PRELOAD_PROLOGUE_BYTES, USER_SGPRS
from tilefw_amd.simulate import arguments

CHECKOUT = os.environ.get("TILEFW_TINYGRAD", "")
_LDS_GRANULE = 512  # bytes, of GRANULATED_LDS_SIZE as the emulator reads it
SECONDS = 500

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="TILEFW_TINYGRAD names no checkout of tinygrad")


@pytest.mark.parametrize(("name", "exact"), [
    ("vector_add", True), ("gelu_tanh", False), ("matmul_f16_1_warp", False), ("grouped_matmul", False),
])
def test_the_emulator_computes_what_our_simulator_computes(name: str, exact: bool, tmp_path: Path) -> None:
    """Both are right by the case's own bounds. `exact`: and equal bit by bit; elsewhere approximate functions and the order of the
    matrix unit's sums are each one's own."""
    item = item_of(GFX942, TRITON[GFX942].case(name))
    ours, theirs = execute.run(item).outputs, _emulated(item, tmp_path)
    assert item.check(ours) == []
    assert item.check(theirs) == []
    assert ours.keys() == theirs.keys()
    if exact:
        assert all(ours[buffer].tobytes() == theirs[buffer].tobytes() for buffer in ours)


def _emulated(item: Item, folder: Path) -> dict[str, np.ndarray]:
    """The buffers after the launch on tinygrad's emulator."""
    given, out = folder / "launch.npz", folder / "out.npz"
    assert isinstance(item.code, bytes)
    found = read(item.code, item.name)
    assert not found.fixups
    kernel = next(k for k in found.kernels if k.name == item.entry)
    buffers = {
        name: np.zeros(a.shape, a.dtype) if isinstance(a, Output) else np.ascontiguousarray(a.array)
        for name, a in item.inputs.items() if not isinstance(a, Number)
    }
    image = np.frombuffer(bytes(found.image), np.uint8)
    np.savez(given, launch=json.dumps(_launch(item, kernel)), image=image, **buffers)
    command = [sys.executable, str(Path(__file__).with_name("tinygrad_emulator.py")), str(given), str(out)]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": CHECKOUT}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stderr
    with np.load(out) as stored:
        return {name: stored[name] for name in buffers}


def _launch(item: Item, kernel: ObjectKernel) -> dict[str, object]:
    """What `tinygrad_emulator` must know: where execution begins, the argument block, and the words of the user SGPRs behind its
    address."""
    descriptor = kernel.descriptor
    assert [name for name, _ in USER_SGPRS if getattr(descriptor, name)] == ["user_sgpr_kernarg_segment_ptr"]
    preloaded = range(descriptor.user_sgpr_kernarg_preload_length)
    prologue = PRELOAD_PROLOGUE_BYTES if preloaded else 0
    explicit = [a for a in kernel.metadata.arguments if not a.hidden]
    given = bytearray(max((a.offset + a.size for a in explicit), default=0))
    pointers = {}
    for argument, (name, value) in zip(explicit, item.inputs.items(), strict=False):  # null pointers of Triton's own follow
        if isinstance(value, Number):
            given[argument.offset : argument.offset + argument.size] = _number(value, argument.size)
        else:
            pointers[name] = argument.offset
    block = arguments.block(kernel, bytes(given), item.launch.grid, item.launch.block, item.launch.dynamic_shared)
    return {
        "entry": kernel.address + prologue, "size": kernel.size - prologue, "grid": item.launch.grid, "block": item.launch.block,
        "kernarg": block.hex(), "pointers": pointers, "scratch": descriptor.private_segment_fixed_size,
        "preloaded": [descriptor.user_sgpr_kernarg_preload_offset + i for i in preloaded], "rsrc2": _rsrc2(item, kernel),
    }


def _number(number: Number, size: int) -> bytes:
    if isinstance(number.value, int):
        return number.value.to_bytes(size, "little", signed=True)
    assert number.dtype == "fp32"
    return struct.pack("<f", number.value)


def _rsrc2(item: Item, kernel: ObjectKernel) -> int:
    """compute_pgm_rsrc2 as a runtime completes it (AMDGPUUsage): user SGPRs, workgroup ids, all of the launch's LDS."""
    descriptor = kernel.descriptor
    shared = descriptor.group_segment_fixed_size + item.launch.dynamic_shared
    word = descriptor.user_sgpr_count << 1 | ceil_div(shared, _LDS_GRANULE) << 15
    for axis, letter in enumerate("xyz"):
        word |= getattr(descriptor, f"system_sgpr_workgroup_id_{letter}") << 7 + axis
    return word
