"""A load that the plugin's table calls pure is refused: passes would move it over stores."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_uniform_code as toy

from tilefw.api.errors import PluginError
from tilefw.machine.inst import Function
from tilefw.machine.table import EFFECT, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.simt.chip import LaneAccess
from tilefw.simt.select.code import Code
from tilefw.simt.select.memory import MemorySelection
from tilefw.simt.select.values import Values


class Chip(toy.Chip):
    """Loads a word, and clears what is above it."""

    def __init__(self, traits: InstructionTraits) -> None:
        self.table = from_dict("toy", {"ld": traits, "clear": PURE}, [RegisterClass("v", 32), RegisterClass("s", 32)])

    def load(self, code: Code, access: LaneAccess) -> None:
        word = code.new_register("w32")
        code.effect("ld", [word], [access.address])
        code.effect("clear", list(access.registers), [word])  # type: ignore[arg-type]


def read(traits: InstructionTraits) -> list[str]:
    chip = Chip(traits)
    code = Code(Function("f", "toy"), chip)
    registers = (code.new_register("w32"),)
    MemorySelection(Values(code, chip))._read(LaneAccess(registers, 16, code.new_register("w64"), 0, None, 0, "", "", False))
    return [inst.opcode for inst in code.function.insts()]


@pytest.mark.parametrize("traits", [InstructionTraits(memory="global"), InstructionTraits(memory="shared", latency=9), EFFECT])
def test_a_load_that_says_what_it_reads_is_taken(traits: InstructionTraits) -> None:
    assert read(traits) == ["ld", "clear"]


@pytest.mark.parametrize("traits", [PURE, InstructionTraits(latency=20)])
def test_a_load_that_looks_like_a_sum_is_refused_with_the_chips_place(traits: InstructionTraits) -> None:
    with pytest.raises(PluginError, match="reads no memory by the instruction table") as caught:
        read(traits)
    assert caught.value.code == "TFW0515" and caught.value.place is not None
    assert Path(caught.value.place.file) == Path(__file__)
