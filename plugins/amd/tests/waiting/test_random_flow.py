"""Random control flow: behind the passes the simulator finds nothing on any path, and the checkers agree with it.

Each wait made weaker and each pause taken away is reported by the checker exactly when the simulator reports it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import ISAS

from tilefw.api.machine import Function, Inst
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import waits
from waiting.flow import ARITHMETIC, MEMORY, Shape, faults, function, served, shapes
from waiting.passes import Passes

_EXAMPLES = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
PASSES = tuple(map(Passes, ISAS))
on_each_chip = pytest.mark.parametrize("passes", PASSES, ids=lambda passes: passes.isa.chip.name)


def drawn(data: st.DataObject, passes: Passes, menu: Sequence[str], most: int = 8) -> Shape:
    """A shape of what the chip has of the menu."""
    return data.draw(shapes(served(passes.isa, menu), most))


def finished(passes: Passes, shape: Shape) -> Function:
    made = function(passes.isa, shape)
    passes.insert(made)
    passes.fill(made)
    return made


@on_each_chip
@_EXAMPLES
@given(st.data())
def test_nothing_is_touched_before_it_arrives(passes: Passes, data: st.DataObject) -> None:
    made = finished(passes, drawn(data, passes, MEMORY + ARITHMETIC[:8]))
    assert passes.complaint(made) == ""
    assert faults(passes.isa, made) == []


@on_each_chip
@_EXAMPLES
@given(st.data())
def test_nothing_comes_too_soon_behind_what_made_it(passes: Passes, data: st.DataObject) -> None:
    made = finished(passes, drawn(data, passes, ARITHMETIC))
    assert passes.complaint(made) == ""
    assert faults(passes.isa, made) == []


# A release is waited for whatever stands before it; the simulator, which has no caches, asks for it only behind a store of the
# same wave that has not finished.
_WITHOUT_RELEASES = tuple(statement for statement in MEMORY + ARITHMETIC if "wbl2" not in statement)


@on_each_chip
@_EXAMPLES
@given(st.data())
def test_checkers_agree_with_the_simulator_on_code_without_waits(passes: Passes, data: st.DataObject) -> None:
    made = function(passes.isa, drawn(data, passes, _WITHOUT_RELEASES, most=5))
    assert bool(passes.complaint(made)) == bool(faults(passes.isa, made))


@on_each_chip
@_EXAMPLES
@given(st.data())
def test_checkers_report_what_the_simulator_reports(passes: Passes, data: st.DataObject) -> None:
    made = function(passes.isa, drawn(data, passes, MEMORY + ARITHMETIC, most=5))
    assert passes.complaint(made) or not faults(passes.isa, made)


@on_each_chip
@settings(_EXAMPLES, max_examples=30)
@given(st.data())
def test_weaker_waits_are_reported_by_both_or_by_neither(passes: Passes, data: st.DataObject) -> None:
    made = finished(passes, drawn(data, passes, _WITHOUT_RELEASES, most=5))
    for block in made.blocks:
        for place, inst in enumerate(block.insts):
            for weaker in _weaker(inst):
                block.insts[place] = weaker
                assert bool(passes.complaint(made)) == bool(faults(passes.isa, made)), (str(inst), str(weaker))
            block.insts[place] = inst


def _weaker(inst: Inst) -> list[Inst]:
    """Each count of a wait by one more; a pause one shorter."""
    if inst.opcode == "s_nop":
        return [Inst("s_nop", (), (inst.uses[0] - 1,)) if inst.uses[0] else Inst("s_setprio", (), (0,))][: inst.uses[0] != 0]
    limits = waits.limits(inst)
    return [waits.wait({**limits, queue: count + 1}) for queue, count in limits.items()]


def test_each_chip_has_statements_of_its_own() -> None:
    """What one chip alone has is drawn for it."""
    menus: dict[InstructionSet, set[str]] = {passes.isa: set(served(passes.isa, MEMORY + ARITHMETIC)) for passes in PASSES}
    assert set().union(*menus.values()) == {*MEMORY, *ARITHMETIC}
    assert len({frozenset(menu) for menu in menus.values()}) == len(ISAS)
