"""Results that arrive later: a use is told of exactly when some order of finishing has the result still to come."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from wave_toy import run

from tilefw.sim.checks.pending import ResultTracker
from tilefw.sim.program import Instruction, Issue, Register, Wait
from tilefw.sim.steps.prepare import PreparedBlock
from tilefw.sim.tracking.history import History

KINDS = [("q", "a"), ("q", "b"), ("q", ""), ("r", "a")]
REGISTERS = 4


@st.composite
def instructions(draw: st.DrawFn, index: int) -> Instruction:
    common = {"index": index, "text": f"i{index}", "mnemonic": "i", "unit": "u"}
    register = draw(st.integers(0, REGISTERS - 1))
    match draw(st.sampled_from(["issue", "issue", "merge", "silent", "wait", "read", "write", "need"])):
        case "issue":
            issue = Issue(*draw(st.sampled_from(KINDS)), pending=(register,))
            sources = draw(st.lists(st.integers(0, REGISTERS - 1), max_size=1))
            return Instruction(
                sources=tuple(Register(s, 32) for s in sources), destinations=(Register(register, 32),), issues=(issue,), **common
            )
        case "merge":
            issue = Issue(*draw(st.sampled_from(KINDS)), pending=(register,), merged=(register,))
            return Instruction(sources=(Register(register, 32),), destinations=(Register(register, 32),), issues=(issue,), **common)
        case "silent":
            return Instruction(issues=(Issue(*draw(st.sampled_from(KINDS))),), **common)
        case "wait":
            queues = draw(st.lists(st.sampled_from("qr"), min_size=1, max_size=2, unique=True))
            return Instruction(waits=Wait(tuple((queue, draw(st.integers(0, 3))) for queue in queues)), **common)
        case "read":
            return Instruction(sources=(Register(register, 32),), **common)
        case "need":
            return Instruction(needs=(register,), **common)
    return Instruction(destinations=(Register(register, 32),), **common)


class Model:
    """All sets of unfinished events that are possible: an event is (number, kind, registers); what may finish, may at any time."""

    def __init__(self) -> None:
        self.states: set[tuple] = {()}
        self.issued = 0

    def _settle(self) -> None:
        open_states = list(self.states)
        while open_states:
            state = open_states.pop()
            for event in state:
                first = next(e for e in state if e[1] == event[1])
                if event is first or not event[1][1]:
                    less = tuple(e for e in state if e is not event)
                    if less not in self.states:
                        self.states.add(less)
                        open_states.append(less)

    def wait(self, limits: dict[str, int]) -> None:
        self.states = {s for s in self.states if all(sum(e[1][0] == q for e in s) <= n for q, n in limits.items())}

    def issue(self, issue: Issue) -> None:
        self.issued += 1
        event = (self.issued, (issue.queue, issue.order), issue.pending)
        self.states = {(*s, event) for s in self.states}
        self._settle()

    def uncovered(self, register: int, allowed: tuple) -> bool:
        return any(register in e[2] and e[1] not in allowed for s in self.states for e in s)

    def step(self, instruction: Instruction) -> bool:
        """Whether the instruction uses something too early."""
        if instruction.waits is not None:
            self.wait(dict(instruction.waits.limits))
        own = tuple((i.queue, i.order) for i in instruction.issues if i.order and i.pending)
        merged = sum(len(i.merged) for i in instruction.issues)
        sources = [s.index for s in instruction.sources]
        plain = sources[: len(sources) - merged]
        late = any(self.uncovered(r, ()) for r in plain)
        late |= any(self.uncovered(r, own) for r in sources[len(sources) - merged :])
        late |= any(self.uncovered(d.index, own) for d in instruction.destinations)
        late |= any(self.uncovered(n, ()) for n in instruction.needs)
        for issue in instruction.issues:
            self.issue(issue)
        return late


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_a_use_is_told_of_exactly_when_a_result_may_be_still_to_come(data):
    program = [data.draw(instructions(i)) for i in range(data.draw(st.integers(2, 10)))]
    cuts = sorted({0, len(program), *data.draw(st.lists(st.integers(1, len(program)), max_size=3))})
    blocks = [PreparedBlock(a, instructions=program[a:b]) for a, b in pairwise(cuts)]
    walk = data.draw(st.lists(st.integers(0, len(blocks) - 1), min_size=1, max_size=6))
    assume(sum(len(i.issues) for b in walk for i in blocks[b].instructions) <= 9)
    history, model, past = History([ResultTracker(program, ())], blocks), Model(), 0
    for number in walk:
        past, found = history.through(number, past)
        late = [i.index for i in blocks[number].instructions if model.step(i)]
        assert [f.instruction.index for f in found] == late


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_wait_that_a_finding_names_covers_the_use(data):
    program = [data.draw(instructions(i)) for i in range(data.draw(st.integers(2, 8)))]
    _, found = ResultTracker(program, ()).through(program, ())
    assume(found)
    before, model = program[: found[0].instruction.index], Model()
    for instruction in before:
        model.step(instruction)
    count, queue = re.search(r"leaves (?:no|at most (\d+)) events? in the queue (\w)", found[0].note).groups()
    register = int(re.search(r"register (\d)", found[0].message)[1])
    kind = next((i.queue, i.order) for i in found[0].other.issues if register in i.pending)
    others = tuple(k for k in KINDS if k != kind)
    assert model.uncovered(register, others)
    model.wait({queue: int(count or 0)})
    assert not model.uncovered(register, others)


def test_waves_that_differ_keep_their_own_pasts():
    """Odd waves have waited before the place where all read."""
    text = """
        wload2 w4:w5, w0:w1, 0
        wait near 0
        mul v1, v0, 4
        load v2, w4:w5, v1
        wand w3, wave, 1
        jz w3, meet
        {wait}
