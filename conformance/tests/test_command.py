"""What a user gets wrong on the command line is told once, before anything runs, with exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilefw.cli.main import main
from tilefw.runtime.plugins.loader import registry
from tilefw_conformance.report.reading import read
from tilefw_conformance.running import targets

ONE = ("-k", "vector_add/ragged/n=33")


@pytest.mark.parametrize(("argv", "said"), [
    (["--target", "reference", *ONE, "--budget", "0"], "budget is a positive whole number"),
    (["--target", "reference", *ONE, "--seed", "-1"], "seed is a whole number, 0 or more"),
    (["--target", "reference", *ONE, "--checks", "bonds"], "did you mean 'bounds'"),
    (["--target", "reference", *ONE, "--option", "num_warp=2"], "did you mean 'num_warps'"),
    (["--target", "reference", *ONE, "--option", "num_warps=3"], "num_warps must be a power of 2"),
    (["--target", "reference", *ONE, "--executor", "hw"], "reference has no hardware executor"),
    (["--target", "reference", "--target", "referense", *ONE], "did you mean 'reference'"),
    (["--target", "reference", "-k", "(cast or swiglu) and fp16"], "no parentheses"),
    (["vrify", "report"], "did you mean 'verify'"),
])
def test_a_mistake_is_told_once_and_nothing_runs(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("error[") == 1 and said in err, err


def test_launch_keywords_of_the_whole_run_stand_in_its_report(tmp_path: Path) -> None:
    said = ["--option", "num_warps=2", "debug=True"]
    assert main(["conformance", "--target", "reference", *ONE, *said, "--jobs", "1", "--report", str(tmp_path)]) == 0
    report = read(str(tmp_path))
    assert report.header["options"] == {"keywords": ["num_warps=2", "debug=True"]}
    (result,) = report.of("reference")
    assert "--option num_warps=2 --option debug=True" in result["reproduce"]


def test_a_list_of_two_targets_names_a_case_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", "reference", "--target", "nvidia-sm80", *ONE, "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == ["vector_add/ragged/n=33"]


def test_all_is_every_target_that_executes_each_once() -> None:
    named = targets(["all", "reference", "nvidia-a100"])
    assert named == [info.name for info in registry().infos() if "simulate" in info.provides] and len(named) == len(set(named)) > 5


def test_who_selects_nothing_is_told_the_level_that_has_something(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that is right but for `--level` looks like one with a wrong `-k`."""
    assert main(["conformance", "--target", "reference", "-k", "no_such_case", "--list"]) == 5
    assert capsys.readouterr() == ("", "reference: no case was selected\n")
    assert main(["conformance", "--target", "reference", "-k", "argmax/many_warps", "--list"]) == 5
    assert "selected; of --level extended there are " in capsys.readouterr().err


def test_a_part_that_has_nothing_of_a_selection_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    """`-k` of one case over targets that run parts: the part without it has nothing to do."""
    codes, told = [], []
    for part in ("1/2", "2/2"):
        codes.append(main(["conformance", "--target", "reference", *ONE, "--part", part, "--jobs", "1"]))
        told.append(capsys.readouterr())
    assert codes == [0, 0] and sum("1 pass" in out for out, _ in told) == 1
    assert sum(err == "reference: no case was selected; of other parts there are 1\n" for _, err in told) == 1
    assert main(["conformance", "--target", "reference", "-k", "no_such_case", "--part", "1/2"]) == 5
