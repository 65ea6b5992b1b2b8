"""Every count that the passes put into Triton's code, and every wait state, is needed: the checkers report each that is weaker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import WAITS, seen, wait_rules, wait_state_model

from tilefw.api.errors import InternalError
from tilefw.api.machine import check_wait_states, check_waits, fill_wait_states, insert_waits
from tilefw_amd.machine import wait_states, waits
from waiting.flow import TABLE
from waiting.test_triton_code import TRITON, stripped

FAST = ("vector_add", "softmax", "layer_norm", "matmul_f16", "atomic_mix_of_naturals")
SLOW = ("matmul_f16_256",)  # 3,700 instructions: what is changed takes a second each time
NAMES = [
    pytest.param(case.name, marks=() if case.name in FAST else pytest.mark.campaign)
    for case in TRITON.cases() if case.name not in SLOW
]


def reported(check: Callable[..., None], *arguments: object) -> bool:
    try:
        check(*arguments)
    except InternalError:
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_each_count_of_each_wait(name: str) -> None:
    _, code = stripped(name)
    insert_waits(code.function, TABLE, WAITS)
    unreported = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            limits = waits.limits(inst)
            for queue, count in limits.items():
                block.insts = [*whole[:place], waits.wait({**limits, queue: count + 1}), *whole[place + 1 :]]
                if not reported(check_waits, code.function, TABLE, seen):
                    unreported.append((block.label, str(inst), str(whole[place + 1])))
        block.insts = whole
    assert unreported == []


@pytest.mark.parametrize("name", NAMES)
def test_each_wait_state(name: str) -> None:
    _, code = stripped(name)
    insert_waits(code.function, TABLE, WAITS)
    fill_wait_states(code.function, TABLE, wait_state_model())
    rules = wait_rules()
    unreported = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            if inst.opcode == "s_nop":
                shorter = wait_states.pause(inst.uses[0])  # its immediate is one less than its wait states
                block.insts = [*whole[:place], *shorter, *whole[place + 1 :]]
                if not reported(check_wait_states, code.function, TABLE, rules):
                    unreported.append((block.label, str(whole[place + 1])))
        block.insts = whole
    assert unreported == []
