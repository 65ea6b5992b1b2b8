"""A kernel called from Python runs on the simulator: compiled, assembled, loaded, launched, and copied back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl
from tilefw.api import ALL_CHECKS, LaunchOptions, Scalar
from tilefw.runtime.module import Module
from tilefw.runtime.plugins.loader import find_target
from tilefw_amd.simulate.device import Simulator

on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])


@tilefw.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * factor, inside)


@on_each_chip
def test_a_call_runs_the_code_object(target: str) -> None:
    x = np.arange(777, dtype=np.float32)
    out = np.zeros_like(x)
    with tilefw.target(target):
        result = scale[(tilefw.cdiv(x.size, 256),)](x, out, 3.0, x.size, BLOCK=256, checks="all")
    assert np.array_equal(out, 3 * x)
    assert result.diagnostics == ()


@on_each_chip
def test_an_artifact_without_bytes_is_assembled_when_it_is_loaded(target: str) -> None:
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "factor": "fp32", "n": "i32"}
    artifact = tilefw.compile(scale, target, signature, {"BLOCK": 256})
    x = np.arange(300, dtype=np.float32)
    out = np.zeros_like(x)
    Module(replace(artifact, binary=None), find_target(target)).only().launch((2, 1, 1), [x, out, 2.0, x.size])
    assert np.array_equal(out, 2 * x)


@tilefw.jit
def count(counters_ptr, out_ptr, BLOCK: tl.constexpr):
    counter = counters_ptr + tl.program_id(0)
    old = tl.load(counter)
    tl.store(counter, old + 1)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), old + tl.arange(0, BLOCK))


@tilefw.jit
def scale_in_place(x_ptr, factor, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * factor)


@on_each_chip
def test_what_waves_load_together_is_not_stored_to_before_all_have_it(target: str) -> None:
    counters, out = np.arange(3, dtype=np.int32), np.zeros((3, 512), np.int32)
    x = np.arange(32, dtype=np.float32)
    with tilefw.target(target, checks="all"):
        count[(3,)](counters, out, BLOCK=512, num_warps=4)
        scale_in_place[(1,)](x, 3.0, BLOCK=32, num_warps=4)
    assert np.array_equal(counters, [1, 2, 3])
    assert np.array_equal(out, np.arange(3)[:, None] + np.arange(512))
    assert np.array_equal(x, 3 * np.arange(32))


@tilefw.jit
def store_at(address, BLOCK: tl.constexpr):
    tl.store(address.to(tl.pointer_type(tl.int32)) + tl.arange(0, BLOCK), 1)


@on_each_chip
def test_a_store_into_the_code_is_reported(target: str) -> None:
    """A wild pointer that meets the code object, which is the first in memory, finds no variable there that anybody may write."""
    made = tilefw.compile(store_at, target, {"address": "i64"}, {"BLOCK": 1})
    device = Simulator(find_target(target).info)  # whose memory has no other code
    module = device.load(made)
    for offset in (0, 4096):
        arguments = [Scalar(device.chip.first_address + offset, "int64")]
        report = device.launch(module, made.entries[0].name, [1], arguments, LaunchOptions(checks=ALL_CHECKS))
        assert [finding.message for finding in report.findings] == ["write to code object, which is read-only"]
