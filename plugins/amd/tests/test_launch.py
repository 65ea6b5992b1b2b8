"""A kernel called from Python runs on the simulator: compiled, assembled, loaded, launched, and copied back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.runtime.loader import find
from tilefw.runtime.module import Module

TARGET = "amd-cdna3"


@tilefw.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * factor, inside)


def test_a_call_runs_the_code_object() -> None:
    x = np.arange(777, dtype=np.float32)
    out = np.zeros_like(x)
    with tilefw.target(TARGET):
        result = scale[(tilefw.cdiv(x.size, 256),)](x, out, 3.0, x.size, BLOCK=256, checks="all")
    assert np.array_equal(out, 3 * x)
    assert result.diagnostics == ()


def test_an_artifact_without_bytes_is_assembled_when_it_is_loaded() -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
    artifact = tilefw.compile(scale, TARGET, signature, {"BLOCK": 256})
    x = np.arange(300, dtype=np.float32)
    out = np.zeros_like(x)
    Module(replace(artifact, binary=None), find(TARGET)).only().launch((2, 1, 1), [x, out, 2.0, x.size])
    assert np.array_equal(out, 2 * x)
