"""`-p MODULE` and `--disable-plugin NAME` hold in the processes that run the cases, and in the command that runs one again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tilefw.cli.main import main

ENDS_WORKERS = """
import os
TILEFW_API = (0, 1)
from tilefw.api import hookimpl

@hookimpl
def tilefw_after_pass(target, pass_name, seconds):
    os._exit(7)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed_reference: Callable[[str], str]) -> Path:
    """Two plugins, each a file of the current folder: one has a target, the other ends whatever process compiles."""
    (tmp_path / "tilefw_alone.py").write_text(renamed_reference("alone-x"))
    (tmp_path / "tilefw_ender.py").write_text(ENDS_WORKERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def run(*options: str, before: tuple[str, ...] = ("-p", "tilefw_alone")) -> int:
    return main([*before, "conformance", "--target", "alone-x", "-k", "vector_add/ragged/n=0", *options])


def results() -> list[dict[str, object]]:
    lines = map(json.loads, Path("r/report.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == "result"]


def test_a_plugin_of_one_file_is_run_by_workers_and_by_the_command_of_the_report(folder: Path) -> None:
    assert run("--report", "r") == 0
    ran = results()
    assert ran and all(str(one["reproduce"]).startswith("tilefw -p tilefw_alone run vector_add --target alone-x ") for one in ran)
    assert "tilefw_alone" not in sys.modules, "the suite itself never runs a plugin's code"


def test_a_plugin_that_is_switched_off_is_off_in_workers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ("-p", "tilefw_alone", "-p", "tilefw_ender")
    assert run("--report", "r", before=both) == 1
    assert "ended by itself with status 7" in json.dumps(results())
    assert run("--disable-plugin", "ender", before=both) == 0
    capsys.readouterr()
    assert run("--disable-plugin", "alone", before=both) == 4
    assert "TFW0505" in capsys.readouterr().err
