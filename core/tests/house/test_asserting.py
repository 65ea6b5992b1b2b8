"""A test that may have asserted nothing is found in its text, and fails when it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT

from oracles import assertion_marks
from oracles.asserting import looped

TESTS = '''
import pytest
from hypothesis import given, strategies

def check_one(x):
    assert x == 1

def judged(x):
    if x != 1:
        raise ValueError

@pytest.mark.parametrize("items", [[], [1]])
def test_items(items):
    for item in items:
        assert item == 1

@pytest.mark.parametrize("items", [[], [1]])
def test_calls(items):
    for item in items:
        check_one(item)
        judged(item)

@given(strategies.lists(strategies.just(1)))
def test_drawn(items):
    for item in items:
        assert item == 1

def test_while():
    found = []
    while found:
        assert found.pop()

def test_raises():
    for error in ():
        with pytest.raises(error):
            raise error

def test_in_a_block():
    """The assertion stands below an else, a handler and a with."""
    for item in (0, 1):
        if item:
            pass
        else:
            try:
                raise KeyError
            except KeyError:
                with pytest.raises(ZeroDivisionError):
                    1 / item

def test_sure(items=()):
    assert items == ()
    for item in items:
        assert item
'''
FAIL = {"test_items[items0]", "test_calls[items0]", "test_while", "test_raises"}


@pytest.mark.parametrize("way", ["rewrite", "plain"], ids=["marked", "traced"])
def test_tests_whose_loops_did_not_run_fail(way: str, tmp_path: Path) -> None:
    file = tmp_path / "test_loops.py"
    file.write_text(TESTS)
    assert looped(str(file)).keys() == {
        "test_items", "test_calls", "test_drawn", "test_while", "test_raises", "test_in_a_block",
    }
    options = ["-q", "-rf", "-p", "no:cacheprovider", "-p", "oracles.asserting", f"--assert={way}"]
    command = [sys.executable, "-m", "pytest", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "", "PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    failed = {line.partition("::")[2].partition(" ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == FAIL and f"{len(FAIL)} failed, 5 passed" in done.stdout, done.stdout


def test_the_tests_of_this_tree_are_marked_and_not_traced() -> None:
    for name in ("this test itself",):
        assert name and "test_the_tests_of_this_tree_are_marked_and_not_traced" in globals()[assertion_marks.MARKED]
        assert globals()[assertion_marks.REACHED] and sys.gettrace() is None
