"""What the plugin's table says of loads, stores, atomics, barriers and ends must fit them: passes would move or remove them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import test_uniform_code as toy

from tilefw.api.errors import PluginError
from tilefw.machine.inst import Function
from tilefw.machine.table import BRANCH, EFFECT, JUMP, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.simt.chip_requests import LaneAccess
from tilefw.simt.select import declared
from tilefw.simt.select.code import Code

GLOBAL, SHARED = InstructionTraits(memory="global"), InstructionTraits(memory="shared", latency=9)
STORE, STORE_SHARED = InstructionTraits(memory="global", effects=True), InstructionTraits(memory="shared", effects=True)


class Chip(toy.Chip):
    """Every method is one instruction, `op`, and one that only computes."""

    def __init__(self, traits: InstructionTraits) -> None:
        self.table = from_dict("toy", {"op": traits, "clear": PURE}, [RegisterClass("v", 32), RegisterClass("s", 32)])

    def load(self, code: Code, access: LaneAccess) -> None:
        word = code.new_register("w32")
        code.effect("op", [word], [access.address])
        code.effect("clear", list(access.registers), [word])  # type: ignore[arg-type]

    def store(self, code: Code, access: LaneAccess) -> None:
        word = code.inst("clear", "w32", *access.registers)  # type: ignore[arg-type]
        code.effect("op", (), [access.address, word])

    def exit(self, code: Code) -> None:
        code.effect("op")


def made(traits: InstructionTraits, call: Callable[[Chip, Code], None]) -> list[str]:
    chip = Chip(traits)
    code = Code(Function("f", "toy"), chip)
    call(chip, code)
    return [inst.opcode for inst in code.function.insts()]


def load(chip: Chip, code: Code, space: str = "") -> None:
    declared.load(chip, code, access(code, space))


def store(chip: Chip, code: Code, space: str = "") -> None:
    declared.store(chip, code, access(code, space))


def access(code: Code, space: str) -> LaneAccess:
    return LaneAccess((code.new_register("w32"),), 16, code.new_register("w64"), 0, None, 0, "", "", False, space)


def load_shared(chip: Chip, code: Code) -> None:
    load(chip, code, "shared")


def store_shared(chip: Chip, code: Code) -> None:
    store(chip, code, "shared")


def barrier(chip: Chip, code: Code) -> None:
    declared.act(chip, code, "barriers", lambda: code.effect("op"))


def loop_of_two_blocks(chip: Chip, code: Code) -> None:
    def emit() -> None:
        code.start(code.label("again"))
        code.effect("op")
        code.start(code.label("done"))

    declared.act(chip, code, "atomic accesses", emit)


RIGHT = [
    (load, GLOBAL), (load, EFFECT), (load_shared, SHARED), (store, STORE), (store, EFFECT), (store_shared, STORE_SHARED),
    (barrier, EFFECT), (barrier, GLOBAL), (loop_of_two_blocks, EFFECT), (declared.end, JUMP),
]
WRONG = [
    (load, PURE, "loads with 'op', 'clear', none of which reads memory"), (load, InstructionTraits(latency=20), "reads memory"),
    (load, SHARED, "loads from global memory with 'op', which accesses 'shared'"), (load_shared, GLOBAL, "from shared memory"),
    (store, PURE, "stores with 'op', which has no effect"), (store, GLOBAL, "stores with 'op', which has no effect"),
    (store, STORE_SHARED, "stores to global memory with 'op', which accesses 'shared'"), (store_shared, STORE, "to shared memory"),
    (barrier, PURE, "makes barriers of 'op', which has no effect"), (loop_of_two_blocks, PURE, "makes atomic accesses of 'op'"),
    (declared.end, PURE, "ends programs with 'op'"), (declared.end, BRANCH, "ends programs with 'op'"),
]


@pytest.mark.parametrize(("call", "traits"), RIGHT)
def test_an_instruction_that_is_declared_as_what_it_does_is_taken(call: Callable, traits: InstructionTraits) -> None:
    assert "op" in made(traits, call)


@pytest.mark.parametrize(("call", "traits", "message"), WRONG)
def test_one_that_passes_would_move_or_remove_is_refused(call: Callable, traits: InstructionTraits, message: str) -> None:
    with pytest.raises(PluginError, match=message) as caught:
        made(traits, call)
    assert caught.value.code == "TFW0515" and caught.value.place is not None
    assert Path(caught.value.place.file) == Path(__file__)


def test_a_method_that_emits_nothing_is_taken() -> None:
    assert made(PURE, lambda chip, code: declared.act(chip, code, "fences", lambda: None)) == []
