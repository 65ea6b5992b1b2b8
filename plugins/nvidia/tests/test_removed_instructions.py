"""A chip that was made with fewer registers, or without an instruction: its code keeps to it where core or another one serves."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from chips_here import OLDEST
from isa.machine import launch

from tilefw.api import ALL_CHECKS, Artifact, CompileOptions, PluginError
from tilefw.testing import one_row_softmax
from tilefw_nvidia import chips as pages
from tilefw_nvidia.backend import NvidiaBackend
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.targets import target
from tilefw_nvidia.ptxas import assemble, find_ptxas

SIZE = 512
# What the kernel below uses on the whole chip, and the compiler can do without.
SPARE = ("shfl.sync", "ex2.approx", "max.f32", "div.full.f32", "mad.wide.s32", "ld.shared.v4.b32")


def compiled(chip: Chip, size: int, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The kernel for a chip that no page has."""
    info, options = target(OLDEST), CompileOptions(num_warps=4)
    monkeypatch.setattr(pages, "chips", lambda: {OLDEST.name: chip})
    backend = NvidiaBackend(info)
    module, ctx = one_row_softmax.tile_module(size)
    for step in backend.pipeline(options):
        step.apply(ctx, module)
    return backend.emit(module, options)


def result(text: str, chip: Chip, x: np.ndarray) -> np.ndarray:
    (_, found), findings = launch(text.replace(one_row_softmax.NAME, "k"), [x, x * 0], 1, 128, chip, checks=ALL_CHECKS)
    assert findings == ()
    return np.frombuffer(found, np.float32)


@pytest.mark.parametrize("removed", SPARE)
def test_code_for_the_chip_does_without_the_instruction(removed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = one_row_softmax.operand(SIZE)
    for chip in (OLDEST, replace(OLDEST, removed=frozenset({removed}))):
        text = compiled(chip, SIZE, monkeypatch).text
        assert (f"{removed}." in text or f"{removed} " in text) == (chip is OLDEST)
        np.testing.assert_allclose(result(text, chip, x), one_row_softmax.expected(x), rtol=1e-5)


@pytest.mark.parametrize("removed", ["bar.sync", "add.f32", "ld.param.u64", "st.shared.b32"])
def test_an_instruction_that_nothing_replaces_is_refused_by_name(removed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError, match=f"has no {re.escape(removed)}") as caught:
        compiled(replace(OLDEST, removed=frozenset({removed})), SIZE, monkeypatch)
    assert caught.value.code == "TFW0512"


def test_the_code_says_how_many_registers_a_thread_has(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(OLDEST, registers_per_thread=40)
    assert ".maxnreg" not in compiled(OLDEST, 8192, monkeypatch).text
    artifact = compiled(few, 8192, monkeypatch)
    assert ".maxnreg 40\n" in artifact.text
    if find_ptxas() is not None:
        used = assemble(artifact, few, ours=True).resources.registers
        assert used is not None and used[one_row_softmax.NAME] <= 40
