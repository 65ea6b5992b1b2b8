"""`tilefw VERB …` in this process: exit code, stdout, stderr."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEFW_TARGET", "reference")
    for name in ("TILEFW_EXECUTOR", "TILEFW_CACHE", "TILEFW_DISABLE_PLUGINS", "TILEFW_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tilefw(capsysbinary):
    """`code, out, err = tilefw("run", …)`; no command may show a traceback."""
    from tilefw.cli.main import main

    def run(*words):
        code = main([str(word) for word in words])
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in out + err
        return code, out, err

    return run
