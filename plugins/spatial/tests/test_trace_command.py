"""`tilefw trace` on this target: files as their names say, one report as words and as JSON, machine code by its launch file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tilefw.cli.main import main

EXAMPLES = next(p for p in Path(__file__).parents if (p / "examples").is_dir()) / "examples" / "sdm-1"
SMALL = ["vector_add", "--target", "spatial-sdm1", "--param", "n=700"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))


def test_the_file_is_what_its_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, picture = tmp_path / "a.json", tmp_path / "a.svg"
    assert main(["trace", *SMALL, "-o", str(trace)]) == 0 and main(["trace", *SMALL, "-o", str(picture), "--json"]) == 0
    written = json.loads(trace.read_text())
    spans = [event for event in written["traceEvents"] if event["ph"] == "X"]
    shown = capsys.readouterr()
    words, _, report = shown.out.partition("{")
    said = json.loads("{" + report)
    assert words.startswith("vector_add on spatial-sdm1 (sim): 43 cycles") and said["schema"] == "tilefw.trace/1"
    assert said["cycles"] == written["otherData"]["cycles"] == 43 and said["facts"]["cycles predicted"] == 43
    assert len(spans) == sum(row["spans"] for row in said["rows"]) == 13
    assert said["utilisation"] == written["otherData"]["utilisation"]
    assert ElementTree.parse(picture).getroot().tag.endswith("svg") and "ui.perfetto.dev" in shown.err


def test_machine_code_is_traced_as_its_launch_file_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = [str(EXAMPLES / "increment.s"), "--target", "spatial-sdm1", "--launch", str(EXAMPLES / "launch.yaml")]
    assert main(["trace", *code, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == 40


def test_a_function_of_a_file_is_traced_as_its_launch_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import tilefw, tilefw.language as tl\n@tilefw.jit\ndef ones(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 1.0)\n"
    )
    stated = ["--signature", "x=*fp32", "--constexpr", "B=64", "--grid", "1", "--extent", "x=256"]
    assert main(["trace", f"{kernel}:ones", "--target", "spatial-sdm1", *stated]) == 0
    assert capsys.readouterr().out.startswith("ones on spatial-sdm1 (sim): ")


def test_run_tells_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *SMALL, "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert main(["trace", *SMALL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["utilisation"] == ran["utilisation"]
