"""Every wait and every pause in our own kernels is needed: the checkers find nothing as it is, and report each that is weaker."""

from __future__ import annotations

import pytest
from served import CHIP, seen, wait_rules
from test_llvm_accepts import compiled

from tilefw.api.errors import InternalError
from tilefw.api.machine import Function, Inst, check_wait_states, check_waits
from tilefw.kernels import index
from tilefw_amd.machine import wait_states, waits
from waiting import listing
from waiting.flow import TABLE

FAST = ("softmax", "matmul", "attention")
NAMES = [pytest.param(name, marks=() if name in FAST else pytest.mark.campaign) for name in index.KERNELS]


def clean(function: Function) -> bool:
    try:
        check_waits(function, TABLE, seen)
        check_wait_states(function, TABLE, wait_rules())
    except InternalError:
        return False
    return True


def weaker(inst: Inst) -> list[list[Inst]]:
    """What may stand in place of a wait or a pause if it were written by a mistaken compiler."""
    if inst.opcode == "s_nop":
        return [wait_states.pause(int(str(inst.uses[0])))]  # its immediate is one less than its wait states
    limits = waits.limits(inst)
    return [[waits.wait({**limits, queue: count + 1})] for queue, count in limits.items()]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_needed(name: str) -> None:
    artifact = compiled(CHIP, name, {})
    assert artifact is not None
    code = listing.read(artifact.text, artifact.entries[0].name, stripped=False)
    assert code is not None
    assert clean(code.function)
    spare = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            for instead in weaker(inst):
                block.insts = [*whole[:place], *instead, *whole[place + 1 :]]
                if clean(code.function):
                    spare.append((block.label, str(inst), str(whole[place + 1])))
        block.insts = whole
    assert spare == []
