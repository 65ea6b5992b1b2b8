"""Results that may not be touched too soon: every pair with too few wait states on a path that runs, and no other."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wave_toy import run

from tilefw.sim.checks.hazards import HazardTracker
from tilefw.sim.program import HazardRule, Hazards, Instruction
from tilefw.sim.steps.prepare import PreparedBlock
from tilefw.sim.tracking.history import History

# An instruction's row here is (what it writes, what it reads, its wait states).
RULES = (
    HazardRule("first", "1", lambda i: i.row[0], lambda i: i.row[1], lambda p, c: 1 + (p.index + c.index) % 4, horizon=4),
    HazardRule("second", "2", lambda i: i.row[0] if i.index % 2 else (), lambda i: i.row[0], lambda p, c: 7, horizon=7),
)
HAZARDS = Hazards(RULES, lambda i: i.row[2])


@st.composite
def instructions(draw: st.DrawFn, index: int) -> Instruction:
    registers = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    row = draw(registers), draw(registers), draw(st.sampled_from([1, 1, 1, 2, 5]))
    return Instruction(index, f"i{index}", "i", "u", row=row)


def touched_too_soon(trace: list[Instruction]) -> bool:
    """Whether the last instruction of what was executed does."""
    consumer, states = trace[-1], 0
    for producer in reversed(trace[:-1]):
        for rule in RULES:
            if set(rule.produces(producer)) & set(rule.consumes(consumer)) and states < rule.needed(producer, consumer):
                return True
        states += producer.row[2]
    return False


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_composed_pasts_find_what_the_whole_trace_shows(data):
    program = [data.draw(instructions(i)) for i in range(data.draw(st.integers(1, 9)))]
    cuts = sorted({0, len(program), *data.draw(st.lists(st.integers(1, len(program)), max_size=3))})
    blocks = [PreparedBlock(a, instructions=program[a:b]) for a, b in pairwise(cuts)]
    walk = data.draw(st.lists(st.integers(0, len(blocks) - 1), min_size=1, max_size=8))
    history, past, trace = History([HazardTracker(HAZARDS, program, ())], blocks), 0, []
    for number in walk:
        past, found = history.through(number, past)
        wanted = []
        for instruction in blocks[number].instructions:
            trace.append(instruction)
            if touched_too_soon(trace):
                wanted.append(instruction.index)
        assert [f.instruction.index for f in found] == wanted


@pytest.mark.parametrize(("between", "missing"), [
    ("", "3 wait states"), ("mov v3, 1", "2 wait states"), ("pause 2", "1 wait state "), ("pause 3", ""),
    ("mov v3, 1\npause 2", ""),
])
def test_wait_states_between_are_counted(between, missing):
    out = run(f"slow v1, v0\n{between}\nadd v2, v1, 1\nend")
    if not missing:
        assert out.report.findings == ()
        return
    finding = out.finding("hazards")
    assert finding.code == "TFW0821" and finding.instruction == "add v2, v1, 1" and "slow v1, v0" in finding.other
    assert (finding.note + " ").startswith(missing) and "Toy, 4.5" in finding.note and "v1" in finding.message


def test_what_is_needed_depends_on_the_pair():
    assert run("slow v1, v0\npause 1\nslow v2, v1\nend").report.findings == ()
    assert run("slow v1, v0\nslow v2, v1\nend").finding("hazards").note.startswith("1 wait state missing")


def test_a_hazard_goes_around_a_loop():
    text = "mov v1, 1\nwmov w3, 4\nloop: add v2, v1, 1\nwsub w3, w3, 1\n{pause}\nslow v1, v0\njz w3, done\njump loop\ndone: end"
    # From the slow result around to its use: the branch, the jump.
    assert run(text.format(pause="pause 1")).finding("hazards").note.startswith("1 wait state missing")
    ahead = text.replace("jump loop", "pause 1\njump loop")
    assert run(ahead.format(pause="pause 1")).report.findings == ()


def test_a_hazard_comes_by_one_way_into_a_join():
    """Even waves come with a fresh result, odd waves without: the waves that step together have different pasts."""
    text = "wand w3, wave, 1\nmov v1, 1\njz w3, even\njump meet\neven: slow v1, v0\n{pause}\nmeet: add v2, v1, 1\nend"
    finding = run(text.format(pause="pause 0"), block=32).finding("hazards")
    assert (finding.count, finding.wave) == (2, 0)
    assert run(text.format(pause="pause 3"), block=32).report.findings == ()


def test_every_seed_tells_the_same():
    text = "wand w3, wave, 1\njz w3, even\nslow v1, v0\njump meet\neven: mov v1, 1\nmeet: add v2, v1, 1\nend"
    counts = {run(text, block=64, seed=seed).finding("hazards").count for seed in range(5)}
    assert counts == {4}


def test_the_check_can_be_switched_off():
    assert run("slow v1, v0\nadd v2, v1, 1\nend", checks=frozenset({"pending"})).report.findings == ()
    assert run("slow v1, v0\nadd v2, v1, 1\nend", np.zeros(1, np.uint32), checks=frozenset({"hazards"})).checks == ["hazards"]
