"""Random control flow: behind the passes the simulator finds nothing on any path, and the checkers agree with it.

Each wait made weaker and each pause taken away is reported by the checker exactly when the simulator reports it.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from served import WAITS, seen, wait_rules, wait_state_model

from tilefw.api.errors import InternalError
from tilefw.api.machine import Function, Inst, check_wait_states, check_waits, fill_wait_states, insert_waits
from tilefw_amd.machine import waits
from waiting.flow import ARITHMETIC, MEMORY, TABLE, Shape, faults, function, shapes

_EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def finished(shape: Shape) -> Function:
    made = function(shape)
    insert_waits(made, TABLE, WAITS)
    fill_wait_states(made, TABLE, wait_state_model())
    return made


def checked(made: Function) -> str:
    """What the checkers complain of; empty when of nothing."""
    try:
        check_waits(made, TABLE, seen)
        check_wait_states(made, TABLE, wait_rules())
    except InternalError as error:
        return str(error)
    return ""


@_EXAMPLES
@given(shapes(MEMORY + ARITHMETIC[:8]))
def test_nothing_is_touched_before_it_arrives(shape: Shape) -> None:
    made = finished(shape)
    assert checked(made) == ""
    assert faults(made) == []


@_EXAMPLES
@given(shapes(ARITHMETIC))
def test_nothing_comes_too_soon_behind_what_made_it(shape: Shape) -> None:
    made = finished(shape)
    assert checked(made) == ""
    assert faults(made) == []


# A release is waited for whatever stands before it; the simulator, which has no caches, asks for it only behind a store of the
# same wave that has not finished.
_WITHOUT_RELEASES = tuple(statement for statement in MEMORY + ARITHMETIC if "wbl2" not in statement)


@_EXAMPLES
@given(shapes(_WITHOUT_RELEASES, most=5))
def test_checkers_agree_with_the_simulator_on_code_without_waits(shape: Shape) -> None:
    made = function(shape)
    assert bool(checked(made)) == bool(faults(made))


@_EXAMPLES
@given(shapes(MEMORY + ARITHMETIC, most=5))
def test_checkers_report_what_the_simulator_reports(shape: Shape) -> None:
    made = function(shape)
    assert checked(made) or not faults(made)


@settings(_EXAMPLES, max_examples=60)
@given(shapes(_WITHOUT_RELEASES, most=5))
def test_weaker_waits_are_reported_by_both_or_by_neither(shape: Shape) -> None:
    made = finished(shape)
    for block in made.blocks:
        for place, inst in enumerate(block.insts):
            for weaker in _weaker(inst):
                block.insts[place] = weaker
                assert bool(checked(made)) == bool(faults(made)), (str(inst), str(weaker))
            block.insts[place] = inst


def _weaker(inst: Inst) -> list[Inst]:
    """Each count of a wait by one more; a pause one shorter."""
    if inst.opcode == "s_nop":
        return [Inst("s_nop", (), (inst.uses[0] - 1,)) if inst.uses[0] else Inst("s_setprio", (), (0,))][: inst.uses[0] != 0]
    limits = waits.limits(inst)
    return [waits.wait({**limits, queue: count + 1}) for queue, count in limits.items()]
