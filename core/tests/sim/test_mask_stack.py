"""A mask stack in the kit: lanes sleep from a push to its pop, whatever the waves do in between, as in a model of lists."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import Outcome, run
from toy import CHIP

from tilefw.sim.program import SimulatedChip

STACKED = replace(CHIP, pc_per_lane=False, mask_stack=3)
THREAD = """
    param a0, arg0
    mul r9, group, 64
    add r9, r9, tid
    index a1, a0, r9
"""


def out_of(text: str, *arrays, block: int = 16, **options) -> Outcome:
    return run(THREAD + text, *arrays, block=block, chip=STACKED, **options)


def test_lanes_sleep_until_the_pop():
    out = out_of("""
        mov r0, 1
        lt p0, lane, 6
        and r1, lane, 1
        eq p1, r1, 0
        push p0
        mov r0, 2
        push p1
        mov r0, 3
        store a1, r0        # of awake lanes alone
        pop
        add r0, r0, 10
        store a1, r0
        pop
        add r0, r0, 100
        end
    """, np.full(16, 7, np.uint32))
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [13, 12, 13, 12, 13, 12, 7, 7] * 2


def test_a_branch_asks_the_lanes_that_are_awake_and_falls_through_where_none_is():
    """Wave 0 has lanes awake that agree, wave 1 has none."""
    out = out_of("""
        mov r0, 0
        lt p0, tid, 4
        eq p2, r0, 0        # everywhere
        push p0
        @p0 jump first
        mov r0, 5
        jump second
first:  mov r0, 6
second: @p2 jump third
        pop
        mov r0, 9
        jump done
third:  pop
done:   store a1, r0
        end
    """, np.zeros(16, np.uint32))
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == [6] * 4 + [0] * 4 + [9] * 8


def test_lanes_that_are_awake_must_agree_on_a_branch():
    text = "lt p0, lane, 4\nlt p1, lane, 2\npush {}\n@p1 jump done\nmov r0, 1\ndone: pop\nend\n"
    assert out_of(text.format("p0"), np.zeros(16, np.uint32)).finding("barriers").code == "TFW0813"
    assert out_of(text.format("p1"), np.zeros(16, np.uint32)).report.findings == ()


def test_lanes_without_a_thread_are_asleep_at_the_bottom():
    out = out_of("store a1, 3\nend\n", np.full(16, 9, np.uint32), block=11)
    assert out.report.findings == () and out.arrays[0].tolist() == [3] * 11 + [9] * 5


def test_sleeping_lanes_take_no_part_in_operations_across_the_wave():
    text = "mov r0, 0\nlt p0, lane, 3\nlt p1, 1, 2\npush p0\nanylane r0, p1\npop\nstore a1, r0\nend\n"
    out = out_of(text, np.zeros(16, np.uint32))
    assert out.arrays[0].tolist() == [7, 7, 7, 0, 0, 0, 0, 0] * 2


@pytest.mark.parametrize("text, message", [
    ("pop\nend\n", "without a push"),
    ("lt p0, lane, 4\npush p0\npop\npop\nend\n", "without a push"),
    ("lt p0, lane, 4\npush p0\npush p0\npush p0\npush p0\nend\n", "is full: it has 3 entries"),
])
def test_the_stack_has_a_bottom_and_a_top(text, message):
    finding = out_of(text, np.zeros(16, np.uint32)).finding("trap")
    assert finding.code == "TFW0812" and message in finding.message


def test_a_mask_of_undefined_lanes_is_a_finding():
    out = out_of("lt p0, lane, 4\npush p0\nmov r0, 1\npop\neq p1, r0, 1\npush p1\npop\nend\n", np.zeros(16, np.uint32))
    assert out.checks == ["initialisation"]


@pytest.mark.parametrize("facts", [{"pc_per_lane": True}, {"pc_per_lane": False, "mask_stack": 63}])
def test_a_stack_that_no_wave_can_have_is_refused(facts):
    with pytest.raises(ValueError, match="mask stack"):
        SimulatedChip("c", **{"mask_stack": 3, **facts})


# A program of pushes, additions and pops; `waves`: the part is for waves below that number, which branch around it otherwise.
PARTS = st.recursive(
    st.builds(lambda n: ("add", n), st.integers(1, 9)),
    lambda part: st.tuples(st.sampled_from(["push", "waves"]), st.integers(0, 9), st.lists(part, max_size=3)),
    max_leaves=12,
)


def depth(part) -> int:
    return 0 if part[0] == "add" else (part[0] == "push") + max(map(depth, part[2]), default=0)


class Emitter:
    """The text of a part, and what it does to the values of 8 lanes in 4 waves."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.labels = 0

    def emit(self, part, awake: np.ndarray, values: np.ndarray) -> None:
        kind, number, *inner = part
        if kind == "add":
            self.lines.append(f"add r0, r0, {number}")
            values[awake] += number
            return
        if kind == "push":
            self.lines += [f"add r2, lane, {number}", "and r2, r2, 3", "lt p0, r2, 2", "push p0"]
            awake = awake & ((np.arange(8) + number & 3) < 2)
        else:
            # A wave whose lanes all sleep falls through, and does nothing there.
            self.labels += 1
            label = f"skip{self.labels}"
            self.lines += [f"lt p0, wave, {number}", "eq p1, r3, 0", "select r4, p0, 0, 1", "eq p0, r4, 1", f"@p0 jump {label}"]
            awake = awake & (np.arange(4) < number)[:, None]
        for each in inner[0]:
            self.emit(each, awake, values)
        self.lines.append("pop" if kind == "push" else f"{label}: mov r5, 0")


@settings(max_examples=60, deadline=None)
@given(st.lists(PARTS, max_size=4).filter(lambda parts: max(map(depth, parts), default=0) <= 3), st.integers(0, 3))
def test_programs_do_as_their_model_does(parts, seed):
    emitter, values = Emitter(), np.zeros((4, 8), np.uint32)
    for part in parts:
        emitter.emit(part, np.ones((4, 8), np.bool_), values)
    text = "\n".join(["mov r0, 0", "mov r3, 0", *emitter.lines, "store a1, r0", "end"])
    out = out_of(text, np.zeros(32, np.uint32), block=32, seed=seed)
    assert out.report.findings == ()
    assert out.arrays[0].tolist() == values.reshape(-1).tolist()