meet:   add v3, v2, 1
        end
    """
    finding = run(text.format(wait="wait far 0"), np.zeros(32, np.uint32), block=32).finding("pending")
    assert (finding.code, finding.count, finding.wave) == ("TFW0820", 2, 0)
    assert run(text.format(wait="pause 1"), np.zeros(32, np.uint32), block=32).finding("pending").count == 4


LOOP = """
        wload2 w4:w5, w0:w1, 0
        wait near 0
        mul v1, v0, 4
        wmov w3, 4
        mov v3, 0
        load v2, w4:w5, v1
loop:   load v4, w4:w5, v1
        wait far {first}
        add v3, v3, v2
        load v2, w4:w5, v1
        wait far {second}
        add v3, v3, v4
        wsub w3, w3, 1
        jz w3, done
        jump loop
done:   wait far 0
        store w4:w5, v1, v3
        end
"""


@pytest.mark.parametrize(("first", "second", "late"), [(1, 1, 0), (0, 0, 0), (2, 1, 1), (1, 2, 1), (2, 2, 2)])
def test_a_loop_that_loads_ahead_waits_for_all_but_the_newest(first, second, late):
    out = run(LOOP.format(first=first, second=second), np.ones(8, np.uint32))
    assert [f.check for f in out.report.findings] == ["pending"] * late
    assert out.arrays[0].tolist() == [8] * 8
    for finding in out.report.findings:
        assert "at most 1 event in the queue far" in finding.note and "load" in finding.other


def test_an_effect_that_no_register_shows_is_needed_like_a_result():
    effect = 7
    common = {"mnemonic": "i", "unit": "u"}
    give = Instruction(0, "give", issues=(Issue("q", "a", pending=(effect,)),), **common)
    publish = Instruction(1, "publish", needs=(effect,), **common)
    names = [f"v{n}" for n in range(effect)] + ["the write-back"]
    _, found = ResultTracker([give, publish], names).through([give, publish], ())
    assert [(f.instruction.text, f.other.text) for f in found] == [("publish", "give")]
    assert found[0].message == "the write-back is needed while it is still to come" and "no event in the queue q" in found[0].note


def test_an_event_with_nothing_to_do_is_not_waited_for():
    """What `behind` asks for must be pending when it begins; it counts in the queue all the same."""
    effect, done = 7, 8
    common = {"mnemonic": "i", "unit": "u"}
    write = Instruction(0, "write", issues=(Issue("q", "a", pending=(effect,)),), **common)
    flush = Instruction(1, "flush", issues=(Issue("q", "a", pending=(done,), behind=(effect,)),), **common)
    wait = Instruction(2, "wait", waits=Wait((("q", 0),)), **common)
    publish = Instruction(3, "publish", needs=(done,), **common)
    program = [write, flush, wait, publish]
    queues = ResultTracker(program, [])
    assert len(queues.through([write, flush, publish], ())[1]) == 1
    for order in ([flush, publish], [write, wait, flush, publish], [write, flush, wait, publish]):
        assert queues.through(order, ())[1] == []


def test_results_for_the_wave_come_in_any_order():
    text = "wload w3, w0:w1, 0\nwload w4, w0:w1, 4\nwait near {left}\nwadd w5, w3, 1\nend"
    assert run(text.format(left=0), 8).report.findings == ()
    finding = run(text.format(left=1), 8).finding("pending")
    assert "no event in the queue near" in finding.note and "w3 is read" in finding.message


def test_a_later_load_may_write_over_and_merge_with_an_earlier_one():
    text = "wload2 w4:w5, w0:w1, 0\nwait near 0\nload v2, w4:w5, 0\n{second}\nwait far 0, near 0\nadd v3, v2, 1\nend"
    for second in ("load v2, w4:w5, 4", "loadhigh v2, w4:w5, 4"):
        assert run(text.format(second=second), np.zeros(2, np.uint32)).report.findings == ()
    assert "written" in run(text.format(second="mov v2, 1"), np.zeros(2, np.uint32)).finding("pending").message
    assert "read" in run(text.format(second="loadhigh v2, w4:w5, v2"), np.zeros(2, np.uint32)).finding("pending").message
    assert "written" in run(text.format(second="lload v2, 0"), np.zeros(2, np.uint32), shared=16).finding("pending").message


def test_the_check_can_be_switched_off():
    assert run("wload w3, w0:w1, 0\nwadd w5, w3, 1\nend", 8, checks=frozenset({"hazards"})).report.findings == ()
