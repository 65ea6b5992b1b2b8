"""Every shuffle brings what `lane.shuffle` says, whichever of the chip's ways it goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rules.one_row import WAVE, Column, run_selected
from served import lanes_chip

from tilefw.api.machine import Function
from tilefw.api.simt import Code, Const, Element
from tilefw.simt.select.combine import combine
from tilefw_amd.select.shuffles import shuffle

LANES = np.arange(WAVE)
VALUES = np.random.default_rng(5).integers(0, 1 << 32, WAVE, dtype=np.uint64)


def _shuffled(mode: str, amount: int) -> np.ndarray:
    return _run(lambda code, value, _: shuffle(code, mode, value, Const("i32", amount)), LANES)


def _run(make: Callable[[Code, Element, Element], Element], lanes: np.ndarray) -> np.ndarray:
    function = Function("kernel", "amd-cdna3")
    code = Code(function, lanes_chip(True))
    value, lane = code.new_register("w32"), code.new_register("w32")
    columns = [Column("i32", VALUES), Column("i32", lanes.astype(np.uint64))]
    found = make(code, value, lane)
    combine(function, code.chip.combiner)
    return run_selected(function, [value, lane], found, "i32", columns)


@pytest.mark.parametrize("distance", range(WAVE))
def test_exchanges(distance: int) -> None:
    assert (_shuffled("xor", distance) == VALUES[LANES ^ distance]).all()


@pytest.mark.parametrize("amount", [1, 2, 16, 31, 63])
def test_neighbours(amount: int) -> None:
    above, below = LANES - amount, LANES + amount
    assert (_shuffled("up", amount) == VALUES[np.where(above >= 0, above, LANES)]).all()
    assert (_shuffled("down", amount) == VALUES[np.where(below < WAVE, below, LANES)]).all()


@pytest.mark.parametrize(("first", "second"), [(8, 15), (1, 4), (7, 7), (4, 12)])
def test_an_instruction_takes_its_operand_from_one_other_lane_at_most(first: int, second: int) -> None:
    def both(code: Code, value: Element, _: Element) -> Element:
        return code("addi.i32", *(shuffle(code, "xor", value, Const("i32", distance)) for distance in (first, second)))

    assert (_run(both, LANES) == (VALUES[LANES ^ first] + VALUES[LANES ^ second]) % (1 << 32)).all()


def test_of_one_lane() -> None:
    assert (_shuffled("index", 37) == VALUES[37]).all()


def test_of_computed_lanes() -> None:
    lanes = np.random.default_rng(6).integers(0, WAVE, WAVE)
    assert (_run(lambda code, value, lane: shuffle(code, "index", value, lane), lanes) == VALUES[lanes]).all()
