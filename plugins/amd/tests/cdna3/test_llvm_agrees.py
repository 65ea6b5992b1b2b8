"""Text and bytes of every form agree with llvm-mc, both ways: a fixed sample here, 10^5 and more in the campaign."""

from __future__ import annotations

import pytest

from cdna3 import vectors
from cdna3.agreement import differences
from cdna3.llvm import needs_llvm
from cdna3.random_inst import random_instructions


@needs_llvm
def test_every_form_agrees_with_llvm() -> None:
    assert differences(list(random_instructions(seed=1, each=2))) == []


@needs_llvm
@pytest.mark.campaign
def test_a_hundred_thousand_instructions_agree_with_llvm() -> None:
    found: list[str] = []
    for seed in range(2, 12):
        found += differences(list(random_instructions(seed, each=5)))
    assert found == []


@needs_llvm
@pytest.mark.campaign
@pytest.mark.skipif(vectors.folder() is None, reason=f"{vectors.VARIABLE} names no folder of LLVM's test vectors")
def test_llvms_own_vectors_agree() -> None:
    source = vectors.folder()
    assert source is not None
    found, _ = vectors.differences(list(vectors.lines(source)))
    assert found == []
