"""Chips whose counters are apart by anything within an epoch meet at one cycle: results, cycles and words are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_programs import host_arrays, host_buffers
from hand_made import MACHINE, allocation, counted, matrix, program

from tilefw_spatial.check import check
from tilefw_spatial.program import HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import simulate
from tilefw_spatial.tick import simulate as simulate_slowly

CHIPS = 4
ALIGNING = (QueueInst("NOP", imm=1), QueueInst("DSK"), QueueInst("NTFY"), QueueInst("NOP", imm=MACHINE.delays["notify"] - 1))


def ring() -> SpatialProgram:
    """Each chip sends a vector of its own to the next one; cycles count from where all have met."""
    chips, tensors = [], []
    for chip in range(CHIPS):
        after, before = (chip + 1) % CHIPS, (chip - 1) % CHIPS
        leaves, arrives, at = 100, 100 + MACHINE.delays["link"], MACHINE.position
        chips.append({
            "MEM.E0": [(leaves - 5 - at("MEM.E0") + at("SXM.W"), QueueInst("RD", "", 1, dst=32))],
            f"C2C.{MACHINE.link(chip, after)}": [(leaves, QueueInst("SND", a=32))],
            f"C2C.{MACHINE.link(chip, before)}": [(arrives, QueueInst("RCV", dst=3))],
            "MEM.W7": [(arrives + at("MEM.W7") - at("SXM.W") - 2, QueueInst("WR", a=3))], "C2C.7": [],
        })
        own, theirs = (replace(matrix(number, 1), base=320 * place) for number, place in ((0, chip), (1, before)))
        tensors.append(HostTensor(f"x{chip}", "in", allocation("uint8", 1, [("MEM.E0", 0, 0, chip)]), (own,)))
        tensors.append(HostTensor(f"z{chip}", "out", allocation("uint8", 1, [("MEM.W7", 0, 0, chip)]), (theirs,)))
    return program(chips, tensors, [("x", "uint8"), ("z", "uint8")])


def begun(made: SpatialProgram, late: tuple[int, ...]) -> SpatialProgram:
    """The program on chips that begin so many cycles after the first could: one queue aligns, the others wait for its notice."""
    chips = []
    for code, cycles in zip(made.chips, late, strict=True):
        apart = (QueueInst("NOP", imm=cycles),) if cycles else ()
        first = {name: ALIGNING if name == "C2C.7" else (QueueInst("SYNC"),) for name in code.queues}
        queues = {name: (*apart, *first[name], *words) for name, words in code.queues.items()}
        chips.append(replace(code, queues=queues))
    return counted(replace(made, chips=tuple(chips)))


def test_every_way_to_begin_within_an_epoch_is_the_same() -> None:
    """Each chip begins once at every cycle of the epoch, the others at any of theirs."""
    made, x = ring(), np.random.default_rng(0).integers(0, 256, CHIPS * 320).astype(np.uint8)
    cycles = begun(made, (0,) * CHIPS).cycles
    assert cycles == MACHINE.epoch + MACHINE.delays["notify"] + made.cycles
    for i in range(MACHINE.epoch):
        moved = begun(made, ((i + 1) % 252, (5 * i + 100) % 252, 251 - i, (11 * i + 17) % 252))
        z = np.zeros_like(x)
        ran = simulate(moved, MACHINE, host_buffers([x, z]))
        assert (ran.findings.all, ran.cycles, z.tolist()) == ((), cycles, x.tolist()), i
        assert check(moved, MACHINE) == []
        if i % 21 == 0:
            z[:] = 0
            ticked = simulate_slowly(moved, MACHINE, host_arrays([x, z]))
            assert (ticked.findings, ticked.cycles, z.tolist()) == ((), cycles, x.tolist()), i


@pytest.mark.parametrize("late", [(0, 252, 0, 0), (0, 0, 0, 300)])
def test_a_chip_that_begins_an_epoch_later_is_found_out(late: tuple[int, ...]) -> None:
    moved, arrays = begun(ring(), late), [np.zeros(CHIPS * 320, np.uint8) for _ in range(2)]
    fast = {f.code for f in simulate(moved, MACHINE, host_buffers(arrays)).findings.all}
    slow = {f.code for f in simulate_slowly(moved, MACHINE, host_arrays(arrays)).findings}
    assert fast == slow >= {"TFW0840"}
    assert {problem.code for problem in check(moved, MACHINE)} >= {"TFW0858"}
