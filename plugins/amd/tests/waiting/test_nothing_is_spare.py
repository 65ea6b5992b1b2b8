"""Every count that the passes put into Triton's code, and every wait state, is needed: the checkers report each that is weaker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oracles.chips import AMD, Chip
from tilefw.api.errors import InternalError
from tilefw.api.machine import Function
from tilefw_amd.machine import wait_states, waits
from waiting.test_triton_code import PASSES, TRITON, stripped

FAST = ("vector_add", "softmax", "layer_norm", "matmul_f16", "atomic_mix_of_naturals")
SLOW = ("matmul_f16_256",)  # 3,700 instructions: what is changed takes a second each time
CASES = [
    pytest.param(chip, case.name, id=f"{chip.triton[1]}-{case.name}", marks=() if case.name in names else pytest.mark.campaign)
    for chip, names in zip(AMD, (FAST, ("matmul_f16_stages1", "dot_scaled_e4m3_e5m2")), strict=True)
    for case in TRITON[chip].cases() if case.name not in SLOW
]


def reported(check: Callable[[Function], None], function: Function) -> bool:
    try:
        check(function)
    except InternalError:
        return True
    return False


@pytest.mark.parametrize(("chip", "name"), CASES)
def test_each_count_of_each_wait(chip: Chip, name: str) -> None:
    (_, code), passes = stripped(chip, name), PASSES[chip.target]
    passes.insert(code.function)
    unreported = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            limits = waits.limits(inst)
            for queue, count in limits.items():
                block.insts = [*whole[:place], waits.wait({**limits, queue: count + 1}), *whole[place + 1 :]]
                if not reported(passes.check_waits, code.function):
                    unreported.append((block.label, str(inst), str(whole[place + 1])))
        block.insts = whole
    assert unreported == []


@pytest.mark.parametrize(("chip", "name"), CASES)
def test_each_wait_state(chip: Chip, name: str) -> None:
    (_, code), passes = stripped(chip, name), PASSES[chip.target]
    passes.insert(code.function)
    passes.fill(code.function)
    unreported = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            if inst.opcode == "s_nop":
                shorter = wait_states.pause(inst.uses[0])  # its immediate is one less than its wait states
                block.insts = [*whole[:place], *shorter, *whole[place + 1 :]]
                if not reported(passes.check_wait_states, code.function):
                    unreported.append((block.label, str(whole[place + 1])))
        block.insts = whole
    assert unreported == []
