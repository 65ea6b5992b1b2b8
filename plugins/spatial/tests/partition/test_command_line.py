"""Launch keywords that a target declares are options of the command line, under their own names."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tilefw.cli.main import main

SMALL = ["--param", "m=24", "n=20", "k=40"]


def run(words: Sequence[str]) -> int:
    return main(["run", "matmul", *SMALL, *words])


@pytest.mark.parametrize("words", [
    ["--chips", "2", "--split", "k"], ["--chips=2", "--split=k"], ["--option", "chips=2", "split=k"],
])
def test_chips_and_split_reach_the_target(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--target", "spatial-sdm1", "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["resources"]["instructions"]["DSK"] == 2


@pytest.mark.parametrize(("words", "message"), [
    (["--target", "reference", "--chips", "2"], "TFW0320"),
    (["--target", "spatial-sdm1", "--chips"], "TFW0911"),
    (["--target", "spatial-sdm1", "--split", "--json"], "TFW0911"),
    (["--target", "spatial-sdm1", "--chips", "9"], "TFW0655"),
])
def test_mistakes_are_told(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) != 0
    said = capsys.readouterr()
    assert message in said.err + said.out
