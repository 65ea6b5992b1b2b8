"""A chip file is refused at the line that is missing something or makes no sense."""

import pytest

from tilefw.api.errors import CodeError
from tilefw.timing.chip_file import read_chip_file

GOOD = """chip: toy
figures:
  clock: {value: 1000, unit: MHz, low: 900, high: 1100, kind: manual, source: "the toy's page"}
  latency: {value: 4, unit: cycles, low: 4, high: 8, kind: assumption, source: "nobody has measured it"}
"""


def refused(text: str) -> CodeError:
    with pytest.raises(CodeError) as caught:
        read_chip_file(text, "toy.yaml")
    assert caught.value.code == "TFW0665"
    return caught.value


def test_a_good_file_gives_its_figures_and_both_ends_of_their_ranges() -> None:
    figures = read_chip_file(GOOD, "toy.yaml")
    assert figures["clock"] == 1000 and figures.figure("latency").kind == "assumption"
    assert (figures.fast()["clock"], figures.fast()["latency"]) == (1100, 4)
    assert (figures.slow()["clock"], figures.slow()["latency"]) == (900, 8)
    assert figures.scaled("clock", 2)["clock"] == 2000


def test_a_missing_figure_is_named_with_its_file() -> None:
    with pytest.raises(CodeError, match=r"toy\.yaml has no figure 'clock'"):
        read_chip_file(GOOD, "toy.yaml").without("clock")["clock"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value: 4", "value: four", "not a number"),
        ("value: 4", "value: -4", "not negative"),
        ("value: 4", "value: 0", "which no machine has"),
        ("value: 4", "value: .inf", "not a number|finite"),
        ("value: 4", "value: 9", "not between 4 and 8"),
        ("unit: cycles", "unit: furlongs", "'furlongs' is none of"),
        ("kind: assumption", "kind: rumour", "'rumour' is none of"),
        ('source: "nobody has measured it"', 'source: ""', "does not say where it comes from"),
        (', source: "nobody has measured it"', "", "has no source"),
        ("value: 4, ", "", "has no value"),
        ("low: 4", "lowest: 4", "'lowest' is not part of a figure"),
    ],
)
def test_the_line_of_a_bad_figure_is_named(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    error = refused(GOOD.replace(old, new))
    assert error.place is not None and error.place.line == 4
    import re

    assert re.search(message, str(error))


def test_a_rate_that_may_be_nothing_is_refused() -> None:
    assert "would never end" in str(refused(GOOD.replace("low: 900", "low: 0")))
    assert read_chip_file(GOOD.replace("low: 4", "low: 0"), "toy.yaml").fast()["latency"] == 0


@pytest.mark.parametrize("text", ["", "[]", "chip: toy\n", "chip: toy\nfigures: 3\n", "chip: toy\nmore: {}\n", "a: &b 1\nc: *b\n"])
def test_what_is_no_chip_file_is_refused(text: str) -> None:
    refused(text)
