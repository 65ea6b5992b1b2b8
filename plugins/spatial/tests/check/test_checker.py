"""The checker finds each constraint that is broken, by name and cycle, and nothing in programs that keep all of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

import pytest
from cycles import launched
from drawn_programs import drawn, host_buffers, shaken
from hand_made import MACHINE, allocation, kinds, matrix, program
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tilefw_spatial.check import check, judge, shift, shifted
from tilefw_spatial.check.progression import Progression, ProgressionSpan, meetings
from tilefw_spatial.isa import ACCUMULATE_FLAG
from tilefw_spatial.program import HostTensor, QueueInst, SpatialProgram
from tilefw_spatial.simulate.device import simulate

EAST = MACHINE.position("MXM.E")
X = HostTensor("x", "in", allocation("uint8", 8, [("MEM.E0", 0, 0)]), (matrix(0, 8),))


def read(time: int, count: int, row: int = 0, stream: int = 0) -> tuple[int, QueueInst]:
    return time, QueueInst("RD", "", count, dst=stream, address=row, step=1)


def write(time: int, count: int, row: int = 0, stream: int = 0) -> tuple[int, QueueInst]:
    return time, QueueInst("WR", "", count, a=stream, address=row, step=1)


def problems(timed: Mapping[str, list[tuple[int, QueueInst]]], *tensors: HostTensor) -> list[str]:
    made = program(timed, [X, *tensors], [("x", "uint8"), ("y", "uint8")])
    return [str(problem) for problem in judge(made, MACHINE).problems]


Y = HostTensor("y", "out", allocation("uint8", 2, [("MEM.E5", 0, 0)]), (matrix(1, 2),))
MOVED = {"MEM.E0": [read(100, 2)], "MEM.E5": [write(108, 2)]}


def test_a_copy_is_sound() -> None:
    assert problems(MOVED, Y) == []


BROKEN = {
    "nothing passes": ({**MOVED, "MEM.E5": [write(109, 2)]}, "TFW0850", "takes sE0 at MEM.E5 in cycle 112: nothing passes"),
    "the wrong way": ({"MEM.E0": [read(100, 2)], "MEM.W0": [write(101, 2)]}, "TFW0850", "nothing passes"),
    "no result": ({"VXM.1": [(18, QueueInst("MOV", "int32", a=1 << 4, map=kinds(1)))]}, "TFW0850", "result of VXM.0"),
    "two on a stream": ({"MEM.E0": [read(100, 8)], "MEM.E3": [read(108, 1, 4096)]}, "TFW0851", "on sE0 at MEM.E3 in cycle 113"),
    "two results": ({"VXM.0": [(10, QueueInst("EX2", "fp32", map=kinds(2))), (18, QueueInst("MOV", "fp32", map=kinds(2)))]},
                    "TFW0851", "the results of VXM.0 in cycle 22"),
    "read and write": ({**MOVED, "MEM.E5": [write(108, 2), read(111, 1, 9)]}, "TFW0852", "read and write of bank 0 in MEM.E5"),
    "never written": ({"MEM.E0": [read(100, 2, 7)]}, "TFW0853", "reads row 8 of bank 0 of MEM.E0, which was never written"),
    "replaced unread": ({"MEM.E0": [read(100, 2), read(102, 2)], "MEM.E5": [write(108, 2), write(110, 2)]},
                        "TFW0853", "cycle 110, and WR of MEM.E5 at cycle 110 replaces it before it is read"),
    "for the host": ({"MEM.E0": [read(100, 1)], "MEM.E5": [write(108, 1)]}, "TFW0853", "goes to the host as part of y"),
    "waits for ever": ({**MOVED, "MEM.E1": [(0, QueueInst("SYNC"))]}, "TFW0854", "MEM.E1 waits from cycle 0 on"),
    "leaves its bank": ({"MEM.E0": [(10, QueueInst("RD", dst=0, address=4094, step=1)),
                                    (11, QueueInst("REP", "", 3, imm=2, step=1))]}, "TFW0855", "row 4097"),
    "never loaded": ({"MXM.E0.LW": [(100, QueueInst("IW", "int8"))]}, "TFW0856", "installs buffer 0, which was never loaded"),
    "nothing installed": ({"MEM.E0": [read(100, 2)], "MXM.E0.MAC": [(150, QueueInst("MAC", "int8", 2, a=0, step=1, imm=4))]},
                          "TFW0856", "nothing is installed yet"),
    "drained unset": ({"MXM.E0.DRN": [(10, QueueInst("DRN", "fp32", 2, dst=32, step=1))]}, "TFW0856", "which was never set"),
    "a link too soon": ({"MEM.E0": [read(100, 8)], "C2C.6": [(149, QueueInst("SND", a=0)), (150, QueueInst("SND", a=0))]},
                        "TFW0858", "a link takes a vector each 24 cycles"),
    "nobody receives": (
        {"MEM.E0": [read(100, 8)], "C2C.6": [(149, QueueInst("SND", a=0))]}, "TFW0858", "not received in cycle 366"
    ),
    "nothing arrives": ({"C2C.6": [(149, QueueInst("RCV", dst=0))]}, "TFW0858", "nothing arrives from chip"),
    "fetches": ({"MEM.E0": [(0, QueueInst("IFETCH"))]}, "TFW0857", "fetches instructions"),
    "no instruction": ({"MEM.E0": [(0, QueueInst("RD", dst=64))]}, "TFW0857", "no stream 64"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_constraint_that_is_broken_has_its_problem(name: str) -> None:
    timed, code, text = BROKEN[name]
    assert any(found.startswith(code) and text in found for found in problems(timed, Y)), problems(timed, Y)


def weights(multiply: int, *more: tuple[int, QueueInst], drain: int = 290, flags: int = 0) -> list[str]:
    """LW at 200, IW at 201, then what is given; a MAC of 4 vectors and a drain of their sums."""
    times = [200, *(time for time, inst in more if inst.op == "LW")]
    timed = {f"MEM.E{i}": [read(t - 5 - EAST + MACHINE.position(f"MEM.E{i}"), 1, 0, i) for t in times] for i in range(16)}
    timed["MEM.E20"] = [read(multiply - 5 - EAST + MACHINE.position("MEM.E20"), 4, 0, 16)]
    timed["MXM.E0.LW"] = [(200, QueueInst("LW", "int8")), (201, QueueInst("IW", "int8")), *more]
    timed["MXM.E0.MAC"] = [(multiply, QueueInst("MAC", "int8", 4, a=16, step=1, imm=16, flags=flags))]
    timed["MXM.E0.DRN"] = [(drain, QueueInst("DRN", "int32", 4, dst=32, step=1))]
    indices = [(f"MEM.E{i}", 0, 0) for i in range(16)]
    tables = [HostTensor(f"t{i}", "in", allocation("uint8", 1, [index]), (matrix(1, 1),)) for i, index in enumerate(indices)][1:]
    return problems(timed, *tables, HostTensor("t", "in", allocation("uint8", 4, [("MEM.E20", 0, 0)]), (matrix(1, 4),)))


def test_weights_are_whole_and_stay_and_sums_are_drained_after_the_last() -> None:
    assert weights(230) == []
    assert "nothing is installed yet" in weights(220)[0]
    assert "that LW.int8 of MXM.E0.LW at cycle 232 replaces" in weights(230, (232, QueueInst("LW", "int8")))[0]
    assert weights(230, (234, QueueInst("LW", "int8"))) == []
    assert "adds to accumulator 0 of bank 0 of MXM.E, which was never set" in weights(230, flags=ACCUMULATE_FLAG)[0]
    assert weights(230, drain=270) == []
    assert "drains accumulator 0 of bank 0 of MXM.E, which was never set" in weights(230, drain=269)[0]


@settings(max_examples=10, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 1 << 30))
def test_random_programs_are_sound_and_their_shifts_are_judged_rightly(seed: int) -> None:
    rng = random.Random(seed)
    made, arrays = drawn(rng, 3)
    expected = simulate(made, MACHINE, host_buffers([a.copy() for a in arrays])).cycles
    assert made.cycles == expected
    sound = judge(made, MACHINE)
    assert sound.problems == ()
    for chip, code in enumerate(made.chips):
        name = rng.choice(sorted(code.queues)) if code.queues else None
        indices = [] if name is None else [i for i, inst in enumerate(code.queues[name]) if inst.op not in ("NOP", "REP")]
        if name is None or (moved := shifted(made, chip, name, indices[0], 1)) is None:
            continue
        verdict = shift(made, MACHINE, chip, name, indices[0], 1, sound)
        done = simulate(moved, MACHINE, host_buffers([a.copy() for a in arrays]))
        assert not (verdict.harmless and (done.findings.all or done.cycles != expected)), verdict
        assert not (done.findings.all and verdict.harmless)


@settings(max_examples=10, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 1 << 30))
def test_what_a_simulator_finds_the_checker_finds_as_well(seed: int) -> None:
    """A queue of a random program is shaken: each kind of finding is a kind of problem."""
    rng = random.Random(seed)
    made, arrays = drawn(rng, 2)
    late = shaken(rng, made, [1, 2])
    if late is None:
        return
    findings = {finding.code for finding in simulate(late, MACHINE, host_buffers(arrays)).findings.all}
    assert {KINDS[code] for code in findings} <= {problem.code for problem in check(late, MACHINE)}


KINDS = {
    "TFW0830": "TFW0850", "TFW0831": "TFW0851", "TFW0832": "TFW0852", "TFW0833": "TFW0853", "TFW0834": "TFW0854",
    "TFW0835": "TFW0855", "TFW0836": "TFW0856", "TFW0839": "TFW0859", "TFW0840": "TFW0858",
}


def test_another_count_of_cycles_is_a_problem() -> None:
    made = program({"MEM.E0": [read(100, 2)]}, [X], [("x", "uint8")])
    (found,) = check(replace(made, cycles=0), MACHINE)
    assert str(found) == f"TFW0859: the program takes {101 + 5 + 1 + 19} cycles and says 0"
    assert check(replace(made, cycles=126), MACHINE) == []
    (found,) = check(SpatialProgram(made.entry, made.machine, "0" * 64, made.grid, (), (), made.chips, 0), MACHINE)
    assert found.code == "TFW0857"


def test_a_shift_that_changes_what_is_taken_is_no_harmless_one() -> None:
    """A write of two of eight vectors, a cycle early, takes another two: nothing is missing, and the count is the same."""
    tensors = [X, HostTensor("y", "out", allocation("uint8", 2, [("MEM.E5", 1, 0)]), (matrix(1, 2),))]
    timed = {"MEM.E0": [read(100, 8), read(120, 1)], "MEM.E5": [write(110, 2, 4096)]}
    made = program(timed, tensors, [("x", "uint8"), ("y", "uint8")])
    assert check(made, MACHINE) == []
    index = next(i for i, inst in enumerate(made.chips[0].queues["MEM.E5"]) if inst.op == "WR")
    verdict = shift(made, MACHINE, 0, "MEM.E5", index, -1)
    assert not verdict.harmless
    assert "takes by a0 what is not meant for it" in verdict.reasons[0]


def test_slack_is_told_from_haste() -> None:
    """In a product over several tiles of K the last install of one side has a cycle to spare, and no other has."""
    one = launched.kernel("matmul", {"m": 20, "n": 30, "k": 700})
    sound, before = one.judged(), one.fast()
    queues = one.program.chips[0].queues
    installs = [(queue, index) for queue, words in queues.items() for index, inst in enumerate(words) if inst.op == "IW"]
    free = [
        (queue, index, by) for queue, index in installs for by in (-1, 1)
        if shift(one.program, MACHINE, 0, queue, index, by, sound).harmless
    ]
    assert 1 <= len(free) < len(installs)
    for queue, index, by in free:
        moved = shifted(one.program, 0, queue, index, by)
        assert moved is not None
        assert one.moved(moved).fast().same(before)
        assert one.moved(moved).slow().same(before)


def test_a_large_product_is_checked_in_seconds() -> None:
    """0.2 s where nothing else runs, for some 20,000 cycles: bursts are judged, not cycles."""
    one = launched.kernel("matmul", {"m": 1152, "n": 1376, "k": 1024, "dtype": "fp16", "block_m": 64, "block_n": 64, "block_k": 64})
    start = perf_counter()
    assert check(one.program, MACHINE) == []
    assert perf_counter() - start < 5


progressions = st.builds(Progression, st.integers(-30, 30), st.integers(1, 9), st.integers(1, 12))


def numbers(p: Progression) -> set[int]:
    return {p.start + i * p.period for i in range(p.count)}


@given(progressions, progressions)
def test_what_progressions_have_in_common(a: Progression, b: Progression) -> None:
    assert a.common(b) == min(numbers(a) & numbers(b), default=None)


@given(st.lists(progressions, max_size=8))
def test_all_that_meet_are_found(some: list[Progression]) -> None:
    found = {frozenset((a.owner, b.owner)) for a, b, _ in meetings([ProgressionSpan(p, i) for i, p in enumerate(some)])}
    pairs = {frozenset((i, j)) for i, a in enumerate(some) for j, b in enumerate(some) if i < j and numbers(a) & numbers(b)}
    assert found == pairs
