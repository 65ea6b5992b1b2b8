"""The passes that `tilefw opt` knows by name make of lane IR what compiling makes of the kernel, all at once or one by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TARGET = ("--target", "amd-cdna3")


@pytest.fixture
def lanes(tilefw) -> str:
    """A kernel's lane IR, of loads under masks and a reduction."""
    assert tilefw("compile", "softmax", *TARGET, "--emit", "lane", "-o", "lanes.mlir")[0] == 0
    return "lanes.mlir"


def _code(text: str) -> list[str]:
    """Machine code without its places: one file is read from the other's text."""
    return [line.partition(" //")[0] for line in text.splitlines()]


def test_the_two_passes_give_what_compiling_gives(tilefw, lanes) -> None:
    pipeline = "lane-to-gfx942{disjoint=true},gfx942-code{disjoint=true}"
    assert _code(tilefw("opt", lanes, "-p", pipeline)[1]) == _code(tilefw("compile", "softmax", *TARGET, "--emit", "machine")[1])


def test_machine_code_is_read_back_between_them(tilefw, lanes) -> None:
    assert tilefw("opt", lanes, "-p", "lane-to-gfx942", "-o", "machine.mlir")[0] == 0
    whole = tilefw("opt", lanes, "-p", "lane-to-gfx942,gfx942-code")[1]
    assert _code(tilefw("opt", "machine.mlir", "-p", "gfx942-code")[1]) == _code(whole)
    assert "s_waitcnt" in whole and "s_waitcnt" not in Path("machine.mlir").read_text(encoding="utf-8")


def test_it_stops_behind_a_pass(tilefw, lanes) -> None:
    stopped = tilefw("opt", lanes, "-p", "lane-to-gfx942,gfx942-code{until=assign-registers}")[1]
    assert "$v[" in stopped and "%1 =" not in stopped and "s_waitcnt" not in stopped
    assert "s_waitcnt" in tilefw("opt", lanes, "-p", "lane-to-gfx942,gfx942-code{until=insert-waits}")[1]


def test_a_pass_that_is_not_there_is_an_error_that_lists_those_that_are(tilefw, lanes) -> None:
    status, _, err = tilefw("opt", lanes, "-p", "lane-to-gfx942,gfx942-code{until=waits}")
    assert status == 2 and "TFW0404" in err
    assert "schedule-instructions, tie-operands, assign-registers, expand-pseudos, insert-waits" in err


@pytest.mark.parametrize(("written", "words"), [
    (r", buffer = -?\d+ : i64", "needs the integer property buffer"), (r", offset = \d+ : i64", "run the pass place-shared first"),
])
def test_lane_text_that_lacks_what_selection_reads_is_the_users_to_mend(tilefw, lanes, written: str, words: str) -> None:
    whole = Path(lanes).read_text(encoding="utf-8")
    lacking = re.sub(written, "", whole)
    assert lacking != whole
    Path("lacking.mlir").write_text(lacking, encoding="utf-8")
    status, _, err = tilefw("opt", "lacking.mlir", "-p", "lane-to-gfx942")
    assert status == 1 and "TFW0402" in err and words in err
