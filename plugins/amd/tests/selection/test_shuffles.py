"""Every shuffle brings what `lane.shuffle` says, whichever of the chip's ways it goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rules.one_row import WAVE, Column, run_selected, started
from served import CHIPS

from tilefw.api.simt import Code, Const, Element
from tilefw.simt.select.combine import combine
from tilefw_amd.chips import Chip
from tilefw_amd.select.shuffles import shuffle

LANES = np.arange(WAVE)
VALUES = np.random.default_rng(5).integers(0, 1 << 32, WAVE, dtype=np.uint64)


on_each_chip = pytest.mark.parametrize("chip", CHIPS, ids=str)


def _shuffled(chip: Chip, mode: str, amount: int) -> np.ndarray:
    return _run(chip, lambda code, value, _: shuffle(code, mode, value, Const("i32", amount)), LANES)


def _run(chip: Chip, make: Callable[[Code, Element, Element], Element], lanes: np.ndarray) -> np.ndarray:
    code = started(chip)
    function = code.function
    value, lane = code.new_register("w32"), code.new_register("w32")
    columns = [Column("i32", VALUES), Column("i32", lanes.astype(np.uint64))]
    found = make(code, value, lane)
    combine(function, code.chip.combiner)
    return run_selected(function, [value, lane], found, "i32", columns, chip=chip)


# Distances by the ways that they go: a second chip tries those of one bit, and a few of several.
EXCHANGES = [
    pytest.param(chip, distance, id=f"{chip.name}-{distance}")
    for chip in CHIPS for distance in (range(WAVE) if chip is CHIPS[0] else (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63))
]


@pytest.mark.parametrize(("chip", "distance"), EXCHANGES)
def test_exchanges(chip: Chip, distance: int) -> None:
    assert (_shuffled(chip, "xor", distance) == VALUES[LANES ^ distance]).all()


@pytest.mark.parametrize("amount", [1, 2, 16, 31, 63])
@on_each_chip
def test_neighbours(chip: Chip, amount: int) -> None:
    above, below = LANES - amount, LANES + amount
    assert (_shuffled(chip, "up", amount) == VALUES[np.where(above >= 0, above, LANES)]).all()
    assert (_shuffled(chip, "down", amount) == VALUES[np.where(below < WAVE, below, LANES)]).all()


@pytest.mark.parametrize(("first", "second"), [(8, 15), (1, 4), (7, 7), (4, 12)])
@on_each_chip
def test_an_instruction_takes_its_operand_from_one_other_lane_at_most(chip: Chip, first: int, second: int) -> None:
    def both(code: Code, value: Element, _: Element) -> Element:
        return code("addi.i32", *(shuffle(code, "xor", value, Const("i32", distance)) for distance in (first, second)))

    assert (_run(chip, both, LANES) == (VALUES[LANES ^ first] + VALUES[LANES ^ second]) % (1 << 32)).all()


@on_each_chip
def test_of_one_lane(chip: Chip) -> None:
    assert (_shuffled(chip, "index", 37) == VALUES[37]).all()


@on_each_chip
def test_of_computed_lanes(chip: Chip) -> None:
    lanes = np.random.default_rng(6).integers(0, WAVE, WAVE)
    assert (_run(chip, lambda code, value, lane: shuffle(code, "index", value, lane), lanes) == VALUES[lanes]).all()
