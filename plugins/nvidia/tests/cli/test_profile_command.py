"""What `tilefw profile` prints for people and as JSON is of one launch, and a number of workgroups that says nothing is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tilefw
from tilefw.api.errors import LaunchError, UsageError
from tilefw.cli.main import main
from tilefw.cli.scripts import function

SOURCE = """import tilefw
import tilefw.language as tl

@tilefw.jit
def add_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x + 1, mask=at < n)
"""
STATED = (
    "--signature", "x_ptr=*fp32", "y_ptr=*fp32", "n=i32", "--constexpr", "BLOCK=1024", "--grid", "5", "--scalar", "n=5000",
    "--extent", "x_ptr=20000", "y_ptr=20000",
)
LAUNCH = ("profile", "vector_add", "--target", "nvidia-sm80", "--param", "n=5000")


def test_both_forms_tell_of_the_same_launch(capsys) -> None:
    assert main([*LAUNCH, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["profiles"]
    assert abs(sum(limit["share"] for limit in told["limits"]) - 1) < 1e-9
    assert main(list(LAUNCH)) == 0
    text = capsys.readouterr().out
    assert f"{told['cycles']:,.0f} cycles" in text and f"cycles go to {told['limits'][0]['cause']} " in text
    assert f"{told['residency']['workgroups']} workgroups" in text


def test_no_workgroups_tell_nothing_of_what_is_shared(capsys) -> None:
    assert main([*LAUNCH, "--workgroups", "0"]) == 2
    assert "0 is not 1 or more" in capsys.readouterr().err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    return path


def test_a_function_of_a_file_and_the_result_of_its_launch_have_one_profile(file: Path, capsys) -> None:
    assert main(["profile", f"{file}:add_one", "--target", "nvidia-sm80", *STATED, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["profiles"]
    assert {line["where"] for line in told["lines"]} >= {f"{file}:{number}" for number in (6, 7, 8)}
    x, y = np.ones(5000, np.float32), np.zeros(5000, np.float32)
    with tilefw.target("nvidia-sm80", executor="sim"):
        result = function(str(file), "add_one")[(5,)](x, y, 5000, BLOCK=1024)
    y[:] = 7
    profile = result.profile()
    assert profile.cycles == pytest.approx(told["cycles"])
    assert (y == 7).all(), "a profile leaves the arrays of its launch alone"
    assert f"{profile.cycles:,.0f} cycles" in repr(profile)
    with pytest.raises(UsageError, match="workgroups is a positive whole number, not 0"):
        result.profile(workgroups=0)


def test_a_launch_that_is_not_told_or_goes_out_of_bounds_has_no_profile(file: Path, capsys) -> None:
    word = f"{file}:add_one"
    assert main(["profile", word, "--target", "nvidia-sm80", *STATED[:6]]) == 2
    assert "it lacks --grid, --extent x_ptr, --extent y_ptr, --scalar n" in capsys.readouterr().err
    assert main(["profile", word, "--target", "nvidia-sm80", *STATED, "z_ptr=4"]) == 2
    assert "the signature has no pointer 'z_ptr'" in capsys.readouterr().err
    assert main(["profile", word, "--target", "nvidia-sm80", *STATED[:-1], f"y_ptr={1 << 62}"]) == 2
    assert "no room for 4,611,686,018,427,387,904 bytes" in capsys.readouterr().err
    assert main(["profile", word, "--target", "nvidia-sm80", *STATED[:-1], "y_ptr=1000"]) == 1
    assert "TFW0801" in capsys.readouterr().err
    assert main(["profile", "vector_add", *STATED[:2]]) == 2
    assert "TFW0917" in capsys.readouterr().err
    assert main(["profile", word, "--target", "cpu-native", *STATED]) == 1
    assert "TFW0666" in capsys.readouterr().err


def test_a_launch_of_nothing_has_no_profile(file: Path) -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with tilefw.target("nvidia-sm80", executor="sim"):
        result = function(str(file), "add_one")[(0,)](x, y, 8, BLOCK=1024)
    with pytest.raises(LaunchError, match="TFW0667"):
        result.profile()
