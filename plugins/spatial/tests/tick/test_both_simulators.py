"""Both simulators give the same memory and the same cycles, and find fault with the same programs; they share no code."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from drawn_programs import drawn, host_arrays, host_buffers, shaken
from hand_made import MACHINE, allocation, counted, kinds, matrix, program
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tilefw_spatial.isa import PUT_FLAG
from tilefw_spatial.program import HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import simulate as simulate_fast
from tilefw_spatial.tick import exact
from tilefw_spatial.tick import simulate as simulate_slowly


def both(made: SpatialProgram, arrays: list[np.ndarray]) -> tuple[set[str], set[str], bool]:
    """The codes of the findings of each, and whether memory and cycles are the same."""
    other = [array.copy() for array in arrays]
    fast = simulate_fast(made, MACHINE, host_buffers(arrays))
    slow = simulate_slowly(made, MACHINE, host_arrays(other))
    same = fast.cycles == slow.cycles and all(np.array_equal(a, b) for a, b in zip(arrays, other, strict=True))
    return {f.code for f in fast.findings.all}, {f.code for f in slow.findings}, same


# Programs that differ are small enough to be read, and shrinking a seed makes none smaller.
drawing = settings(max_examples=8, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))


@drawing
@given(st.integers(0, 1 << 30))
def test_random_programs_give_equal_memory_and_cycles(seed: int) -> None:
    made, arrays = drawn(random.Random(seed), 3)
    assert both(made, arrays) == (set(), set(), True)


@drawing
@given(st.integers(0, 1 << 30))
def test_a_cycle_more_or_less_is_the_same_to_both(seed: int) -> None:
    """One NOP longer or shorter: all behind it in its queue moves."""
    rng = random.Random(seed)
    made, arrays = drawn(rng, 2)
    moved = shaken(rng, made, [-1, 1])
    if moved is None:
        return
    fast, slow, same = both(moved, arrays)
    assert fast == slow
    assert same or fast


X = HostTensor("x", "in", allocation("uint8", 8, [("MEM.E0", 0, 0)]), (matrix(0, 8),))


def read(time: int, count: int, row: int = 0, stream: int = 0) -> tuple[int, QueueInst]:
    return time, QueueInst("RD", "", count, dst=stream, address=row, step=1)


BROKEN = {
    "two producers": ("TFW0831", {"MEM.E0": [read(100, 8)], "MEM.E3": [read(108, 2)]}),
    "no operand": ("TFW0830", {"MEM.E0": [read(100, 2)], "MEM.E5": [(109, QueueInst("WR", "", 2, a=0, address=0, step=1))]}),
    "the wrong way": ("TFW0830", {"MEM.E4": [read(100, 1)], "MEM.E3": [(104, QueueInst("WR", "", 1, a=0, address=0, step=1))]}),
    "a bank that is read and written": ("TFW0832", {
        "MEM.E0": [read(100, 8)], "MEM.E1": [(104, QueueInst("WR", "", 8, a=0, address=9, step=1)), read(112, 2, 20, 1)]}),
    "never initialised": ("TFW0833", {"MEM.E4": [read(100, 2)], "MEM.E5": [(104, QueueInst("WR", "", 2, a=0, address=0, step=1))]}),
    "out of the bank": ("TFW0835", {
        "MEM.E0": [(10, QueueInst("RD", "", 1, dst=0, address=4094, step=1)), (11, QueueInst("REP", "", 3, imm=2, step=1))]}),
    "a result that has left the pipe": ("TFW0830", {
        "VXM.0": [(10, QueueInst("CST", "int32", 1, imm=1, map=kinds(2)))],
        "VXM.1": [(27, QueueInst("MOV", "int32", 1, a=3 << 4, map=kinds(1), dst=0, flags=PUT_FLAG))]}),
    "two results in one cycle": ("TFW0831", {
        "VXM.0": [(10, QueueInst("EX2", "fp32", 1, imm=0, map=kinds(2))), (18, QueueInst("MOV", "fp32", 1, imm=0, map=kinds(2)))]}),
    "no weights": ("TFW0836", {
        "MEM.E20": [read(100, 2, 0, 16)], "MXM.E0.MAC": [(130, QueueInst("MAC", "int8", 2, a=16, address=0, step=1, imm=16))]}),
    "never loaded": ("TFW0836", {"MXM.E0.LW": [(100, QueueInst("IW", "int8"))]}),
    "never notified": ("TFW0834", {"MEM.E0": [(0, QueueInst("NTFY"))], "MEM.E1": [(40, QueueInst("SYNC"))]}),
    "a link too soon": ("TFW0840", {
        "MEM.E0": [read(100, 8)], "C2C.8": [(149, QueueInst("SND", a=0)), (150, QueueInst("SND", a=0))]}),
    "nothing arrives": ("TFW0840", {"C2C.6": [(149, QueueInst("RCV", dst=0))]}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_that_is_broken_is_found_by_both(name: str) -> None:
    code, timed = BROKEN[name]
    fast, slow, _ = both(program(timed, [X], [("x", "uint8")]), [np.zeros(8 * 320, np.uint8)])
    assert fast == slow == {code}


def test_one_burst_takes_results_of_several_types() -> None:
    """Bits go from ALU to ALU: the sign bit that an integer operation makes is no number, though a float comes right behind it."""
    made = [("int32", 1 << 31), ("fp32", 0x3F800000)]
    timed: dict[str, list[tuple[int, QueueInst]]] = {
        "VXM.0": [(100 + n, QueueInst("CST", dtype, 1, imm=bits, map=kinds(2))) for n, (dtype, bits) in enumerate(made)],
        "VXM.1": [(104, QueueInst("MOV", "int32", 2, a=0, map=kinds(1), dst=32, flags=PUT_FLAG))],
    }
    for byte in range(4):
        timed[f"MEM.W{byte}"] = [(107 + byte, QueueInst("WR", "", 2, a=32 + byte, address=0, step=1))]
    out = HostTensor("x", "out", allocation("int32", 2, [(f"MEM.W{byte}", 0, 0) for byte in range(4)]), (matrix(0, 2),))
    array = np.zeros(2 * 320 * 4, np.uint8)
    assert both(program(timed, [out], [("x", "int32")]), [array]) == (set(), set(), True)
    assert array.view(np.uint32).reshape(2, 320)[:, 0].tolist() == [bits for _, bits in made]


@pytest.mark.parametrize("by", [-1, 1])
def test_a_program_that_says_other_cycles_than_it_takes_is_found_by_both(by: int) -> None:
    made = program({"MEM.E0": [read(100, 2)]}, [X], [("x", "uint8")])
    made = replace(made, cycles=made.cycles + by)
    fast = simulate_fast(made, MACHINE, host_buffers([np.zeros(8 * 320, np.uint8)])).findings.all
    slow = simulate_slowly(made, MACHINE, host_arrays([np.zeros(8 * 320, np.uint8)])).findings
    said = ("TFW0839", f"the program takes {made.cycles - by} cycles and says {made.cycles}")
    assert [(f.code, f.message) for f in fast] == [(f.code, f.message) for f in slow] == [said]


def test_a_finding_names_stream_unit_and_cycle() -> None:
    _, timed = BROKEN["no operand"]
    found = simulate_slowly(program(timed, [X], [("x", "uint8")]), MACHINE, host_arrays([np.zeros(8 * 320, np.uint8)])).findings
    assert [f.message for f in found] == ["no operand on sE0 at MEM.E5 at cycle 112"]


def test_queues_wait_for_a_notice_and_for_the_epoch() -> None:
    timed = {
        "MEM.E0": [(0, QueueInst("NTFY")), (1, QueueInst("SYNC"))], "MEM.E1": [
            (35, QueueInst("SYNC"))
        ], "C2C.0": [(3, QueueInst("DSK"))],
        "MEM.E3": [(0, QueueInst("CFG.vl", imm=20)), (1, QueueInst("CFG.halt")), read(5, 1)],
    }
    made = program(timed, [X], [("x", "uint8")])
    queues = dict(made.chips[0].queues)
    for name in ("MEM.E0", "MEM.E1"):
        queues[name] += (read(0, 1)[1],)
    queues["C2C.0"] += (QueueInst("CFG.vl", imm=20), QueueInst("NTFY"))
    made = counted(replace(made, chips=(replace(made.chips[0], queues=queues),)))
    fast, slow, same = both(made, [np.zeros(8 * 320, np.uint8)])
    assert (fast, slow, same) == (set(), set(), True)
    assert simulate_slowly(made, MACHINE, host_arrays([np.zeros(8 * 320, np.uint8)])).cycles == 253 + 35 + 1 + 19


@pytest.mark.parametrize(("value", "scale", "expected"), [
    (0, 0, 0.0), (3, 0, 3.0), (-(1 << 24) - 1, 0, -16777216.0), ((1 << 24) + 3, 0, 16777220.0), (1, 149, 2.0**-149),
    (1, 150, 0.0), (3, 151, 2.0**-149), (-1, 200, -0.0), (1 << 128, 0, np.inf), ((1 << 128) - (1 << 103), 0, np.inf),
])
def test_integers_are_rounded_once_to_fp32(value: int, scale: int, expected: float) -> None:
    assert exact.rounded(value, scale) == int(np.float32(expected).view(np.uint32))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_the_sum_of_accumulators_is_that_of_ieee(x: int, y: int) -> None:
    a, b = (np.uint32(bits).view(np.float32) for bits in (x, y))
    with np.errstate(all="ignore"):
        total = a + b
    expected = exact.QUIET_NAN if np.isnan(total) else int(total.view(np.uint32))
    assert exact.add(x, y) == expected
