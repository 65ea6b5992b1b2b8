"""Text and bytes of every form agree with llvm-mc, both ways: a fixed sample here, 10^5 and more in the campaign."""

from __future__ import annotations

import pytest
from served import ISAS

from cdna3 import vectors
from cdna3.agreement import differences
from cdna3.llvm import needs_llvm
from cdna3.random_inst import random_instructions
from tilefw_amd.isa.set import InstructionSet

on_each_chip = pytest.mark.parametrize("isa", ISAS, ids=str)


@needs_llvm
@on_each_chip
def test_every_form_agrees_with_llvm(isa: InstructionSet) -> None:
    assert differences(isa, list(random_instructions(isa, seed=1, each=2))) == []


@needs_llvm
@pytest.mark.campaign
@on_each_chip
def test_a_hundred_thousand_instructions_agree_with_llvm(isa: InstructionSet) -> None:
    found: list[str] = []
    for seed in range(2, 12):
        found += differences(isa, list(random_instructions(isa, seed, each=5)))
    assert found == []


@needs_llvm
@pytest.mark.campaign
@on_each_chip
@pytest.mark.skipif(vectors.folder() is None, reason=f"{vectors.VARIABLE} names no checkout of LLVM")
def test_llvms_own_vectors_agree(isa: InstructionSet) -> None:
    source = vectors.folder()
    assert source is not None
    found = [difference for outcome in vectors.outcomes(isa, vectors.files(source)) for difference in outcome.differences]
    assert [str(difference) for difference in found if not difference.reason] == []
