"""A scaffolded project passes its own tests once it is installed; names and folders that cannot be are refused."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilefw.cli.main import main
from tilefw.scaffold.project import KINDS, project
from tilefw.testing import distribution


def installed(folder: Path, name: str) -> dict[str, str]:
    """The environment in which the project in `folder` is installed: its entry point stands beside its source."""
    distribution.write(folder / "src", name, f"tilefw_{name}.plugin", version="0.1.0")
    path = os.pathsep.join([str(folder / "src"), *(p for p in sys.path if p)])
    return {**os.environ, "PYTHONPATH": path, "TILEFW_CACHE_DIR": str(folder / "cache"), "TILEFW_VERIFY": "1"}


@pytest.mark.campaign  # tox's environment `thirdparty` does it with wheels
@pytest.mark.parametrize("kind", KINDS)
def test_a_scaffolded_project_passes_its_own_tests(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Among them: its code is its own machine's, and a saved artifact runs where tile IR and front end cannot be imported."""
    folder = tmp_path / "project"
    assert main(["new-backend", "quark", "--out", str(folder), "--kind", kind]) == 0
    assert "tilefw conformance --target quark-v1" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib", "tests"]
    done = subprocess.run(command, cwd=folder, env=installed(folder, "quark"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_reads_like_a_backend(kind: str) -> None:
    """Every source says on its first line what it is for, keeps to our line length, and has nothing left of a template."""
    made = project("quark", kind)
    assert {"pyproject.toml", "tox.ini", ".github/workflows/ci.yml", "README.md"} <= made.files.keys()
    assert {f"src/tilefw_quark/{f}.py" for f in ("plugin", "target", "isa", "lower", "backend", "simulate")} <= made.files.keys()
    for path, text in made.files.items():
        assert "$$" not in text and "package." not in text.replace("-package.", ""), path
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse(text, path)) and text.startswith('"""'), path
            assert max(map(len, text.splitlines())) <= 132 and text.count("\n") <= 300, path


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-backend", "quark", "--out", str(tmp_path / "new"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["target"], said["kind"]) == ("tilefw.new-backend/1", "quark-v1", "simt")
    assert sorted(str(p.relative_to(tmp_path / "new")) for p in (tmp_path / "new").rglob("*") if p.is_file()) == said["files"]


NO_NAMES = ("", "My-Chip", "9lives", "core", "conformance", "tilefw", "reference", "a" * 31, "äther", "a_b", "../x")


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_no_plugin_can_have_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-backend", name, "--out", str(tmp_path / "new")]) == 2
    assert "TFW0985" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for out in ("full", "file", "file/below"):
        assert main(["new-backend", "quark", "--out", str(tmp_path / out)]) == 2
        assert "TFW0986" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"] and (tmp_path / "file").read_text() == "mine"


def test_a_name_that_is_installed_is_told(tmp_path, monkeypatch, capsys) -> None:
    from tilefw.runtime.plugins import entry_points
    from tilefw.runtime.plugins.entry_points import PluginCandidate

    monkeypatch.setattr(entry_points, "candidates", lambda: (PluginCandidate("quark", "m", "tilefw-quark", "1"),))
    assert main(["new-backend", "quark", "--out", str(tmp_path / "new")]) == 0
    assert "installed already" in capsys.readouterr().err
