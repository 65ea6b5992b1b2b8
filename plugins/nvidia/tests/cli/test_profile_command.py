"""What `tilefw profile` prints for people and as JSON is of one launch, and a number of workgroups that says nothing is refused."""

from __future__ import annotations

import json

from tilefw.cli.main import main

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
