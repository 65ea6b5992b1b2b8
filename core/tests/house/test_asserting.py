"""A test that may have asserted nothing is found in its text, and fails when it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tree import ROOT

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

def test_sure(items=()):
    assert items == ()
    for item in items:
        assert item
'''
FAIL = {"test_items[items0]", "test_calls[items0]", "test_while", "test_raises"}


def test_tests_whose_loops_did_not_run_fail(tmp_path: Path) -> None:
    file = tmp_path / "test_loops.py"
    file.write_text(TESTS)
    assert looped(str(file)).keys() == {"test_items", "test_calls", "test_drawn", "test_while", "test_raises"}
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-p", "oracles.asserting", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "", "PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    failed = {line.partition("::")[2].partition(" ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == FAIL and f"{len(FAIL)} failed, 4 passed" in done.stdout, done.stdout
