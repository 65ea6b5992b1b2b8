"""The command line in a folder that holds the example of machine code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "machine-code"


@pytest.fixture
def tilefw(capsysbinary, tmp_path, monkeypatch):
    """`tilefw(words…)` gives exit code, stdout, stderr; never a traceback."""
    from tilefw.cli.main import main

    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEFW_TARGET", "reference")
    monkeypatch.chdir(tmp_path)
    for name in ("scale.s", "scale.yaml"):
        shutil.copy(EXAMPLE / name, tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in out + err and code != 3, err
        return code, out, err

    return run
