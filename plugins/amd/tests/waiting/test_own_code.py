"""Every wait and every pause in our own kernels is needed: the checkers find nothing as it is, and report each that is weaker."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from served import ISAS
from test_llvm_accepts import compiled

from tilefw.api.machine import Inst
from tilefw.kernels import index
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine import wait_states, waits
from waiting import listing
from waiting.passes import Passes

FAST = (("softmax", "matmul", "attention"), ("matmul", "rmsnorm"))
KERNELS = [
    pytest.param(isa, name, id=f"{isa.chip.name}-{name}", marks=() if name in names else pytest.mark.campaign)
    for isa, names in zip(ISAS, FAST, strict=True) for name in index.KERNELS
]


def weaker(inst: Inst, told: Collection[str]) -> list[list[Inst]]:
    """What may stand in place of a wait or a pause if it were written by a mistaken compiler; not in the queues `told`."""
    if inst.opcode == "s_nop":
        return [wait_states.pause(int(str(inst.uses[0])))]  # its immediate is one less than its wait states
    limits = waits.limits(inst)
    return [[waits.wait({**limits, queue: count + 1})] for queue, count in limits.items() if queue not in told]


@pytest.mark.parametrize(("isa", "name"), KERNELS)
def test_each_is_needed(isa: InstructionSet, name: str) -> None:
    artifact, passes = compiled(isa.chip, name, {}), Passes(isa)
    assert artifact is not None
    code = listing.read(isa, artifact.text, artifact.entries[0].name, stripped=False)
    assert code is not None
    assert passes.complaint(code.function) == ""
    # A pipeline says itself when its copies to LDS must be there: the simulator judges that (`hsaco_oracles`), not the checkers.
    told = ("vmcnt",) if any("lds" in inst.uses for inst in code.function.insts()) else ()
    spare = []
    for block in code.function.blocks:
        whole = block.insts
        for place, inst in enumerate(whole):
            for instead in weaker(inst, told):
                block.insts = [*whole[:place], *instead, *whole[place + 1 :]]
                if not passes.complaint(code.function):
                    spare.append((block.label, str(inst), str(whole[place + 1])))
        block.insts = whole
    assert spare == []
