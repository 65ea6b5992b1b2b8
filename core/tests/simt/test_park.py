"""Operands that a loop does not change go to shared memory just where registers would not hold them, and mean the same there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_up import BLOCKS

from tilefw.passes.manager import PassManager
from tilefw.simt.description import ChipDescription, LaneMachine
from tilefw.simt.software_pipeline.invariants_to_shared import InvariantsToShared
from tilefw.tile.reference.interpret import run
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.text.module import parse

# out = sum over i of (a · b_i), a of 32 x {k}, twice; `a` and `same` come from outside of both loops.
KERNEL = """
func.func @k(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %out: !tile.ptr<f32>) {{
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %c3 = tile.constant 3 : i32
  %size = tile.constant {size} : i32
  %zero = tile.constant 0.0 : tensor<32x16xf32>
  %ones = tile.constant 1.0 : tensor<32x{k}xf16>
  %ka = tile.iota 0 to {a}
  %kat = tile.reshape %ka : tensor<{a}xi32> to tensor<32x{k}xi32>
  %kb = tile.iota 0 to {size}
  %kbt = tile.reshape %kb : tensor<{size}xi32> to tensor<{k}x16xi32>
  %ko = tile.iota 0 to 512
  %kot = tile.reshape %ko : tensor<512xi32> to tensor<32x16xi32>
  %same = tile.load %a[%kat] : !tile.ptr<f16>[tensor<32x{k}xi32>]
  %first, %p1 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero, %p = %b) -> (tensor<32x16xf32>, !tile.ptr<f16>) : i32 {{
    %x = tile.load %p[%kbt] : !tile.ptr<f16>[tensor<{k}x16xi32>]
    %s = tile.dot %same, %x, %acc : tensor<32x{k}xf16>, tensor<{k}x16xf16>, tensor<32x16xf32>
    %t = tile.dot %ones, %x, %s : tensor<32x{k}xf16>, tensor<{k}x16xf16>, tensor<32x16xf32>
    %next = tile.addptr %p, %size : !tile.ptr<f16>, i32
    scf.yield %t, %next : tensor<32x16xf32>, !tile.ptr<f16>
  }}
  %second = scf.for %j = %c0 to %c3 step %c1 iter_args(%acc2 = %first) -> (tensor<32x16xf32>) : i32 {{
    %y = tile.load %b[%kbt] : !tile.ptr<f16>[tensor<{k}x16xi32>]
    %u = tile.dot %same, %y, %acc2 : tensor<32x{k}xf16>, tensor<{k}x16xf16>, tensor<32x16xf32>
    scf.yield %u : tensor<32x16xf32>
  }}
  tile.store %out[%kot], %second : !tile.ptr<f32>[tensor<32x16xi32>]
  func.return
}}
"""


def parked(k: int, chip: ChipDescription, waves: int = 1):
    module = parse(KERNEL.format(k=k, a=32 * k, size=16 * k))
    PassManager([InvariantsToShared(LaneMachine(chip, waves))], verify_each=True).run(module)
    return module


def tight(registers: int, shared_bytes: int = 1 << 16) -> ChipDescription:
    return dataclasses.replace(BLOCKS, registers=registers, shared_bytes=shared_bytes)


def test_an_operand_moves_once_for_all_loops_that_lack_registers():
    # A wave holds 32 x 128 f16 of `same` in 64 registers of a lane, the sums in 16.
    text = str(parked(128, tight(96)))
    assert text.count("tile.alloc_shared") == text.count("tile.store_shared") == 1
    assert text.count("tile.load_shared") == 2
    assert text.index("tile.store_shared") < text.index("scf.for")


@pytest.mark.parametrize("chip", [tight(255), tight(0), tight(96, 0), tight(96, 4096)], ids=["ample", "unknown", "none", "small"])
def test_nothing_moves_where_registers_do_or_shared_memory_does_not(chip):
    assert "alloc_shared" not in str(parked(128, chip))


def test_more_waves_hold_more():
    assert "alloc_shared" not in str(parked(128, tight(96), waves=4))


def test_the_meaning_stays():
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, n).astype(np.float16) for n in (32 * 128, 3 * 128 * 16))
    left, blocks = a.reshape(32, 128).astype(np.float64), b.reshape(3, 128, 16).astype(np.float64)
    expected = sum((left + 1) @ x for x in blocks) + 3 * left @ blocks[0]
    for chip in (tight(0), tight(64)):
        np.testing.assert_array_equal(outcome(parked(128, chip), a, b), expected)


def outcome(module, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What the reference interpreter stores; it must have nothing to report."""
    memory = RefMemory()
    buffers = [memory.of_array(x) for x in (a, b, np.zeros(512, np.float32))]
    report = run(module, None, (1,), buffers, memory=memory)
    assert not report.findings
    return buffers[2].read_reference().x.reshape(32, 16)
