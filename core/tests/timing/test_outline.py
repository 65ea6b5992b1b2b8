"""Outlines of launches: what limits each, how a power limit lowers the clock, figures taken from another file."""

from dataclasses import replace
from pathlib import Path

import pytest

from tilefw.api.errors import CodeError
from tilefw.timing.chip_file import ChipFigures, Figure, packaged_figures
from tilefw.timing.outline import Outline, Work, at_clock, outlined_time
from tilefw.timing.power import clock_under_power

VALUES = {
    "clock": 1000,
    "matrix_clock": 1000,
    "processors": 10,
    "schedulers": 4,
    "f16_rate": 1000,
    "issue_rate": 64,
    "special_rate": 16,
    "shared_rate": 128,
    "shared_latency": 30,
    "matrix_latency": 30,
    "barrier": 20,
    "l1_rate": 64,
    "l2_latency": 200,
    "l2_rate": 1000,
    "l2_write_rate": 1000,
    "memory_latency": 500,
    "memory_rate": 100,
    "launch": 2,
    "workgroup_cycles": 100,
}
PRODUCT = Outline(100, 8, 2, 64, Work({"f16": 1e6}, shared=32768, staged=16384, read=16384), last=Work(write=32768), ahead=2)


def chip(**changed: float) -> ChipFigures:
    values = {**VALUES, **changed}
    return ChipFigures(
        "toy.yaml", "toy", {name: Figure(value, "", value, value, "manual", "toy") for name, value in values.items()}
    )


def test_a_product_takes_what_its_matrix_units_need_and_a_little_more() -> None:
    time = outlined_time(chip(), PRODUCT)
    least = 100 / 10 * 64 * 1e6 / 1000 / 1e9
    assert time.limit == "f16" and least < time.seconds - 2e-6 < 1.05 * least


def test_a_launch_that_moves_much_takes_what_memory_needs() -> None:
    time = outlined_time(chip(), replace(PRODUCT, memory=1e9))
    assert time.limit == "memory" and time.seconds == pytest.approx(1e9 / 100e9, rel=0.01)


def test_loads_that_are_not_issued_early_are_waited_for_in_each_step() -> None:
    alone = replace(PRODUCT, resident=1, workgroups=10)
    early, late = (outlined_time(chip(), replace(alone, ahead=ahead)).seconds for ahead in (2, 0))
    assert late - early == pytest.approx(64 * (500 + 16384 / 64) * 1e-9, rel=0.01)


def test_workgroups_that_wait_for_their_loads_meet_at_busy_units() -> None:
    """Two that take 1000 cycles of matrix units and 256 of moving each, and wait 500 beside, wait for each other as well."""
    late = replace(PRODUCT, ahead=0, resident=2, workgroups=20)
    two, one = (outlined_time(chip(), replace(late, resident=resident)).seconds - 2e-6 for resident in (2, 1))
    assert 1.4 * two < one < 1.6 * two


def test_waves_that_fetch_operands_by_instructions_take_longer_from_product_to_arithmetic() -> None:
    alone = replace(PRODUCT, resident=1, workgroups=10, step=replace(PRODUCT.step, vector=1e4, special=1e4))
    own, fetched = (outlined_time(chip(), replace(alone, fetched=fetched)).seconds for fetched in (False, True))
    assert fetched - own == pytest.approx(64 * 32768 / 128 * 1e-9, rel=0.01)


def test_a_power_limit_lowers_the_clock_of_busy_matrix_units_alone() -> None:
    limited = chip(matrix_clock=800)
    busy = outlined_time(limited, PRODUCT)
    assert 800 <= busy.clock_mhz < 850
    assert outlined_time(limited, replace(PRODUCT, memory=1e9)).clock_mhz == 1000
    assert outlined_time(at_clock(limited, 900), PRODUCT).clock_mhz == 900
    assert clock_under_power(limited, 0.5) == 1000 and clock_under_power(limited, 0.8) == pytest.approx(800 / 0.8 ** (1 / 3))


def test_units_that_wait_for_memory_get_the_clock_at_which_they_work_so_much() -> None:
    """They work half of the cycles at 1000 MHz, and at c a part of 500 / c, which allows c = 600 / (500 / c)^⅓ alone."""
    half = replace(PRODUCT, memory=2 * 100 / 10 * 64 * 1e6 / 1000 / 1e9 * 100e9)
    assert outlined_time(chip(matrix_clock=600), half).clock_mhz == pytest.approx((600**3 / 500) ** 0.5, rel=0.05)


def test_a_tail_costs_a_whole_round() -> None:
    full, tail = (outlined_time(chip(), replace(PRODUCT, workgroups=count)).seconds for count in (100, 101))
    assert tail > 1.05 * full


@pytest.mark.parametrize("name", sorted(set(VALUES) - {"l2_latency", "special_rate", "issue_rate"}))
def test_every_figure_is_asked_for_by_name(name: str) -> None:
    with pytest.raises(CodeError, match=f"no figure '{name}'"):
        outlined_time(chip().without(name), PRODUCT)


def test_a_file_takes_what_it_does_not_say_from_the_one_that_it_is_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "figures_of_toys"
    package.mkdir()
    (package / "__init__.py").write_text("")
    figure = "  {}: {{value: {}, unit: MHz, kind: manual, source: toy}}\n"
    (package / "first.yaml").write_text("chip: first\nfigures:\n" + figure.format("clock", 1) + figure.format("other", 2))
    (package / "second.yaml").write_text("chip: second\nlike: first\nfigures:\n" + figure.format("clock", 3))
    found = packaged_figures("figures_of_toys", "second", "toy")
    assert (found.chip, found["clock"], found["other"]) == ("second", 3, 2)
    for name, like in (("third", "fourth"), ("fourth", "third"), ("fifth", "nothing")):
        (package / f"{name}.yaml").write_text(f"chip: {name}\nlike: {like}\nfigures:\n" + figure.format("clock", 3))
    with pytest.raises(CodeError, match=r"fourth\.yaml is like 'third', which is like it"):
        packaged_figures("figures_of_toys", "third", "toy")
    with pytest.raises(CodeError, match=r"fifth\.yaml is like 'nothing', which figures_of_toys does not have"):
        packaged_figures("figures_of_toys", "fifth", "toy")
