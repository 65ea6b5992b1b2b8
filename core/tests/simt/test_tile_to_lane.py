"""Lowered to lanes, a program computes what the reference interpreter says, on any chip: with and without shuffles or copies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import BLOCKS, PLAIN, WIDE
from random_tiles import Tiles, random_tiles

from tilefw.api.dtypes import dtype
from tilefw.api.integers import log2
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.simt.assign.accesses import Accesses
from tilefw.simt.description import LaneMachine
from tilefw.simt.layout import LinearLayout, f2
from tilefw.simt.passes import lane_passes
from tilefw.testing.lane_interpreter import run as run_lanes
from tilefw.tile.reference.interpret import run
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.text.module import parse

CHIPS = (
    replace(PLAIN, shared_bytes=1 << 18, copy_bytes=(4, 8, 16)), replace(BLOCKS, shared_bytes=1 << 18, copy_bytes=(4, 8, 16)),
    replace(WIDE, shared_bytes=1 << 18, shuffles=True, copy_bytes=(4,)),
)


def agree(program: Tiles, machine: LaneMachine, simplify: bool) -> None:
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
def test_random_tiles_agree_with_the_reference(seed, chip, waves, simplify):
    agree(random_tiles(seed), LaneMachine(chip, waves), simplify)


@pytest.mark.parametrize("seed", range(60))
def test_accesses_take_any_linear_layout(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases that share bits make an index a XOR instead of a sum: addresses, masks and widths must follow."""
    rng = random.Random(seed)

    def scrambled(self: Accesses, shape: tuple[int, ...], order: Sequence[int], width: int) -> LinearLayout:
        return _scrambled(rng, shape, self.machine)

    monkeypatch.setattr(Accesses, "blocked", scrambled)
    chip = replace(rng.choice(CHIPS), copy_bytes=())
    program = random_tiles(seed)
    if "tile.copy" not in program.text():
        agree(program, LaneMachine(chip, rng.choice([1, 2, 4])), rng.random() < 0.5)


def _scrambled(rng: random.Random, shape: tuple[int, ...], machine: LaneMachine) -> LinearLayout:
    rank, lanes, waves = sum(map(log2, shape)), log2(machine.lanes), log2(machine.waves)
    basis = [1 << i for i in range(rank)]
    low = rng.randint(0, min(2, rank))  # some keep a run of registers, so that accesses can be wide
    moved = basis[low:]
    rng.shuffle(moved)
    basis[low:] = moved
    for _ in range(rng.randint(0, rank)):
        a, b = rng.randrange(rank), rng.randrange(rank)
        if a != b and a >= low:
            basis[a] ^= basis[b]
    threads = basis[low : low + lanes + waves]
    threads += [f2.apply(basis, rng.randrange(1 << rank)) if rng.random() < 0.5 else 0 for _ in range(lanes + waves - len(threads))]
    registers = (*basis[:low], *basis[low + lanes + waves :])
    layout = LinearLayout(shape, registers, tuple(threads[:lanes]), tuple(threads[lanes:]))
    assert layout.covers
    return layout
