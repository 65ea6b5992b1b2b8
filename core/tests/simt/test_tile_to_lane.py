"""Lowered to lanes, a program computes what the reference interpreter says, on any chip: with and without shuffles or copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, PLAIN, WIDE
from random_tiles import Tiles, random_tiles

from tilefw.api.dtypes import dtype
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt.description import Machine
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import run as run_lanes
from tilefw.tile.interpret import run
from tilefw.tile.refmemory import RefMemory
from tilefw.tile.text import parse

CHIPS = (
    replace(PLAIN, shared_bytes=1 << 18, copy_bytes=(4, 8, 16)), replace(BLOCKS, shared_bytes=1 << 18, copy_bytes=(4, 8, 16)),
    replace(WIDE, shared_bytes=1 << 18, shuffles=True, copy_bytes=(4,)),
)


def agree(program: Tiles, machine: Machine, simplify: bool) -> None:
    """Run on both, and compare every array bit for bit."""
    text = program.text()
    memory = RefMemory()
    buffers = {name: memory.of_array(array, name) for name, array in program.arrays.items()}
    report = run(parse(text), None, (1,), [*buffers.values(), *program.scalars.values()], memory=memory)
    assert not [f for f in report.findings if f.severity == "error"], (report.findings, text)
    module = parse(text)
    passes = [*(default_passes() if simplify else ()), *lane_passes(machine, 1)]
    PassManager(passes, verify_each=True).run(module)
    arrays = {name: array.copy() for name, array in program.arrays.items()}
    run_lanes(next(iter(module.body.block.ops)), [*arrays.values(), *program.scalars.values()], (1,), machine)
    for name, buffer in buffers.items():
        wanted = buffer.read_reference(dtype("int32"))
        known = np.ones(arrays[name].shape, np.bool_) if wanted.free is None else ~wanted.free
        np.testing.assert_array_equal(arrays[name][known], wanted.x[known], err_msg=f"{name}\n{text}")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(CHIPS), st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_random_tiles_agree_with_the_reference(seed, chip, warps, simplify):
    agree(random_tiles(seed), Machine(chip, warps), simplify)
